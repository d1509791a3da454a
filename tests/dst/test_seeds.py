"""Some seeds of the simulation with every test run; many more with `make dst SEEDS=n`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.faults import FaultPlan
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import (
    DrainStarted,
    Initialized,
    Launched,
    LaunchFailed,
    Registered,
    Requested,
    Tainted,
    Terminated,
)
from kerf.engine.record.decisions import Decision, MoveStepResult, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ClocksAgree, ClocksDiffer, OfficeTaken, TimeSetBack
from kerf.engine.scheduling import provision
from kerf.engine.scheduling.relaunch_delay import DelayedPods
from tests.dst.beginning import NAMESPACE, Document, node_class, node_pool, open_budgets
from tests.dst.play import Outcome, looks_change_nothing, play
from tests.dst.scenario import CALM, STORM, Scenario, scenario
from tests.support.invariants.clocks import ClockRules
from tests.support.invariants.grounds import Picture
from tests.support.invariants.launches import FOR_A_POD, Launches
from tests.support.invariants.ledger import Ledger
from tests.support.invariants.refusals import IDLE, REFUSED, refusals_taken_ill
from tests.support.memory import MemoryStore
from tests.support.slow import slow

RECORDED = 5
"""A seed whose record has moves of every kind that the tests below tamper with."""
REFUSING, IN_VAIN = 599, 202
"""A seed with a zone that refuses for hours, and one with nodes that somebody else taints."""


@pytest.mark.parametrize("seed", [0, 2, *slow(1, 3, 4, 5)])
def test_all_invariants_hold(seed: int) -> None:
    assert play(scenario(seed)).broken == []


@pytest.mark.parametrize("seed", [100, *slow(101, 102)])
def test_all_invariants_hold_when_each_death_loses_the_record(seed: int) -> None:
    """Design, idea 5: what is found is adopted, and goes on."""
    assert play(scenario(seed, forgets=True)).broken == []


@pytest.mark.slow
def test_a_seed_is_one_scenario_and_one_record() -> None:
    first, again = play(scenario(3)), play(scenario(3))
    assert first.store is not None
    assert again.store is not None
    assert first.store.entries == again.store.entries
    assert first.exercised == again.exercised
    assert scenario(3).documents != scenario(4).documents


def test_a_node_pool_that_is_full_of_tainted_nodes_is_mended() -> None:
    """kerf may take none of these nodes away, and launch no other one: only users can help the pods."""
    requests = {"cpu": "1500m", "memory": "1Gi"}
    pods = {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
    }
    metadata, spec = {"name": "w", "namespace": NAMESPACE}, {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}}
    workload: Document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {**spec, "template": pods},
    }
    pool = node_pool("p", random.Random(0))
    pool["spec"]["template"]["spec"]["expireAfter"] = "Never"
    pool["spec"] |= {"limits": {"nodes": "2"}, "disruption": {"budgets": open_budgets(), "consolidateAfter": "Never"}}
    gone = {"at": f"{(STORM + CALM) // 1000}s", "action": "delete", "kind": "Deployment", **metadata}
    faults = FaultPlan(tainted=1.0, until=STORM)
    assert play(Scenario(0, [node_class(), pool, workload], [gone], faults)).broken == []


# ── the invariants can be broken ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def recorded() -> Outcome:
    return play(scenario(RECORDED))


def entries(recorded: Outcome) -> list[Entry]:
    assert recorded.store is not None
    return recorded.store.entries


def broken(tampered: Iterable[Entry]) -> set[str]:
    return {violation.invariant for violation in Ledger().read(tampered)}


@pytest.mark.slow
def test_the_record_as_it_is_breaks_nothing(recorded: Outcome) -> None:
    assert broken(entries(recorded)) == set()


def test_d51_a_budget_of_nothing_is_exceeded_by_any_move(recorded: Outcome) -> None:
    def frozen(entry: Entry) -> Entry:
        if not isinstance(entry.payload, NodePool):
            return entry
        return replace(entry, payload=replace(entry.payload, budgets=(Budget("0"),)))

    assert broken(map(frozen, entries(recorded))) == {"budget"}


def test_d116_a_drain_before_its_replacement_is_seen(recorded: Outcome) -> None:
    """As if no replacement had ever come into service."""
    late = [entry for entry in entries(recorded) if not isinstance(entry.payload, Initialized)]
    assert "replacement first" in broken(late)


def test_a_node_of_two_moves_is_seen(recorded: Outcome) -> None:
    def doubled(entry: Entry) -> Entry:
        decision = entry.payload
        if not isinstance(decision, Decision) or not isinstance(decision.result, ProposedMovesResult):
            return entry
        result = replace(decision.result, proposed=decision.result.proposed * 2)
        return replace(entry, payload=replace(decision, result=result))

    assert {"one move a node", "one place a pod"} <= broken(map(doubled, entries(recorded)))


def grounds(recorded: Outcome, tampered: Iterable[Entry]) -> set[str]:
    """What is broken for one who also keeps a picture of the cluster."""
    assert recorded.run is not None
    blobs = recorded.run.runtime.state.indexes.blobs
    return {violation.invariant for violation in Ledger(picture=Picture(blobs.shape)).read(tampered)}


def test_the_record_as_it_is_has_grounds_for_every_move(recorded: Outcome) -> None:
    assert grounds(recorded, entries(recorded)) == set()


def test_d30_a_node_with_a_protected_pod_is_seen(recorded: Outcome) -> None:
    def protected(entry: Entry) -> Entry:
        pod = entry.payload
        return replace(entry, payload=replace(pod, do_not_disrupt="true")) if isinstance(pod, Pod) else entry

    assert "nothing forbids it" in grounds(recorded, map(protected, entries(recorded)))


def test_d88_pods_without_a_place_are_seen(recorded: Outcome) -> None:
    def homeless(entry: Entry) -> Entry:
        decision = entry.payload
        if (
            not isinstance(decision, Decision)
            or not isinstance(decision.result, MoveStepResult)
            or not decision.result.begun
        ):
            return entry
        begun = replace(decision.result.begun, placements=())
        return replace(entry, payload=replace(decision, result=replace(decision.result, begun=begun)))

    assert "somewhere to go" in grounds(recorded, map(homeless, entries(recorded)))


def test_a_place_without_room_is_seen(recorded: Outcome) -> None:
    def small(entry: Entry) -> Entry:
        node = entry.payload
        return replace(entry, payload=replace(node, allocatable={"cpu": 10})) if isinstance(node, Node) else entry

    assert "somewhere to go" in grounds(recorded, map(small, entries(recorded)))


def test_d50_nodes_that_are_not_ready_consume_the_budgets(recorded: Outcome) -> None:
    def silent(entry: Entry) -> Entry:
        node = entry.payload
        return replace(entry, payload=replace(node, ready=False)) if isinstance(node, Node) else entry

    assert "budget" in grounds(recorded, map(silent, entries(recorded)))


def test_a_node_that_goes_by_choice_without_a_move_is_seen(recorded: Outcome) -> None:
    kept = [entry for entry in entries(recorded) if getattr(entry.payload, "decider", "") != "move"]
    assert "moves" in broken(kept)


def test_l189_a_deadline_without_a_grace_period_is_seen(recorded: Outcome) -> None:
    def pressed(entry: Entry) -> Entry:
        event = entry.payload
        if isinstance(event, Requested):
            return replace(entry, payload=replace(event, termination_grace_period=None))
        return replace(entry, payload=replace(event, deadline=1)) if isinstance(event, Tainted) else entry

    assert "no force before the deadline" in broken(map(pressed, entries(recorded)))


def launched_again(number: int, *asked: RequirementSpec) -> tuple[Requested, Launched]:
    """A launch for one pod, which nothing is known to have come of."""
    name, ref = f"default-{number}", NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
    request = Requested(name, "default", ref, asked, ("m5.large",), {}, ("uid",), 0.1, 1)
    return request, Launched(name, f"i-{number}", "", "m5.large", "a", "on-demand", 0.1, {}, {})


def test_s103_a_fourth_launch_for_a_label_that_is_never_given_is_seen() -> None:
    asked, launches = RequirementSpec("example.com/label", "In", ("a",)), Launches()
    seen = [list(launches.see(event)) for number in range(4) for event in launched_again(number, asked)]
    assert [bool(broken) for broken in seen] == [False] * 6 + [True, False]
    (((name, _),),) = filter(None, seen)
    assert name == "no launch in vain"


def test_s57_too_many_launches_for_a_pod_are_seen() -> None:
    launches = Launches(known={"uid"})
    seen = [list(launches.see(event)) for number in range(FOR_A_POD + 1) for event in launched_again(number)]
    assert [broken[0][0] for broken in seen if broken] == ["few launches for a pod"]
    assert seen[-1]


def test_s57_launches_for_virtual_pods_are_no_loop() -> None:
    launches = Launches()
    assert not any(list(launches.see(event)) for number in range(FOR_A_POD + 1) for event in launched_again(number))


def refused(number: int, at: int) -> Iterator[Entry]:
    """A launch for one pod that the cloud refuses."""
    request, _ = launched_again(number)
    failed = LaunchFailed(request.claim, "insufficient-capacity", "InsufficientInstanceCapacity")
    yield from (entry_of(event, at) for event in (request, failed))


def idle(number: int, *pods: Pod, asked: tuple[RequirementSpec, ...] = ()) -> Iterator[Entry]:
    """A node that comes, and goes as empty."""
    request, launched = launched_again(number, *asked)
    registered = Registered(request.claim, "n1", 1)
    for event in (request, launched, registered, *pods, Terminated(request.claim, "empty", 1, 0.0)):
        yield entry_of(event, number)


def entry_of(payload: Struct, at: int) -> Entry:
    return Entry(1, 1, "nodeclaim/default", 1, "", 1, at, 0, 1, payload)


def test_a290_nodes_that_come_and_go_without_a_pod_are_seen() -> None:
    nodes = [list(idle(number)) for number in range(IDLE + 1)]
    assert not list(refusals_taken_ill(entry for node in nodes[:-1] for entry in node))
    assert [name for name, _ in refusals_taken_ill(e for node in nodes for e in node)] == ["no nodes for nobody"]
    pod = Pod("u", "other", "p", "", node="n1")
    assert not list(refusals_taken_ill(entry for number in range(IDLE + 1) for entry in idle(number, pod)))


def test_a290_nodes_that_did_not_get_what_they_asked_for_are_bounded_elsewhere() -> None:
    asked = RequirementSpec("example.com/label", "In", ("a",))
    elsewhere = [entry for number in range(IDLE + 1) for entry in idle(number, asked=(asked,))]
    assert not list(refusals_taken_ill(elsewhere))


def test_a290_launches_that_are_refused_again_and_again_are_seen() -> None:
    launches = [entry for number in range(REFUSED + 1) for entry in refused(number, 0)]
    assert [name for name, _ in refusals_taken_ill(launches)] == ["few launches while the cloud refuses"]
    assert not list(refusals_taken_ill(launches[2:]))
    assert not list(refusals_taken_ill(e for number in range(REFUSED + 1) for e in refused(number, number * 60_000)))


@pytest.mark.slow
def test_a290_without_launching_what_is_in_doubt_first_nodes_come_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario has a zone that refuses for hours, and pods that are spread over all zones."""
    monkeypatch.setattr(provision, "launch_doubted_first", lambda planned, *_: (planned, DelayedPods()))
    assert "no nodes for nobody" in {violation.invariant for violation in play(scenario(REFUSING)).broken}


