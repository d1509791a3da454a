"""What a DaemonSet's pod takes of a node: what its newest pod does (S-79)."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Owner, Pod, PodShape
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.scheduling.problem.from_state import problem_of
from tests.support.world import Mi, World

ARM = NodeTerm((Expression("kubernetes.io/arch", "In", ("arm64",)),))
TEMPLATE = PodShape(requests={"cpu": 100}, required_terms=(ARM,))
OWNER = Owner("apps/v1/DaemonSet", "agent", uid="ds")


def daemonset(world: World, shape: PodShape = TEMPLATE) -> None:
    digest, _ = content(shape)
    world.see(Observation(DaemonSet("ds", "default", "agent", digest), {digest: shape}))


def live(world: World, name: str, cpu: int, created: int, **changes: Any) -> None:
    """A pod as the DaemonSet controller makes it: for one node, by its name."""
    there = NodeTerm(fields=(Expression("metadata.name", "In", ("n1",)),))
    shape = PodShape(requests={"cpu": cpu}, required_terms=(there,))
    digest, _ = content(shape)
    pod = Pod(name, "default", name, digest, created=created, node="n1", owner=OWNER, **changes)
    world.see(Observation(pod, {digest: shape}))


def expected(world: World) -> list[PodShape]:
    problem = problem_of(world.runtime.state, world.now)
    return [problem.shapes[digest] for digest in problem.daemons]


def test_s79_the_template_counts_until_there_is_a_pod_and_then_the_newest_pod() -> None:
    """A LimitRange has given it 2 CPU; what the controller wrote over the template's affinity does not count."""
    world = World()
    world.prepare()
    daemonset(world)
    assert expected(world) == [TEMPLATE]
    live(world, "a", 2_000, created=10)
    assert expected(world) == [PodShape(requests={"cpu": 2_000}, required_terms=(ARM,))]
    live(world, "b", 3_000, created=30)
    live(world, "c", 1_000, created=20)
    assert [shape.requests for shape in expected(world)] == [{"cpu": 3_000}]


def test_s79_a_pod_that_was_there_before_its_daemonset_was_seen_counts() -> None:
    world = World()
    world.prepare()
    live(world, "b", 3_000, created=30)
    live(world, "a", 2_000, created=10)
    assert expected(world) == []
    daemonset(world)
    assert [shape.requests for shape in expected(world)] == [{"cpu": 3_000}]


def test_s79_it_stays_known_when_it_is_gone_and_until_the_template_changes() -> None:
    """The node with the last pod went: the next one will carry the same."""
    world = World()
    world.prepare()
    daemonset(world)
    live(world, "a", 2_000, created=10)
    world.see(Observation(ObjectGone("pod", "a")))
    assert [shape.requests for shape in expected(world)] == [{"cpu": 2_000}]
    changed = PodShape(requests={"cpu": 500})
    daemonset(world, changed)
    assert expected(world) == [changed]
    live(world, "b", 4_000, created=20)
    world.see(Observation(ObjectGone("daemonset", "ds")))
    assert expected(world) == []
    assert not world.runtime.state.facts.daemon_pods


def test_s79_pods_that_wait_are_planned_for_again_when_a_daemon_turns_out_to_be_larger() -> None:
    """And only then: a pod that is as the template says, or like the others, changes nothing."""
    world = World()
    world.prepare()
    daemonset(world)
    world.pending("web", memory=100 * Mi)
    world.after(20_000)
    facts = world.runtime.state.facts
    assert not facts.batch_opened
    live(world, "a", 100, created=10)
    live(world, "b", 100, created=20)
    assert not facts.batch_opened
    live(world, "c", 200, created=30)
    assert facts.batch_opened
