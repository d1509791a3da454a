"""Nodes that have been unhealthy for long are replaced (D-134…D-136, L-247, L-248, A-404…A-410)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.forced.node_repair import POLICIES, first_due, unhealthy_limit
from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.nodes import Node, NodeCondition
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Decision, DeletePod, DisruptResult, TaintNode, Verdict
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation, SettingsSeen
from kerf.replay.verify.verify import verify
from tests.support.lives import PODS, claim_of, in_service, show_taint
from tests.support.world import World

MINUTE = 60_000
AWS = POLICIES["karpenter.k8s.aws"]


def gated(*, population: int = 5, **changes: Any) -> World:
    """A world with the gate open: `n1` in service, and healthy nodes of the same NodePool beside it."""
    world = in_service(**changes)
    world.see(Observation(SettingsSeen(Settings(node_repair=True))))
    for index in range(2, population + 1):
        world.see(Observation(other(f"n{index}")))
    return world


def other(name: str, *, ready: bool = True, since: int = 0, pool: str = "default") -> Node:
    return Node(name, provider_id=f"aws:///z/{name}", labels={lbl.NODEPOOL: pool}, ready=ready, ready_since=since)


def sick(world: World, **changes: Any) -> list[Any]:
    """The watch shows `n1` changed."""
    node = world.runtime.state.facts.nodes["n1"]
    return world.see(Observation(replace(node, **changes)))


def notes(world: World) -> list[Verdict]:
    made = [entry.payload for entry in world.store.entries if isinstance(entry.payload, Decision)]
    found = [v for d in made if isinstance(d.result, DisruptResult) for v in d.result.verdicts]
    return [verdict for verdict in found if verdict.method == "unhealthy"]


def test_d134_a_node_that_is_not_ready_for_half_an_hour_is_replaced_by_force() -> None:
    world = gated(termination_grace_period=3_600_000)
    assert sick(world, ready=False, ready_since=world.now) == []
    assert world.after(30 * MINUTE - 1) == []
    (taint,) = world.after(1)
    assert isinstance(taint, TaintNode)
    claim = claim_of(world)
    assert (claim.why, claim.deadline) == ("unhealthy", world.now)
    (verdict,) = notes(world)
    assert (verdict.action, verdict.reason.code) == ("remove", "unhealthy")
    assert verdict.reason.params["waited"] == 30 * MINUTE


def test_d136_its_pods_are_deleted_at_once() -> None:
    world = gated()
    sick(world, ready=False, ready_since=world.now)
    world.after(30 * MINUTE)
    world.answer_all()
    show_taint(world)
    forced = [intent for intent in world.after(1) if isinstance(intent, DeletePod)]
    assert sorted(deletion.name for deletion in forced) == sorted(PODS)
    assert {deletion.grace for deletion in forced} == {1}


def test_without_the_gate_nothing_is_repaired() -> None:
    world = in_service()
    sick(world, ready=False, ready_since=world.now)
    assert world.after(60 * MINUTE) == []


def test_a_node_that_recovers_in_time_stays() -> None:
    world = gated()
    sick(world, ready=False, ready_since=world.now)
    world.after(29 * MINUTE)
    sick(world, ready=True, ready_since=world.now)
    assert world.after(60 * MINUTE) == []
    assert claim_of(world).why == ""


@pytest.mark.parametrize(
    ("condition", "minutes"),
    [("AcceleratedHardwareReady", 10), ("StorageReady", 30), ("NetworkingReady", 30), ("KernelReady", 30),
     ("ContainerRuntimeReady", 30)],
)  # fmt: skip
def test_a405_the_conditions_of_the_monitoring_agent(condition: str, minutes: int) -> None:
    world = gated()
    sick(world, conditions=(NodeCondition(condition, "False", world.now),))
    assert world.after(minutes * MINUTE - 1) == []
    (taint,) = world.after(1)
    assert isinstance(taint, TaintNode)


def test_l248_a_node_of_kwok_may_be_unhealthy_for_ten_minutes() -> None:
    illness = first_due(Node("n", ready=False, ready_since=5 * MINUTE), POLICIES["karpenter.kwok.sh"])
    assert illness is not None
    assert (illness.type, illness.due) == ("Ready", 15 * MINUTE)


def test_a405_unknown_matches_only_ready() -> None:
    assert first_due(Node("n", ready=True, conditions=(NodeCondition("KernelReady", "Unknown", 1),)), AWS) is None
    assert first_due(Node("n", ready=False, ready_since=1), AWS) is not None
    assert first_due(Node("n", ready=False), AWS) is None, "a node that has reported nothing yet"


def test_d134_the_condition_whose_toleration_ends_first_counts() -> None:
    node = Node("n", ready_since=1, conditions=(NodeCondition("AcceleratedHardwareReady", "False", 5 * MINUTE),))
    illness = first_due(node, AWS)
    assert illness is not None
    assert (illness.type, illness.due) == ("AcceleratedHardwareReady", 15 * MINUTE)


@pytest.mark.parametrize(("nodes", "expected"), [(0, 0), (1, 1), (5, 1), (6, 2), (10, 2), (11, 3), (100, 20)])
def test_d135_a_fifth_of_the_nodes_rounded_up(nodes: int, expected: int) -> None:
    assert unhealthy_limit(nodes) == expected


def test_d135_too_many_unhealthy_nodes_hold_repair_back_and_that_is_told_once() -> None:
    world = gated(population=5)
    world.see(Observation(other("n2", ready=False, since=world.now)))
    sick(world, ready=False, ready_since=world.now)
    assert world.after(30 * MINUTE) == []
    (note,) = notes(world)
    assert (note.action, note.reason.code) == ("note", "repair-blocked")
    assert (note.reason.params["ill"], note.reason.params["nodes"]) == (2, 5)
    for _ in range(3):
        assert world.after(5 * MINUTE) == []
    assert len(notes(world)) == 1
    world.see(Observation(other("n2", since=world.now)))
    (taint,) = world.after(5 * MINUTE)
    assert isinstance(taint, TaintNode)


def test_d135_a_repair_that_was_held_back_goes_on_after_five_calm_minutes() -> None:
    """After an outage nodes recover one by one: the last ones get the time. Each look that counts is recorded, so that
    replay comes to the same."""
    world = gated(population=5)
    world.see(Observation(other("n2", ready=False, since=world.now)))
    sick(world, ready=False, ready_since=world.now)
    assert world.after(30 * MINUTE) == []
    assert world.after(6 * MINUTE) == []
    assert world.see(Observation(other("n2", since=world.now))) == []
    assert world.after(4 * MINUTE) == []
    assert world.see(Observation(other("n2", ready=False, since=world.now))) == []  # too many again
    assert world.after(20 * MINUTE) == []
    assert world.see(Observation(ObjectGone("node", "n2"))) == []  # one of four may be
    assert world.after(5 * MINUTE - 1) == []
    (taint,) = world.after(1)
    assert isinstance(taint, TaintNode)
    told = ["repair-blocked", "repair-waits", "repair-blocked", "repair-waits", "unhealthy"]
    assert [note.reason.code for note in notes(world)] == told
    assert verify(world.store).exit_code == 0


def test_d135_the_reason_of_a_node_that_goes_waits_for_other_nodes_too() -> None:
    world = gated(population=5)
    world.see(Observation(other("n2", ready=False, since=world.now)))
    sick(world, ready=False, ready_since=world.now)
    claim = claim_of(world)
    world.see(Observation(NodeClaimDeletionSeen(claim.name, "kubectl")))
    world.answer_all()
    world.after(30 * MINUTE)
    assert claim.why == "deleted"
    world.see(Observation(other("n2", since=world.now)))
    world.after(5 * MINUTE)
    assert claim.why == "unhealthy"
    assert [note.reason.code for note in notes(world)] == ["repair-blocked", "repair-waits", "unhealthy"]
    assert verify(world.store).exit_code == 0


def test_d135_nodes_of_other_pools_do_not_count() -> None:
    world = gated(population=5)
    for index in range(4):
        world.see(Observation(other(f"x{index}", ready=False, since=world.now, pool="other")))
    sick(world, ready=False, ready_since=world.now)
    (taint,) = world.after(30 * MINUTE)
    assert isinstance(taint, TaintNode)


def test_d135_the_claims_pool_counts_before_its_node_carries_the_label() -> None:
    world = gated(population=5)
    world.see(Observation(other("n2", ready=False, since=world.now)))
    sick(world, ready=False, ready_since=world.now, labels={})
    (taint,) = world.after(30 * MINUTE)
    assert isinstance(taint, TaintNode)


def test_a_repair_that_was_held_back_and_is_not_needed_any_more_is_told() -> None:
    world = gated(population=5)
    world.see(Observation(other("n2", ready=False, since=world.now)))
    sick(world, ready=False, ready_since=world.now)
    world.after(30 * MINUTE)
    sick(world, ready=True, ready_since=world.now)
    assert [note.reason.code for note in notes(world)] == ["repair-blocked", "node-healthy"]


def test_d136_a_drain_that_waits_is_ended_by_force() -> None:
    world = gated(expire_after=60 * MINUTE)
    claim = claim_of(world)
    world.after(claim.created + 60 * MINUTE - world.now)
    assert (claim.why, claim.deadline) == ("expired", None)
    world.answer_all()
    show_taint(world)
    sick(world, ready=False, ready_since=world.now)
    world.after(30 * MINUTE)
    assert (claim.why, claim.deadline) == ("unhealthy", world.now)