@pytest.mark.slow
def test_s57_without_a_pause_nodes_come_again_and_again_for_one_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "recently_launched", lambda *_: {})
    assert "few launches for a pod" in {violation.invariant for violation in play(scenario(IN_VAIN)).broken}


def test_a_claim_that_begins_twice_is_seen(recorded: Outcome) -> None:
    twice = [entry for entry in entries(recorded) for _ in range(1 + (entry.type == "claim.requested"))]
    assert "one life" in broken(twice)


@pytest.mark.slow
def test_a_turn_that_is_another_where_more_is_looked_at_is_seen(recorded: Outcome) -> None:
    assert recorded.store is not None
    assert looks_change_nothing(recorded.store) == []
    *_, last = (entry for entry in entries(recorded) if entry.cause and isinstance(entry.payload, Decision))
    tampered = MemoryStore()
    tampered.blobs = recorded.store.blobs
    tampered.entries = [replace(e, cause=e.cause - 1) if e is last else e for e in entries(recorded)]
    assert [violation.invariant for violation in looks_change_nothing(tampered)] == ["looks change nothing"]


def test_the_tampered_record_has_what_the_tests_take_away(recorded: Outcome) -> None:
    kinds = {type(entry.payload) for entry in entries(recorded)}
    assert {NodePool, Initialized, DrainStarted} <= kinds


