"""Log lines in Karpenter's shape (L-358, L-359, L-361; the workshop's "launched nodeclaim" line)."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.labels import EC2NODECLASS
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import DRAINING
from kerf.engine.record.claim_events import Tainted
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, ProposedMovesResult, StaticResult
from kerf.engine.record.observations import (
    ClocksAgree,
    ClocksDiffer,
    EffectAnswered,
    InputRefused,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import Facts, State
from kerf.projections.disruption_log_lines import Line
from kerf.projections.karpenter_logs import KarpenterLog, line_json
from tests.support.lives import DISRUPTED, PROVIDER, claim_of, decide, half_empty, show_taint
from tests.support.records import whole_life
from tests.support.world import World, pool
from tests.support.worlds.drain import drain, put, serving
from tests.support.worlds.two_nodes import two_nodes


def lines(world: World, commit: str = "1072d3b") -> list[Line]:
    log = KarpenterLog(commit)
    return [made for entry in world.store.entries for made in log.apply(entry)]


@pytest.fixture(scope="module")
def life() -> list[Line]:
    return lines(whole_life())


def test_the_messages_of_a_life_in_order(life: list[Line]) -> None:
    """A claim's life is told by Karpenter's messages, in their order (L-361)."""
    assert [line["message"] for line in life] == [
        "found provisionable pod(s)", "computed new nodeclaim(s) to fit pod(s)", "created nodeclaim",
        "launched nodeclaim", "registered nodeclaim", "initialized nodeclaim", "disrupting node(s)", "tainted node",
        "deleted node", "deleted nodeclaim",
    ]  # fmt: skip


def test_the_launch_line_is_the_workshops(life: list[Line]) -> None:
    """L-358: level, time, logger, message and commit come first; quantities are Kubernetes' text."""
    launched = json.loads(line_json(next(line for line in life if line["message"] == "launched nodeclaim")))
    assert list(launched)[:5] == ["level", "time", "logger", "message", "commit"]
    assert launched["level"] == "INFO"
    assert launched["time"] == "2023-11-14T22:13:23.500Z"
    assert launched["logger"] == "controller"
    assert launched["commit"] == "1072d3b"
    assert launched["NodePool"] == {"name": "default"}
    assert launched["NodeClaim"]["name"] == launched["name"]
    assert {k: launched[k] for k in ("provider-id", "instance-type", "zone", "capacity-type")} == {
        "provider-id": "aws:///us-west-2a/i-1",
        "instance-type": "m5.large",
        "zone": "us-west-2a",
        "capacity-type": "on-demand",
    }
    assert launched["allocatable"] == {"cpu": "1930m", "memory": "6903Mi", "pods": "29"}


def test_the_pods_and_types_are_listed_as_karpenter_does(life: list[Line]) -> None:
    assert life[0]["Pods"] == "default/a, default/b, default/c, default/d, default/e"
    world = World()
    world.prepare()
    world.pending(*"abcdefgh")
    world.after(1_000)
    assert lines(world)[0]["Pods"] == "default/a, default/b, default/c, default/d, default/e and 3 other(s)"


def test_s43_a_pod_that_is_refused_before_planning_is_a_debug_line() -> None:
    world = World()
    world.prepare()
    world.pending("odd", node_selector={"kubernetes.io/hostname": "n1"})
    world.after(1_000)
    assert lines(world) == []
    log = KarpenterLog(level="debug")
    (line,) = [line for entry in world.store.entries for line in log.apply(entry)]
    assert (line["level"], line["message"], line["Pod"]) == (
        "DEBUG",
        "ignoring pod",
        {"name": "odd", "namespace": "default"},
    )
    assert "kubernetes.io/hostname" in line["error"]


def test_lg14_input_that_cannot_be_read_is_an_error() -> None:
    world = World()
    field = "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"
    world.see(Observation(InputRefused("KERF303", "watch", "Pod/default/odd", field, "'much' counts as 0")))
    (line,) = lines(world)
    assert (line["level"], line["message"], line["object"]) == ("ERROR", "refused input", "Pod/default/odd")
    assert line["error"] == f"KERF303 {field} 'much' counts as 0"


def test_without_a_build_revision_the_commit_is_left_out() -> None:
    """Without a build revision the commit is left out (L-360)."""
    assert all("commit" not in line for line in lines(whole_life(), ""))


