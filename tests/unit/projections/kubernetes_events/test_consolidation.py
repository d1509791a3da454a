"""What is told of consolidation: Events and metrics of the policy Balanced, and the command's text (D-84 to D-86,
D-105, D-106, D-169, D-170)."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.disruption.consolidation.young_pods import LATELY
from kerf.engine.model.feature_gates import FIELDS
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import DrainStarted
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, PlannedClaim, ProposedMovesResult, Score
from kerf.engine.record.observations import Observation
from kerf.projections.disruption_log_lines import Line
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import MINUTE, NORMAL, KubernetesEvent, ObjectReference
from tests.support.events import told
from tests.support.lives import UNREGISTERED, claim_of, decide, half_empty, show_taint
from tests.support.metrics import counted, value
from tests.support.world import Mi, World, pool
from tests.support.worlds.disruption import HOUR, passes, steps
from tests.support.worlds.two_nodes import two_nodes

MOVES, SCORE = "karpenter_consolidation_moves_total", "karpenter_consolidation_score"


def beside(policy: str, memory: int = 3_000) -> World:
    """Two nodes with a pod each (MiB), of which one is too many; a pass has looked. Small pods would do with a node of
    less than half the price, which is worth evicting both."""
    world = two_nodes(cpu=3_000, consolidation_policy="WhenEmpty")
    for name in "ab":
        world.gone(name)
    world.pending("c", "d", memory=memory * Mi)
    world.bind("c", "n1")
    world.bind("d", "n2")
    world.see(Observation(pool(budgets=(Budget("100%"),), consolidation_policy=policy)))
    world.after(LATELY + 1_000)
    return world


def of(world: World, reason: str) -> list[KubernetesEvent]:
    return [event for event in told(world) if event.reason == reason]


def logged(world: World) -> list[Line]:
    log = KarpenterLog(level="debug")
    return [line for entry in world.store.entries for line in log.apply(entry)]


def test_d84_a_node_that_balanced_lets_go_is_told_of_node_and_nodeclaim_with_its_score() -> None:
    """M-11, M-12, EV-10. W-58's sums: half of the cost for half of the disruption."""
    world = beside("Balanced")
    (move,) = passes(world)[-1].proposed
    assert move.scores == (Score("default", 0.5, 0.5),)
    events = of(world, "ConsolidationApproved")
    assert sorted((event.about.kind, event.type, event.window) for event in events) == [
        ("Node", NORMAL, 2 * MINUTE),
        ("NodeClaim", NORMAL, 2 * MINUTE),
    ]
    (line,) = [line for line in logged(world) if line["message"] == "evaluated consolidation"]  # LG-4
    assert (line["level"], line["NodePool"], line["decision"]) == ("DEBUG", {"name": "default"}, "delete")
    assert [line[key] for key in ("score", "savings-fraction", "disruption-fraction", "threshold")] == [
        1,
        0.5,
        0.5,
        0.5,
    ]
    assert [node["NodeClaim"]["name"] for node in line["candidates"]] == list(move.claims)
    worth = "NodePool default approves, score 1.00 (threshold 0.50, k 2)"
    assert {event.message for event in events} == {f"{worth}: saves 50.0% of its cost for 50.0% of its disruption"}
    found = counted(world)
    labels = {"decision": "approved", "nodepool": "default", "policy": "Balanced"}
    assert value(found, MOVES, **labels) == value(found, f"{SCORE}_count", **labels) == 1
    assert value(found, f"{SCORE}_sum", **labels) == 1.0
    bounds = sorted(float(dict(bucket)["le"]) for bucket in found[f"{SCORE}_bucket"])
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
    assert not {event.reason for event in told(world, since)} & about


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
    windows = {told_event.reason: told_event.window for told_event in told(beside("Balanced", memory=100))}
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
    world = beside("WhenEmptyOrUnderutilized", memory=100)
    (move,) = passes(world)[-1].proposed
    assert {
        event.about.name for event in of(world, "ConsolidationCandidate") if event.about.kind == "NodeClaim"
    } == set(move.claims)


def test_ev8_d98_a_deletion_is_announced_as_no_candidate() -> None:
    world = beside("WhenEmptyOrUnderutilized")
    (move,) = passes(world)[-1].proposed
    assert (move.why, move.replacements) == ("underutilized", ())
    assert of(world, "ConsolidationCandidate") == []


def test_ev9_d112_a_rejected_move_is_told_with_its_category() -> None:
    """The second look finds a pod that may not be disrupted."""
    world = half_empty()
    world.after(11_000)
    held = replace(world.pods["d"], do_not_disrupt="true")
    world.see(Observation(held))
    world.after(15_000)
    events = of(world, "ConsolidationRejected")
    assert {event.about.kind for event in events} == {"Node", "NodeClaim"}
    assert {event.message.partition(", rejected: ")[2].partition(":")[0] for event in events} == {"churn"}
    assert {event.message.partition(" (savings: $")[0] for event in events} == {"replace: [n1] -> [1 replacement]"}
    assert {event.key[1:] for event in events} == {("replace: [n1] -> [1 replacement]", "churn")}
    assert all(re.search(r" \(savings: \$\d+\.\d\d/h\), rejected", event.message) for event in events), "EV-9"


