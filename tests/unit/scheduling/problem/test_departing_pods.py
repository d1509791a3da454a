"""Pods of going nodes that may not be evicted yet are planned for shortly before they leave (S-46…S-50, D-89,
D-132)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import moving_pods
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Selector
from kerf.engine.model.labels import NODEPOOL
from kerf.engine.record.decisions import LaunchInstance, ProvisionResult
from kerf.engine.record.observations import InterruptionSeen, ObjectGone, Observation
from kerf.engine.scheduling.problem.departing_pods import MAX_LEAD, MIN_LEAD, later_pods, launch_lead
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from kerf.engine.state.state import Facts
from tests.support.lives import claim_of
from tests.support.records import re_derived
from tests.support.world import START, Mi, World
from tests.support.worlds.drain import drain, serving

HOURS = 12 * 3_600_000
GRACE = 60


def put(world: World, name: str, *, grace: int = GRACE, **pod: Any) -> Pod:
    """A pod of app `name` runs on `n1`."""
    shape = PodShape(requests={"memory": 1_024 * Mi}, labels={"app": name}, grace=grace)
    digest, _ = content(shape)
    made = Pod(f"uid-{name}", "default", name, digest, node="n1", phase="Running", ready=True, started=world.now)
    made = replace(made, **pod)
    world.see(Observation(made, {digest: shape}))
    return made


def budget(app: str, **changes: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(f"u-{app}", "default", f"pdb-{app}", Selector({"app": app}), **changes)


def asked(world: World) -> list[str]:
    return [pod.name for pod in problem_of(world.runtime.state, world.now).pods]


def launched(world: World) -> list[tuple[str, ...]]:
    """The pods of each claim that the latest turn launches."""
    claims = world.runtime.state.facts.claims
    return [claims[order.claim].pods for _, order in world.launches()]


def passes(world: World) -> list[ProvisionResult]:
    results = (getattr(entry.payload, "result", None) for entry in world.store.entries)
    return [result for result in results if isinstance(result, ProvisionResult)]


def going(**pods: dict[str, Any]) -> World:
    """`n1` is drained, with twelve hours to its deadline; on it are these pods."""
    world = serving(termination_grace_period=HOURS)
    for name, changes in pods.items():
        put(world, name, **changes)
    drain(world)
    return world


def deadline(world: World) -> int:
    found = next(claim.deadline for claim in world.runtime.state.facts.claims.values() if claim.node == "n1")
    assert found is not None
    return found


def test_s48_d132_a_protected_pod_is_planned_for_shortly_before_the_deadline() -> None:
    world = going(a={"do_not_disrupt": "true"})
    leaves = deadline(world) - GRACE * 1_000
    assert world.after(1_000) == [], "nothing is launched while it may not leave"
    assert world.runtime.next_due() == leaves - MIN_LEAD
    assert world.after(leaves - MIN_LEAD - 1 - world.now) == []
    world.after(1)
    assert launched(world) == [("uid-a",)]
    assert re_derived(world.store) == world.store.entries


def test_s48_the_pass_says_why_and_from_when_on() -> None:
    world = going(a={"do_not_disrupt": "true"})
    world.after(1_000)
    ((group,), until) = passes(world)[-1].later, passes(world)[-1].retry_at
    assert group.pods == ("uid-a",)
    (why,) = group.reasons
    assert why.code == SchedulingCode.KEPT_BY_ANNOTATION
    assert sentence(why) == (
        "karpenter.sh/do-not-disrupt keeps it on node n1, which is going; it leaves at "
        "2023-11-15T10:12:21Z at the latest, and its next place is looked for from 2023-11-15T10:07:21Z on"
    )
    assert until == deadline(world) - GRACE * 1_000 - MIN_LEAD
    recorded = len(passes(world))
    world.see(Observation(Node("other", created=world.now, ready=True, allocatable={"pods": 1})))
    world.after(1_000)
    assert [bool(result.repeats) for result in passes(world)[recorded:]] == [True], (
        "the same again is not written again"
    )
    assert world.runtime.next_due() == until


def test_s48_a_pod_whose_annotation_goes_is_planned_for_at_once() -> None:
    world = going(a={"do_not_disrupt": "true"})
    world.after(60_000)
    put(world, "a")
    world.after(1_000)
    assert launched(world) == [("uid-a",)]


def test_s48_pods_that_are_left_behind_keep_their_place_until_they_are_gone_too() -> None:
    """The Node goes before the pod garbage collector comes to its pods. Their new node would go as empty meanwhile."""
    world = going(a={"do_not_disrupt": "true"})
    world.see(Observation(InterruptionSeen("m1", "spot_interrupted", "i-1", sent=world.now)))
    world.after(1_000)
    (target,) = [claim for uid, claim in world.runtime.state.facts.targets.items() if uid == "uid-a"]
    world.see(Observation(ObjectGone("node", "n1")))
    world.instance("i-1", "terminated")
    world.pending("b")
    world.after(30_000)
    assert len(passes(world)) > 1
    assert asked(world).count("a") == 1
    assert world.runtime.state.facts.targets["uid-a"] == target
    world.see(Observation(ObjectGone("pod", "uid-a")))
    assert asked(world).count("a") == 0


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"max_unavailable": "0"}, []),
        ({"min_available": "100%"}, []),
        ({"min_available": "2", "expected_pods": 2, "desired_healthy": 2}, []),
        ({"min_available": "1", "expected_pods": 2, "desired_healthy": 1, "disruptions_allowed": 1}, ["a"]),
        ({"min_available": "1", "expected_pods": 2, "desired_healthy": 1}, ["a"]),
        ({"min_available": "2"}, ["a"]),
    ],
    ids=["0 unavailable", "100% available", "every pod", "one at a time", "its turn comes", "no status yet"],
)
def test_s49_only_a_budget_that_lets_none_go_keeps_a_pod(changes: dict[str, Any], names: list[str]) -> None:
    world = serving(termination_grace_period=HOURS)
    put(world, "a")
    world.see(Observation(budget("a", **changes)))
    drain(world)
    assert asked(world) == names
    later = later_pods(world.runtime.state, world.now)
    assert [reason.code for group in later.groups for reason in group.reasons] == (
        [] if names else [SchedulingCode.KEPT_BY_BUDGET]
    )


def test_s49_a_pod_is_planned_for_as_soon_as_its_budget_lets_it_go() -> None:
    world = serving(termination_grace_period=HOURS)
    put(world, "a")
    held = budget("a", min_available="1", expected_pods=1, desired_healthy=1)
    world.see(Observation(held))
    drain(world)
    world.after(60_000)
    assert asked(world) == []
    world.see(Observation(replace(held, expected_pods=2, disruptions_allowed=1)))
    world.after(1_000)
    assert launched(world) == [("uid-a",)]


def test_s48_without_a_deadline_only_a_change_lets_a_pod_go() -> None:
    world = serving()
    put(world, "a", do_not_disrupt="true")
    drain(world)
    world.after(1_000)
    (group,) = passes(world)[-1].later
    assert sentence(group.reasons[0]).endswith("; its next place is looked for when it may leave")
    assert passes(world)[-1].retry_at == 0
    assert world.after(HOURS) == []


def test_pods_that_leave_soon_are_planned_for_together() -> None:
    """One by one each would get a node of its own."""
    world = going(a={"do_not_disrupt": "true"}, b={"do_not_disrupt": "true", "grace": GRACE + 120})
    world.after(deadline(world) - (GRACE + 120) * 1_000 - MIN_LEAD - world.now)
    assert launched(world) == [("uid-a", "uid-b")]
    world.see(Observation(ObjectGone("pod", "uid-b")))
    assert asked(world) == ["a"], "it keeps its place"


def test_an_interrupted_node_gives_its_pods_no_time() -> None:
    world = going(a={"do_not_disrupt": "true"})
    world.after(60_000)
    assert asked(world) == []
    world.see(Observation(InterruptionSeen("m1", "spot_interrupted", "i-1", sent=world.now)))
    assert asked(world) == ["a"]
    world.after(1_000)
    assert launched(world) == [("uid-a",)]


def test_d88_later_pods_ask_disruption_for_no_room_either() -> None:
    world = serving(termination_grace_period=HOURS)
    put(world, "a")
    put(world, "b")
    world.see(Observation(budget("a", min_available="1", expected_pods=1, desired_healthy=1)))
    drain(world)
    assert [pod.name for pod in moving_pods(cluster_of(world.runtime.state, world.now), frozenset())[1]] == ["b"]
    near = deadline(world) - GRACE * 1_000 - MIN_LEAD
    assert [pod.name for pod in moving_pods(cluster_of(world.runtime.state, near), frozenset())[1]] == ["a", "b"]


@pytest.mark.parametrize(
    ("took", "lead"), [((), MIN_LEAD), ((40_000,), MIN_LEAD), ((400_000, 40_000), 400_000), ((5_000_000,), MAX_LEAD)]
)
def test_a_pod_is_planned_for_as_early_as_the_slowest_node_took_to_be_ready(took: tuple[int, ...], lead: int) -> None:
    world = serving()
    made = claim_of(world)
    facts = Facts(claims={str(ms): replace(made, created=START, initialized=START + ms) for ms in took})
    assert launch_lead(facts) == lead


@pytest.mark.parametrize("labels", [{}, {NODEPOOL: "default"}], ids=["unmanaged", "of a pool"])
def test_s46_s50_pods_of_a_deleted_node_without_a_claim_get_a_place(labels: dict[str, str]) -> None:
    world = World()
    world.prepare()
    node = Node("n1", uid="u1", labels=labels, ready=True, created=START, allocatable={"memory": 4_096 * Mi, "pods": 9})
    world.see(Observation(node))
    put(world, "a")
    put(world, "held", do_not_disrupt="true")
    world.after(10_000)
    assert asked(world) == []
    world.see(Observation(replace(node, deleting=world.now)))
    assert asked(world) == ["a"]
    world.after(1_000)
    assert launched(world) == [("uid-a",)]
    assert isinstance(world.intents[0][1], LaunchInstance)
    put(world, "late")
    world.after(1_000)
    assert asked(world) == ["a", "late"]
    assert re_derived(world.store) == world.store.entries