def test_a_node_that_is_gone_before_the_answer_has_its_nodepool() -> None:
    """L-361: the watch may tell of a Node's end before the answer to its deletion; the NodeClaim is then over."""
    world = whole_life(World())
    refs = [e.payload.intent for e in world.store.entries if isinstance(e.payload, EffectAnswered)]
    ((end, answer),) = [
        (number, entry)
        for number, entry in enumerate(world.store.entries)
        if isinstance(entry.payload, EffectAnswered) and entry.payload.intent == refs[-1]
    ]
    log, late = KarpenterLog(), [*world.store.entries[:end], *world.store.entries[end + 1 :], answer]
    told = [made for entry in late for made in log.apply(entry)]
    assert [line["message"] for line in told[-2:]] == ["deleted nodeclaim", "deleted node"]
    assert told[-1]["NodePool"] == {"name": "default"}


def test_lg9_d133_a_claim_whose_instance_is_gone_is_told_once_to_the_curious() -> None:
    world = serving()
    since = len(world.store.entries)
    world.instance("i-1", "gone")
    world.answer_all(ok=False, code="500")
    world.after(60_000)
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    world.after(1_000)
    assert world.runtime.state.facts.claims == {}
    for level, times in (("debug", 1), ("info", 0)):
        log = KarpenterLog(level=level)
        log.know(serving().runtime.state)
        told = [line for entry in world.store.entries[since:] for line in log.apply(entry)]
        collected = [line for line in told if line["message"].startswith("garbage collecting nodeclaim")]
        assert len(collected) == times
        assert all(line["provider-id"] == PROVIDER for line in collected)


def test_l359_lg12_a_node_without_a_claim_is_what_its_lines_are_about() -> None:
    """It has no NodeClaim that the lines could name (D-140)."""
    world = serving()
    world.node("lone", "aws:///us-west-2a/i-9", registered="true", initialized="true")
    node = world.runtime.state.facts.nodes["lone"]
    going = replace(node, deleting=world.now, labels={**node.labels, EC2NODECLASS: "default"})
    since = len(lines(world))
    world.see(Observation(going))
    world.answer_all()
    world.see(Observation(replace(going, taints=(DISRUPTED,))))
    world.answer_all()
    told = lines(world)[since:]
    assert [line["message"] for line in told] == ["tainted node", "deleted node"]
    for line in told:
        assert (line["controller"], line["controllerKind"], line["name"]) == ("node.termination", "Node", "lone")
        assert "NodeClaim" not in line


def test_a_failed_launch_is_an_error_line() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="no capacity")))
    failed = lines(world)[-1]
    assert (failed["level"], failed["message"]) == ("ERROR", "failed launching nodeclaim")
    assert failed["error"] == "insufficient-capacity no capacity"


def test_the_end_says_how_long_it_lived(life: list[Line]) -> None:
    assert life[-1]["duration"] == "1h1m5.1s"