@pytest.mark.parametrize(("why", "told_of"), [("drifted", False), ("underutilized", True)])
def test_ev8_d98_the_replacement_of_a_drifted_node_is_no_candidate(why: str, told_of: bool) -> None:
    world = half_empty()
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    planned = PlannedClaim("new", "default", ("c5.large",), (), (), {}, 0.0, ())
    proposal = ProposedMovesResult((Move(why, (claim_of(world).name,), (planned,)),))
    found = events.apply(replace(last, payload=Decision("moves", 1, 1, 1, "", proposal)))
    assert any(event.reason == "ConsolidationCandidate" for event in found) == told_of


def test_ev9_d118_a_move_that_is_given_up_after_its_start_is_no_rejected_one() -> None:
    """Also not for a process that saw nothing of its start."""
    world = half_empty()
    decide(world)
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    (move,) = world.runtime.state.facts.moves
    given_up = MoveStepResult(move, "abandoned", Reason("replacement-lost", {"claims": ["x"]}))
    found = events.apply(replace(last, payload=Decision("move", 1, 1, 1, "", given_up)))
    assert not any(event.reason == "ConsolidationRejected" for event in found)


@pytest.mark.parametrize(("why", "told_of"), [("drifted", False), ("empty", False), ("underutilized", True)])
def test_ev9_d61_d98_only_consolidations_are_told_as_rejected(why: str, told_of: bool) -> None:
    world = half_empty()
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    proposal = ProposedMovesResult((Move(why, (claim_of(world).name,)),))
    events.apply(replace(last, position=7, payload=Decision("moves", 1, 1, 1, "", proposal)))
    for step, expected in (("withdrawn", told_of), ("abandoned", False)):
        result = MoveStepResult("7.0", step, Reason("churn"))
        found = events.apply(replace(last, payload=Decision("move", 1, 1, 1, "", result)))
        assert any(event.reason == "ConsolidationRejected" for event in found) == expected


def test_ev12_d115_pods_of_a_move_are_told_where_they_should_go() -> None:
    world = beside("WhenEmptyOrUnderutilized")
    since = world.runtime.state.facts.position
    world.after(15_000)
    (step,) = (result for result in steps(world) if result.begun is not None)
    (placed,) = step.begun.placements if step.begun is not None else ()
    nominated = [event for event in told(world, since) if event.reason == "Nominated"]
    assert {event.about.uid for event in nominated} == set(placed.pods)
    assert {event.message for event in nominated} == {
        f"Pod should schedule on: nodeclaim/{placed.claim}, node/{placed.node}"
    }
    assert {event.limit for event in nominated} == {"nominated"}


def test_ev5_d116_a_candidate_is_told_to_go_when_its_replacement_is_there() -> None:
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    show_taint(world)
    assert of(world, "DisruptionLaunching")
    assert of(world, "DisruptionTerminating") == [], "it waits for its replacement"
    world.answer_launch(ref, order, instance="i-2")
    other = next(claim for claim in world.runtime.state.facts.claims.values() if claim.instance == "i-2")
    world.node("n2", other.provider_id, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n2", other.provider_id, registered="true")
    world.answer_all()
    world.node("n2", other.provider_id, registered="true", initialized="true")
    world.answer_all()
    events = of(world, "DisruptionTerminating")
    assert {(event.about.kind, event.message) for event in events} == {
        ("Node", "Disrupting Node: Underutilized"),
        ("NodeClaim", "Disrupting NodeClaim: Underutilized"),
    }


def test_ev5_d132_an_expiration_is_told_as_no_disruption() -> None:
    world = half_empty(expire_after=HOUR)
    world.after(HOUR)
    world.answer_all()
    show_taint(world)
    assert any(isinstance(entry.payload, DrainStarted) for entry in world.store.entries)
    assert of(world, "DisruptionTerminating") == []


def test_d106_the_commands_text() -> None:
    world = half_empty()
    world.after(11_000)
    (move,) = next(result.proposed for result in reversed(passes(world)) if result.proposed)
    node = world.runtime.state.facts.claims[move.claims[0]].node
    command = f"replace: [{node}] -> [1 replacement]"
    events = of(world, "ConsolidationCandidate")
    assert {event.message.partition(" (savings: $")[0] for event in events} == {command}
    assert {event.message.partition(" (savings: ")[2] for event in events} == {
        f"${move.savings:.2f}/h, by {move.replacements[0].instance_types[0]})"
    }
    assert {event.key[1] for event in events} == {command}, "EV-8's de-duplication values"


def test_ev9_a_rejected_move_of_several_nodes_is_told_to_each() -> None:
    """The reference computes the Event from a command that is empty by then, and tells none (D-73)."""
    world = two_nodes()
    events, last = DecisionEvents(world.runtime.state), world.store.entries[-1]
    proposal = ProposedMovesResult((Move("underutilized", tuple(world.runtime.state.facts.claims)),))
    events.apply(replace(last, position=7, payload=Decision("moves", 1, 1, 1, "", proposal)))
    result = MoveStepResult("7.0", "withdrawn", Reason("churn"))
    found = events.apply(replace(last, payload=Decision("move", 1, 1, 1, "", result)))
    rejected = [event for event in found if event.reason == "ConsolidationRejected"]
    assert len({(event.about.kind, event.about.name) for event in rejected}) == 4