def test_nothing_goes_by_the_clock_while_clocks_differ(recorded: Outcome) -> None:
    """As if the clocks had differed all along."""
    doubted = Ledger(clocks=ClockRules(in_doubt=True))
    violations = {violation.invariant for violation in doubted.read(entries(recorded))}
    assert "nothing by the clock while clocks differ" in violations
    assert "pods get nodes while clocks differ" not in violations


@pytest.mark.parametrize(
    ("was", "skew", "at", "ahead"),
    [(120_000, 5_000, 4_500, 4_500), (120_000, -5_000, 500, 0), (0, 5_000, 500, 0), (-60_000, 86_400_000, 500, 0)],
)
def test_a_process_may_be_ahead_only_where_two_of_its_times_are(was: int, skew: int, at: int, ahead: int) -> None:
    """What a process that begins in doubt may be ahead by: all times are as they are to the true time."""
    true, rules = 1_700_000_000_000, ClockRules(last=1_700_000_000_000 + min(was, 0))
    opening = [*[TimeSetBack(true + was)] * (was > 0), OfficeTaken(2, "b"), ClocksDiffer(skew=skew)]
    for position, payload in enumerate(opening, start=7):
        assert list(rules.see(Entry(position, 7, "", 1, "", 1, true + at, 0, 2, payload), true)) == []
    assert rules.ahead == ahead
    assert list(rules.see(Entry(10, 10, "", 1, "", 1, true + at, 0, 2, ClocksAgree()), true)) == []
    assert rules.ahead == 0


def test_a_pod_that_is_not_planned_for_while_clocks_differ_is_seen(recorded: Outcome) -> None:
    """No pass plans for pods, and so none gets a node."""
    doubted = Ledger(clocks=ClockRules(in_doubt=True))
    idle = [entry for entry in entries(recorded) if not _serves_pods(entry)]
    assert "pods get nodes while clocks differ" in {violation.invariant for violation in doubted.read(idle)}


def _serves_pods(entry: Entry) -> bool:
    payload = entry.payload
    if isinstance(payload, Pod):
        return bool(payload.node or payload.nominated)
    return isinstance(payload, Decision) and payload.decider == "provision"
