"""When a nomination is taken back: what waits for a node takes room there from other pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import AffinityTerm, Pod, PodShape, Selector, SpreadConstraint
from kerf.engine.model.labels import HOSTNAME, ZONE
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


def due(world: World, nominations: PodNominations, opening: str = "") -> list[tuple[str, str]]:
    return [(pod.name, node) for pod, node in nominations.due(world.runtime.state, opening)]


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


def shown(world: World, node: str) -> None:
    """The watch shows the nominations of all pods."""
    world.see(*(Observation(replace(world.pods[name], nominated=node)) for name in lives.PODS))


def stranger(world: World) -> None:
    """A pod unlike the others, which waits too: it may take their places."""
    other = PodShape(requests={"cpu": 10})
    digest, _ = content(other)
    pod = Pod("uid-other", "default", "other", digest, unschedulable=True)
    world.see(Observation(pod, {digest: other}))


def registered(world: World) -> None:
    """The Node `n1` takes pods."""
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()


def test_a_nomination_that_the_scheduler_clears_is_written_again_when_the_node_opens() -> None:
    """kube-scheduler tries the pods of a Node that is closed when it comes, and clears their nominations. Told again
    meanwhile they would be tried, and cleared, again."""
    world = lives.launched()
    stranger(world)
    nominations = PodNominations(lambda claim: claim.instance)
    told = [(name, "i-1") for name in lives.PODS]
    assert due(world, nominations) == told
    shown(world, "i-1")
    assert due(world, nominations) == []
    shown(world, "")
    assert due(world, nominations) == [], "there is no node to go to"
    world.node("i-1", PROVIDER, taints=(UNREGISTERED,))
    assert due(world, nominations) == [], "the node is closed"
    assert nominations.changes == len(lives.PODS)
    assert due(world, nominations, "n2") == [], "another node opens"
    assert due(world, nominations, "i-1") == told


def test_who_never_showed_its_nomination_is_told_again_when_the_node_opens() -> None:
    """It was cleared before a watch could show it. Who shows it is not told again."""
    world = lives.launched()
    stranger(world)
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    nominations = PodNominations(lambda claim: "")
    assert due(world, nominations) == [(name, "n1") for name in lives.PODS]
    assert nominations.is_told("n1")
    world.see(*(Observation(replace(world.pods[name], nominated="n1")) for name in lives.PODS[1:]))
    assert due(world, nominations) == []
    assert due(world, nominations, "n1") == [(lives.PODS[0], "n1")]


def test_a_pod_that_loses_its_nomination_for_an_open_node_again_and_again_is_told_three_times() -> None:
    world = lives.launched()
    stranger(world)
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    registered(world)
    nominations = PodNominations(lambda claim: "")
    times = 0
    for _ in range(6):
        times += bool(due(world, nominations))
        shown(world, "n1")
        assert due(world, nominations) == []
        shown(world, "")
    assert times == 3


def launched_for(names: str, **shape: Any) -> World:
    """Pods of this shape wait for the nodes that are launched for them: instances i-1, i-2 and so on."""
    world = World()
    world.prepare()
    world.pending(*names, memory=1, labels={"app": "x"}, **shape)
    world.after(1_000)
    for number, (ref, order) in enumerate(world.launches(), start=1):
        world.answer_launch(ref, order, f"i-{number}")
        world.node(f"i-{number}", f"aws:///{order.offers[0].zone}/i-{number}", taints=(UNREGISTERED,))
    return world


APART = AffinityTerm(HOSTNAME, Selector({"app": "x"}))
OVER_ZONES = SpreadConstraint(ZONE, selector=Selector({"app": "x"}))


def test_more_nodes_are_to_come_until_all_that_pods_with_rules_wait_for_have_joined() -> None:
    world = World()
    world.prepare()
    world.pending("a", "b", labels={"app": "x"}, anti_affinity=(APART,))
    world.after(1_000)
    (first, order), (second, other) = world.launches()
    world.answer_launch(first, order, "i-1")
    world.answer_launch(second, other, "i-2")
    nominations = PodNominations(lambda claim: claim.instance)
    assert nominations.more_to_come(world.runtime.state)
    world.node("i-1", f"aws:///{order.offers[0].zone}/i-1", taints=(UNREGISTERED,))
    assert nominations.more_to_come(world.runtime.state)
    world.node("i-2", f"aws:///{other.offers[0].zone}/i-2", taints=(UNREGISTERED,))
    assert not nominations.more_to_come(world.runtime.state)


def test_a_node_that_has_joined_is_about_to_open_until_it_is_registered() -> None:
    world = lives.launched()
    stranger(world)
    nominations = PodNominations(lambda claim: claim.instance)
    due(world, nominations)
    assert nominations.joining(world.runtime.state) == frozenset(), "it has not joined"
    world.node("i-1", PROVIDER, taints=(UNREGISTERED,))
    assert nominations.joining(world.runtime.state) == {"i-1"}
    assert PodNominations(lambda claim: "").joining(world.runtime.state) == frozenset(), "no pod was told it"
    world.node("i-1", PROVIDER, registered="true")
    world.answer_all()
    assert nominations.joining(world.runtime.state) == frozenset()


def test_pods_without_rules_about_others_do_not_wait_for_each_others_nodes() -> None:
    assert not PodNominations(lambda claim: "").more_to_come(lives.launched().runtime.state)


@pytest.mark.parametrize(("cpu", "spare"), [(10, 1), (1_500, 0)])
def test_a_node_has_spare_room_for_as_many_pods_of_other_nodes_as_fit_beside_its_own(cpu: int, spare: int) -> None:
    world = launched_for("ab", cpu=cpu, anti_affinity=(APART,))
    assert PodNominations(lambda claim: claim.instance).spare("i-1", world.runtime.state) == spare


def test_a_pod_that_is_bound_counts_as_a_change() -> None:
    """kube-scheduler is still busy with the pods that it was given a Node for."""
    world = lives.launched()
    stranger(world)
    nominations = PodNominations(lambda claim: claim.instance)
    assert due(world, nominations)
    world.bind(lives.PODS[0], "i-1")
    due(world, nominations)
    assert nominations.changes == 1


def test_room_of_a_pod_that_waits_for_others_is_spare() -> None:
    """Two of four pods go to each of two zones. kube-scheduler may refuse each of them until others are bound."""
    world = launched_for("abcd", cpu=900, spread=(OVER_ZONES,))
    state, nominations = world.runtime.state, PodNominations(lambda claim: claim.instance)
    assert [len(pods) for pods in state.indexes.waiting_for.values()] == [2, 2]
    assert nominations.spare("i-1", state) == 2


def test_s117_of_pods_that_are_spread_those_that_came_first_are_told_first() -> None:
    """Two of them go to each of two zones, and one at a time is told each node."""
    world = launched_for("abcd", cpu=900, spread=(OVER_ZONES,))
    stranger(world)
    world.see(*(Observation(replace(world.pods[name], arrival=number)) for number, name in enumerate("dcba", start=7)))
    nominations = PodNominations(lambda claim: claim.instance)
    assert {name for name, _ in due(world, nominations)} == {"d", "c"}


def test_the_first_pod_of_a_node_is_that_of_the_highest_priority_then_the_oldest() -> None:
    world = lives.launched()
    stranger(world)
    nominations = PodNominations(lambda claim: claim.instance)
    assert nominations.first_in_queue("i-1", world.runtime.state) == (), "no pod was told it"
    world.see(*(Observation(replace(world.pods[name], arrival=number)) for number, name in enumerate(lives.PODS, 7)))
    assert due(world, nominations)
    created = world.pods[lives.PODS[0]].created
    assert nominations.first_in_queue("i-1", world.runtime.state) == (0, created, 7)
    urgent = replace(world.runtime.state.indexes.blobs.shape(world.pods[lives.PODS[-1]].shape), priority=10)
    digest = "urgent"
    world.see(Observation(replace(world.pods[lives.PODS[-1]], shape=digest), {digest: urgent}))
    assert nominations.first_in_queue("i-1", world.runtime.state)[0] == -10


def test_a_pod_whose_place_a_pod_like_it_takes_is_told_the_place_that_this_one_leaves() -> None:
    world = launched_for("ab", anti_affinity=(APART,))
    stranger(world)
    nominations = PodNominations(lambda claim: claim.instance)
    assert due(world, nominations) == [("a", "i-1"), ("b", "i-2")]
    world.see(*(Observation(replace(world.pods[name], nominated=node)) for name, node in (("a", "i-1"), ("b", "i-2"))))
    assert due(world, nominations) == []
    world.bind("b", "i-1")
    assert due(world, nominations) == [("a", "i-2")]


def test_s117_of_pods_that_are_spread_no_more_are_told_while_a_node_in_another_zone_is_only_requested() -> None:
    """The node that is launched first is alone for a moment. With all its pods told, none could be bound once the other
    one is there."""
    world = World()
    world.prepare()
    world.pending(*"abcd", memory=1, labels={"app": "x"}, spread=(OVER_ZONES,))
    stranger(world)
    world.after(1_000)
    (first, order), (second, other) = world.launches()
    nominations = PodNominations(lambda claim: claim.instance)
    world.answer_launch(first, order, "i-1")
    assert sorted(due(world, nominations)) == [("a", "i-1"), ("other", "i-1")]
    world.answer_launch(second, other, "i-2")
    assert due(world, nominations) == [("b", "i-2")]


def test_s117_pods_that_are_spread_are_told_in_turn_again_once_a_node_is_in_another_zone() -> None:
    """The second node may come to any zone, so nothing is known of it until it is launched."""
    world = World()
    world.prepare()
    of_all_nodes, here = replace(OVER_ZONES, node_affinity_policy="Ignore"), {ZONE: "us-west-2a"}
    world.pending(*lives.PODS, memory=1, labels={"app": "x"}, spread=(of_all_nodes,), node_selector=here)
    world.pending("elsewhere", memory=1, anti_affinity=(APART,))
    world.after(1_000)
    (ref, order), (other_ref, other) = world.launches()
    nominations = PodNominations(lambda claim: claim.instance)
    world.answer_launch(ref, order, "i-1")
    assert due(world, nominations) == [(name, "i-1") for name in lives.PODS]
    shown(world, "i-1")
    assert due(world, nominations) == []
    in_b = tuple(offer for offer in other.offers if offer.zone == "us-west-2b")
    world.answer_launch(other_ref, replace(other, offers=in_b), "i-2")
    assert due(world, nominations) == [("elsewhere", "i-2"), *((name, "") for name in lives.PODS[1:])]