def test_a_new_process_knows_the_claims_that_were_there() -> None:
    """L-359: the lines of a claim's end are the same as if the log had been read from the beginning."""
    world = whole_life()
    state, log, found = State(Facts(), world.runtime.state.indexes.blobs), KarpenterLog(), []
    for entry in world.store.entries:
        if state.facts.position >= (world.store.entries[-1].position // 2):
            found += log.apply(entry)
        evolve(state, entry)
        if state.facts.position == world.store.entries[-1].position // 2:
            log.know(state)
    assert found
    assert found == lines(world, "")[-len(found) :]


def messages(world: World, level: str = "debug") -> list[tuple[str, str]]:
    log = KarpenterLog(level=level)
    return [(made["level"], made["message"]) for entry in world.store.entries for made in log.apply(entry)]


def test_l302_debug_says_more_than_info_and_info_more_than_error() -> None:
    world = half_empty()
    decide(world)
    told = {level: messages(world, level) for level in ("debug", "info", "error")}
    assert ("DEBUG", "node stays") in told["debug"]
    assert [line for line in told["debug"] if line[0] != "DEBUG"] == told["info"]
    assert told["error"] == []


def test_l358_the_caller_stands_at_debug_level_only() -> None:
    world = half_empty()
    first = next(made for entry in world.store.entries for made in KarpenterLog(level="debug").apply(entry))
    assert list(first)[:5] == ["level", "time", "logger", "caller", "message"]
    assert "caller" not in lines(world)[0]


def test_lg1_a_command_has_one_line_with_its_decision_its_nodes_and_its_replacements() -> None:
    world = half_empty()
    decide(world)
    (line,) = [told_line for told_line in lines(world) if told_line["message"] == "disrupting node(s)"]
    (ref,) = world.runtime.state.facts.moves
    claim, other = world.runtime.state.facts.claims.values()
    assert (line["level"], line["reason"], line["decision"], line["command-id"]) == (
        "INFO", "underutilized", "replace", ref,
    )  # fmt: skip
    assert (line["disrupted-node-count"], line["replacement-node-count"], line["pod-count"]) == (1, 1, 2)
    assert line["disrupted-nodes"] == [
        {"Node": {"name": "n1"}, "NodeClaim": {"name": claim.name}, "capacity-type": "on-demand",
         "instance-type": claim.instance_type}
    ]  # fmt: skip
    assert line["replacement-nodes"] == [
        {"NodeClaim": {"name": other.name}, "capacity-type": "on-demand", "instance-types": "c5.large"}
    ]
    start = f"Underutilized/{ref}: replace: nodepools=[default]: [n1] -> [1 replacement] (savings: $"
    assert line["command"].startswith(start)


def test_lg2_a_command_that_is_over_is_a_debug_line() -> None:
    world = serving()
    decide(world)
    world.answer_all()
    show_taint(world)
    told = messages(world)
    assert told.count(("INFO", "disrupting node(s)")) == 1
    assert told.count(("DEBUG", "command succeeded")) == 1


def test_lg2_a_command_whose_node_goes_for_a_stronger_reason_has_not_succeeded() -> None:
    """Its replacement is still on its way."""
    world = half_empty()
    claim = claim_of(world)
    decide(world)
    world.answer_all()
    show_taint(world)
    world.see(Observation(NodeClaimDeletionSeen(claim.name, "kubectl")))
    assert claim.state == DRAINING
    told = messages(world)
    assert told.count(("INFO", "disrupting node(s)")) == 1
    assert ("DEBUG", "command succeeded") not in told


def test_lg3_a_command_that_fails_is_an_error_line() -> None:
    world = half_empty()
    decide(world)
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity", message="none")))
    (line,) = [told_line for told_line in lines(world) if told_line["message"] == "failed to disrupt node(s)"]
    assert (line["level"], line["decision"]) == ("ERROR", "replace")
    assert order.claim in line["error"]


def test_lg14_d18_budgets_that_cannot_be_read_are_one_error_line() -> None:
    world = two_nodes()
    world.see(Observation(pool(budgets=(Budget("100%"), Budget("5", schedule="nonsense", duration=60_000)))))
    world.gone("a")
    world.after(11_000)
    (line,) = [told_line for told_line in lines(world) if told_line["message"] == "invalid disruption budgets"]
    assert (line["level"], line["NodePools"]) == ("ERROR", [{"name": "default"}])
    assert "budget 1 of NodePool default cannot be read" in line["error"]


def test_lg11_lg13_the_deadline_and_what_goes_by_force_are_logged() -> None:
    world = serving(termination_grace_period=60_000)
    put(world, "held", grace=30, do_not_disrupt="true")
    drain(world)
    world.after(31_000)
    world.answer_all()
    told = messages(world)
    assert told.count(("INFO", "annotated nodeclaim")) == 1
    assert ("DEBUG", "force-deleted pod") in told


def test_lg13_a_forced_pod_has_its_own_grace_period_and_the_granted_one() -> None:
    world = serving(termination_grace_period=60_000)
    put(world, "held", grace=45, do_not_disrupt="true")
    drain(world)
    claim = claim_of(world).name
    log, asked = KarpenterLog(level="debug"), len(world.store.entries)
    log.know(world.runtime.state)
    world.after(31_000)
    world.answer_all()
    told = [line for entry in world.store.entries[asked:] for line in log.apply(entry)]
    (line,) = (line for line in told if line["message"] == "force-deleted pod")
    assert (line["Pod"], line["NodeClaim"]) == ({"name": "held", "namespace": "default"}, {"name": claim})
    assert (line["grace-period"], line["granted-grace-period"]) == (45, 29)
    assert line["deadline"]


def test_clocks_that_differ_and_a_record_that_is_set_back_are_error_lines() -> None:
    world = World()
    world.now += 60_000
    world.see(Observation(ClocksDiffer(jump=86_400_000, skew=-3_000)), Observation(ClocksAgree(moved=5_000)))
    world.now -= 50_000
    world.see()
    world.pending("a")
    found = [line for line in lines(world) if line["controller"] == "clocks"]
    assert [(line["level"], line.get("jump", line.get("time-set-by", line.get("by")))) for line in found] == [
        ("ERROR", "+86400s"),
        ("INFO", "+5s"),
        ("ERROR", "-50s"),
    ]


def test_lg1_what_leaves_no_choice_has_the_line_of_a_command() -> None:
    world = serving(expire_after=3_600_000)
    put(world, "a")
    world.after(3_600_000)
    (line,) = [told_line for told_line in lines(world) if told_line["message"] == "disrupting node(s)"]
    assert (line["level"], line["reason"], line["decision"]) == ("INFO", "expired", "delete")
    assert [node["Node"]["name"] for node in line["disrupted-nodes"]] == ["n1"]
    assert (line["disrupted-node-count"], line["replacement-nodes"]) == (1, [])


def test_lg1_what_somebody_else_deletes_is_no_disruption() -> None:
    world, last = serving(), half_empty().store.entries[-1]
    found = [
        line
        for why in ("expired", "deleted")
        for line in KarpenterLog().apply(replace(last, payload=Tainted(claim_of(world).name, why)))
    ]
    assert [line["reason"] for line in found if line["message"] == "disrupting node(s)"] == ["expired"]


def of_result(result: ProposedMovesResult | MoveStepResult | StaticResult, *before: ProposedMovesResult) -> list[Line]:
    """The lines at the level debug of a decision at the position 7."""
    log, last = KarpenterLog(level="debug"), half_empty().store.entries[-1]
    for each in before:
        log.apply(replace(last, position=7, payload=Decision("moves", 1, 1, 1, "", each)))
    return log.apply(replace(last, position=8, payload=Decision("moves", 1, 1, 1, "", result)))


def test_lg5_a_search_that_ended_by_its_steps_is_a_debug_line() -> None:
    assert of_result(ProposedMovesResult()) == []
    (line,) = of_result(ProposedMovesResult(exhausted=True))
    assert (line["level"], line["message"]) == ("DEBUG", "the search for moves ended by its steps")


def test_lg6_a_move_that_does_not_pass_the_second_look_is_a_debug_line() -> None:
    (line,) = of_result(
        MoveStepResult("7.0", "withdrawn", Reason("churn")), ProposedMovesResult((Move("underutilized", ("a",)),))
    )
    assert (line["level"], line["message"], line["reason"]) == (
        "DEBUG",
        "disruption validation failed",
        "underutilized",
    )
    assert line["error"]


def test_lg10_an_unhealthy_node_is_an_info_line_of_its_own() -> None:
    last = half_empty().store.entries[-1]
    (line,) = KarpenterLog().apply(replace(last, payload=Tainted("a", "unhealthy", None, "Ready=False")))
    assert (line["level"], line["message"], line["reason"]) == ("INFO", "deleting unhealthy node", "unhealthy")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("static-scale-up", "provisioning static nodeclaim(s)"),
        ("static-scale-down", "deprovisioning static nodeclaim(s)"),
        ("static-limit", "static node limit reached"),
    ],
)
def test_lg12_a_static_nodepool_says_what_it_has_and_what_it_is_to_have(code: str, message: str) -> None:
    (line,) = of_result(StaticResult("fixed", 3, 2, Reason(code), removed=("a",)))
    assert (line["level"], line["message"], line["NodePool"]) == ("INFO", message, {"name": "fixed"})
    assert sorted((line["current"], line["desired"])) == [2, 3]
    assert line["count"] == 1


def test_l302_a_request_that_was_refused_is_told_at_debug_alone() -> None:
    last = half_empty().store.entries[-1]
    entry = replace(last, payload=EffectAnswered("1.0", ok=False, code="409", message="conflict"))
    assert KarpenterLog().apply(entry) == []
    (line,) = KarpenterLog(level="debug").apply(entry)
    assert (line["message"], line["error"]) == ("request refused", "409 conflict")
