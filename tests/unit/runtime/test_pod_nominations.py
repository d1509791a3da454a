"""When a nomination is taken back: what waits for a node takes room there from other pods."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.pod_nominations import PodNominations
from tests.support import lives
from tests.support.lives import PROVIDER, UNREGISTERED
from tests.support.world import World


def nominated_and_in_service() -> World:
    """All pods are nominated for `n1`, which is initialized; kube-scheduler has bound none of them yet."""
    world = lives.launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.see(*(Observation(replace(world.pods[name], nominated="n1")) for name in lives.PODS))
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true")
    return world


def due(world: World, nominations: PodNominations) -> list[tuple[str, str]]:
    return [(pod.name, node) for pod, node in nominations.due(world.runtime.state)]


def test_pods_stay_nominated_for_a_node_in_service_while_the_plan_has_them_there() -> None:
    world = nominated_and_in_service()
    world.after(60_000)
    assert set(world.runtime.state.facts.nominations.values()) == {"n1"}
    assert due(world, PodNominations(lambda claim: "")) == []


def test_a_pod_that_the_node_in_service_cannot_take_is_told_so() -> None:
    """Its nomination would hold room there for ever, which the plan gives to others."""
    world = nominated_and_in_service()
    elsewhere = PodShape(requests={"cpu": 10}, node_selector={"team": "red"})
    digest, _ = content(elsewhere)
    world.see(Observation(replace(world.pods["a"], nominated="n1", shape=digest), {digest: elsewhere}))
    world.after(60_000)
    assert due(world, PodNominations(lambda claim: "")) == [("a", "")]
