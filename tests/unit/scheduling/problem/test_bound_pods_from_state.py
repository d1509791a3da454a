"""What the planner is told of bound pods: S-119, S-131, S-71, from the state of a running controller."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.lives import in_service, launched
from tests.support.world import World

ALONE = (AffinityTerm(lbl.HOSTNAME, Selector()),)


def problem(world: World) -> Problem:
    return problem_of(world.runtime.state, world.now)


def test_s119_a_pod_that_wants_to_be_alone_gets_another_node() -> None:
    world = in_service()
    world.pending("alone", anti_affinity=ALONE)
    assert [(pod.name, pod.node) for pod in problem(world).bound] == [(name, "n1") for name in "abcde"]
    assert [intent for intent in world.after(1_000) if isinstance(intent, LaunchInstance)]


def test_s119_bound_pods_are_told_of_only_if_somebody_notices_them() -> None:
    world = in_service()
    world.pending("plain", memory=1)
    assert problem(world).bound == ()
    assert not [intent for intent in world.after(1_000) if isinstance(intent, LaunchInstance)]


def test_s119_a_bound_pod_that_wants_to_be_alone_keeps_later_ones_away() -> None:
    world = in_service()
    world.pending("alone", memory=1, anti_affinity=ALONE)
    world.bind("alone", "n1")
    world.pending("plain", memory=1)
    assert len(problem(world).bound) == 6
    assert [intent for intent in world.after(1_000) if isinstance(intent, LaunchInstance)]


def test_s71_pods_on_a_node_that_is_not_registered_are_on_its_claim() -> None:
    world = launched()
    world.node("n1", "aws:///us-west-2a/i-1")
    world.bind("a", "n1")
    world.pending("alone", anti_affinity=ALONE)
    asked = problem(world)
    (node,) = asked.nodes
    assert node.name == node.claim
    assert [(pod.name, pod.node) for pod in asked.bound] == [("a", node.name)]


def test_s131_pods_on_a_node_of_a_nodepool_without_a_claim_count() -> None:
    """It is no place (S-71), but for kube-scheduler its pods are where they are."""
    world = in_service()
    node = replace(world.runtime.state.facts.nodes["n1"], name="lone", provider_id="aws:///us-west-2a/i-9")
    world.see(Observation(node))
    world.pending("there", memory=1)
    world.bind("there", "lone")
    world.pending("alone", anti_affinity=(AffinityTerm(lbl.ZONE, Selector()),))
    asked = problem(world)
    assert [leaving.name for leaving in asked.leaving] == ["lone"]
    assert ("there", "lone") in [(pod.name, pod.node) for pod in asked.bound]
