"""What is told of consolidation: Events and metrics of the policy Balanced, and the command's text (D-84 to D-86,
D-105, D-106, D-169, D-170)."""

from __future__ import annotations

import pytest

from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.model.feature_gates import FIELDS
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Score
from kerf.engine.record.observations import Observation
from kerf.projections.kubernetes_events.event import MINUTE, NORMAL, KubernetesEvent, ObjectReference
from tests.support.events import told
from tests.support.lives import claim_of, half_empty
from tests.support.metrics import counted, value
from tests.support.world import Mi, World, pool
from tests.support.worlds.disruption import passes
from tests.support.worlds.two_nodes import two_nodes

MOVES, SCORE = "karpenter_consolidation_moves_total", "karpenter_consolidation_score"


def beside(policy: str, memory: int = 3_000) -> World:
    """Two nodes with a pod each (MiB), of which one is too many; a pass has looked. A small pod would do with a cheaper
    node."""
    world = two_nodes(consolidation_policy="WhenEmpty")
    for name in "ab":
        world.gone(name)
    world.pending("c", "d", memory=memory * Mi)
    world.bind("c", "n1")
    world.bind("d", "n2")
    world.see(Observation(pool(budgets=(Budget("100%"),), consolidation_policy=policy)))
    world.after(11_000)
    return world


def of(world: World, reason: str) -> list[KubernetesEvent]:
    return [each for each in told(world) if each.reason == reason]


def test_d84_a_node_that_balanced_lets_go_is_told_of_node_and_nodeclaim_with_its_score() -> None:
    """M-11, M-12, EV-10. W-58's sums: half of the cost for half of the disruption."""
    world = beside("Balanced")
    (move,) = passes(world)[-1].proposed
    assert move.scores == (Score("default", 0.5, 0.5),)
    events = of(world, "ConsolidationApproved")
    assert sorted((each.about.kind, each.type, each.window) for each in events) == [
        ("Node", NORMAL, 2 * MINUTE),
        ("NodeClaim", NORMAL, 2 * MINUTE),
    ]
    worth = "NodePool default approves, score 1.00 (threshold 0.50, k 2)"
    assert {each.message for each in events} == {f"{worth}: saves 50.0% of its cost for 50.0% of its disruption"}
    found = counted(world)
    labels = {"decision": "approved", "nodepool": "default", "policy": "Balanced"}
    assert value(found, MOVES, **labels) == value(found, f"{SCORE}_count", **labels) == 1
    assert value(found, f"{SCORE}_sum", **labels) == 1.0
    bounds = sorted(float(dict(each)["le"]) for each in found[f"{SCORE}_bucket"])
    assert bounds[:-1] == [0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0]


def test_d84_other_policies_are_counted_and_not_scored() -> None:
    world = beside("WhenEmptyOrUnderutilized")
    (move,) = passes(world)[-1].proposed
    assert (move.why, move.scores) == ("underutilized", ())
    assert of(world, "ConsolidationApproved") == []
    found = counted(world)
    assert value(found, MOVES, decision="approved", policy="WhenEmptyOrUnderutilized") == 1
    assert value(found, f"{SCORE}_count") == 0


def test_d84_d86_what_balanced_refuses_is_in_the_metrics_and_in_no_event() -> None:
    world = half_empty(consolidation_policy="Balanced")
    world.after(11_000)
    assert claim_of(world).verdict == "not-worth-it"
    assert value(counted(world), MOVES, decision="rejected", nodepool="default", policy="Balanced") == 1
    about = {"ConsolidationApproved", "ConsolidationRejected", "ConsolidationCandidate", "Unconsolidatable"}
    since = world.store.entries[-1].position - 2
    assert not {each.reason for each in told(world, since)} & about


def test_d85_several_nodes_for_one_are_told_once_of_their_nodepool() -> None:
    """Several nodes for one are told once of their NodePool (EV-11)."""
    world = beside("Balanced", memory=100)
    (move,) = passes(world)[-1].proposed
    assert (len(move.claims), len(move.replacements)) == (2, 1)
    (event,) = of(world, "ConsolidationApproved")
    assert (event.about.kind, event.about.name) == ("NodePool", "default")
    assert value(counted(world), MOVES, decision="approved") == 1


def test_d169_an_event_is_normal_and_holds_for_two_minutes_unless_it_says_otherwise() -> None:
    about = ObjectReference("v1", "Node", "n1")
    assert KubernetesEvent(about, NORMAL, "Any", "text", ()).window == 120_000
    windows = {each.reason: each.window for each in told(beside("Balanced"))}
    assert windows["ConsolidationCandidate"] == windows["ConsolidationApproved"] == 120_000
    blocked = half_empty(budgets=(Budget("0"),))
    blocked.after(11_000)
    (event,) = of(blocked, "DisruptionBlocked")
    assert (event.about.kind, event.window) == ("NodePool", 60_000), "EV-2"


def test_d86_d170_balanced_has_no_gate_and_no_dial() -> None:
    """k = 2, as the score at which equality approves shows (W-56)."""
    assert THRESHOLD == 0.5
    assert not [name for name in (*FIELDS, *Settings.__struct_fields__) if "balance" in name.lower()]
    assert [name for name in NodePool.__struct_fields__ if name.startswith("consolidat")] == [
        "consolidation_policy",
        "consolidate_after",
    ]


def test_d105_a_replacement_is_announced_when_it_is_decided_and_for_no_probe() -> None:
    """EV-8: passes ask of many nodes and sets of them; each was announced."""
    world = beside("WhenEmptyOrUnderutilized")
    (move,) = passes(world)[-1].proposed
    assert {each.about.name for each in of(world, "ConsolidationCandidate") if each.about.kind == "NodeClaim"} == set(
        move.claims
    )


@pytest.mark.parametrize("replaced", [False, True])
def test_d106_the_commands_text(replaced: bool) -> None:
    world = half_empty() if replaced else beside("WhenEmptyOrUnderutilized")
    world.after(11_000)
    (move,) = next(each.proposed for each in reversed(passes(world)) if each.proposed)
    node = world.runtime.state.facts.claims[move.claims[0]].node
    command = f"replace: [{node}] -> [1 replacement]" if replaced else f"delete: [{node}]"
    events = of(world, "ConsolidationCandidate")
    assert {each.message.partition(" (savings: $")[0] for each in events} == {command}
    assert {each.key[1] for each in events} == {command}, "EV-8's de-duplication values"
