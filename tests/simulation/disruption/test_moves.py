"""Disruption of all nodes together, with the whole controller: under budgets, replacements first, given up when they
fail, and still in the end (D-16 to D-121)."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, LaunchInstance, MoveStepResult, ProposedMovesResult
from tests.support.records import re_derived
from tests.support.simulation.budgets import budget, given
from tests.support.simulation.chaos import deployment
from tests.support.simulation.run import HOUR, Run, scale
from tests.support.slow import slow

MINUTE = 60_000


def events(run: Run, kind: type[Any]) -> list[Any]:
    return [entry for entry in run.entries() if isinstance(entry.payload, kind)]


def steps(run: Run) -> list[MoveStepResult]:
    results = (entry.payload.result for entry in events(run, Decision))
    return [result for result in results if isinstance(result, MoveStepResult)]


def verdicts(run: Run, claim: str) -> list[str]:
    results = [entry.payload.result for entry in events(run, Decision)]
    told = (v for r in results if isinstance(r, ProposedMovesResult | MoveStepResult) for v in r.verdicts)
    return [verdict.reason.code for verdict in told if verdict.claim == claim]


def at_once(run: Run) -> int:
    """How many claims were on their way out at the same time, at most; an instance that ends counts no more (D-49)."""
    going, most = set[str](), 0
    for entry in run.entries():
        if isinstance(entry.payload, ev.Tainted):
            going.add(entry.payload.claim)
        elif isinstance(entry.payload, ev.Drained | ev.Terminated | ev.Untainted):
            going.discard(entry.payload.claim)
        most = max(most, len(going))
    return most


def running(run: Run) -> dict[str, str]:
    """Pod → node, of the pods that run."""
    return {pod.key: pod.node for pod in run.simulation.cluster.api.pods.values() if pod.phase == "Running"}


def test_d116_the_node_goes_when_its_replacement_is_in_service() -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5)))
    old, new = [entry.payload.claim for entry in events(run, ev.Requested)]
    when = {(type(e.payload).__name__, e.payload.claim): e.at for e in run.entries() if e.type.startswith("claim.")}
    assert when["Requested", new] == when["Tainted", old]
    assert when["Initialized", new] == when["DrainStarted", old]
    assert 0 <= when["Tainted", old] - START - 11 * MINUTE < 15_000, "consolidateAfter; the pods are old enough, too"
    assert [(e.payload.why, e.payload.claim) for e in events(run, ev.Terminated)] == [("underutilized", old)]
    assert run.simulation.cloud.alive() != []
    assert len(running(run)) == 5
    assert re_derived(run.memory) == run.memory.entries


def test_d47_a_budget_of_nothing_keeps_every_node() -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5), scale("20m", 0), budgets=[{"nodes": "0"}]))
    (claim,) = [entry.payload.claim for entry in events(run, ev.Requested)]
    assert events(run, ev.Tainted) == []
    assert verdicts(run, claim)[-1] == "budget"


def test_d45_a_window_that_ends_lets_them_go() -> None:
    """From minute 0 of every hour on, for forty minutes, nothing may go."""
    closed = {"nodes": "0", "schedule": "0 * * * *", "duration": "40m"}
    run = Run(given(scale("1m", 5), scale("10m", 0), budgets=[closed]))
    (tainted,) = events(run, ev.Tainted)
    assert tainted.at == START + 40 * MINUTE


def test_d50_never_more_at_once_than_the_budget_allows() -> None:
    many = given(scale("1m", 60), scale("10m", 0), budgets=[{"nodes": "2"}])
    run = Run(many, until=3 * HOUR)
    assert len(events(run, ev.Launched)) > 4
    assert at_once(run) == 2
    assert run.simulation.cloud.alive() == []


def test_d118_a_replacement_without_capacity_leaves_the_node_as_it_was() -> None:
    gone = {"at": "10m50s", "action": "capacity", "capacityType": "on-demand"}
    run = Run(given(scale("1m", 12), scale("10m", 5), gone), until=20 * MINUTE)
    old, *news = [entry.payload.claim for entry in events(run, ev.Requested)]
    assert news, "it was tried"
    assert [step.step for step in steps(run)][:2] == ["started", "abandoned"]
    assert steps(run)[1].reason.code == "replacement-lost"
    assert [entry.payload.claim for entry in events(run, ev.Untainted)] == [old] * len(news)
    assert run.entries("claim.pod-evicted") == []
    (node,) = run.simulation.cluster.api.nodes.values()
    assert not [taint for taint in node.taints if taint.key == "karpenter.sh/disrupted"]
    assert set(running(run).values()) == {node.name}
    assert re_derived(run.memory) == run.memory.entries


def test_d66_it_is_tried_again_ever_more_rarely_and_goes_well_once_there_is_capacity() -> None:
    gone = {"at": "10m50s", "action": "capacity", "capacityType": "on-demand"}
    back = {"at": "31m", "action": "restore-capacity"}
    run = Run(given(scale("1m", 12), scale("10m", 5), gone, back), until=2 * HOUR)
    old = events(run, ev.Requested)[0].payload.claim
    tried = [entry.at for entry in events(run, ev.Tainted)]
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert 2 <= len(tried) <= 8
    assert all(pause >= MINUTE for pause in pauses)
    assert [entry.payload.claim for entry in events(run, ev.Terminated)] == [old]
    assert len(running(run)) == 5


def test_d30_pods_that_nobody_may_evict_keep_their_node() -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5), more=(budget(0),)))
    (claim,) = [entry.payload.claim for entry in events(run, ev.Requested)]
    assert events(run, ev.Tainted) == []
    assert verdicts(run, claim)[-1] == "pod-budget-exhausted"


def test_a_pod_disruption_budget_is_kept_while_a_node_is_replaced() -> None:
    run = Run(given(scale("1m", 12), scale("10m", 5), more=(budget(1),)), until=2 * HOUR)
    assert [entry.payload.why for entry in events(run, ev.Terminated)] == ["underutilized"]
    assert len(running(run)) == 5


def test_an_interrupted_candidate_waits_for_nothing() -> None:
    """D-116 does not hold up what leaves no choice."""
    warned = {"at": "11m30s", "action": "interrupt"}
    run = Run(given(scale("1m", 12), scale("10m", 5), warned), until=2 * HOUR)
    old = events(run, ev.Requested)[0].payload.claim
    (raised,) = events(run, ev.ReasonRaised)
    (drain,) = [entry for entry in events(run, ev.DrainStarted) if entry.payload.claim == old]
    assert (raised.payload.claim, raised.payload.was) == (old, "underutilized")
    assert drain.at == raised.at
    assert run.runtime.state.facts.moves == {}
    assert len(running(run)) == 5


def test_d62_drifted_nodes_are_replaced_one_after_the_other_as_the_budget_allows() -> None:
    """D-64, D-65: at once, without a second look; the oldest first; the new node is there before the old one goes."""
    pool = copy.deepcopy(next(d for d in given(budgets=[{"nodes": "1"}]) if d["kind"] == "NodePool"))
    pool["spec"]["template"]["metadata"]["labels"]["team"] = "b"
    edit = {"at": "20m", "action": "apply", "object": pool}
    run = Run(given(scale("1m", 40), edit, budgets=[{"nodes": "1"}]), until=3 * HOUR)
    olds = [entry.payload.claim for entry in events(run, ev.Launched) if entry.at < START + 20 * MINUTE]
    tainted = [entry for entry in events(run, ev.Tainted) if entry.payload.why == "drifted"]
    assert len(olds) > 2
    assert sorted(entry.payload.claim for entry in tainted) == sorted(olds)
    assert tainted[0].at < START + 21 * MINUTE
    assert at_once(run) == 1
    nodes = run.simulation.cluster.api.nodes.values()
    assert {node.labels.get("team") for node in nodes} == {"b"}
    assert len(running(run)) == 40
    assert re_derived(run.memory) == run.memory.entries


STORY = (scale("1m", 12), scale("10m", 5), scale("20m", 0))


def intents() -> list[int]:
    """Every intent of the story, by its number."""
    made = sum(len(entry.payload.intents) for entry in Run(given(*STORY)).entries("decision.made"))
    return list(range(1, made + 1))


@pytest.mark.parametrize("point", KillPoint)
@pytest.mark.parametrize("intent", intents())
def test_killed_at_every_point_of_a_move_nothing_is_doubled_or_lost(intent: int, point: KillPoint) -> None:
    run = Run(given(*STORY), faults=FaultPlan(kills=(Kill(intent, point),)))
    assert run.driver.deaths == 1
    launched = [instance.machine.claim for instance in run.simulation.cloud.instances.values()]
    assert len(launched) == len(set(launched)) == 2
    assert run.simulation.cloud.alive() == []
    assert (run.runtime.state.facts.claims, run.runtime.state.facts.moves) == ({}, {})
    assert run.entries("nodeclaim.seen") == [], "nobody has deleted a NodeClaim but kerf, when its drain began (D-116)"
    assert re_derived(run.memory) == run.memory.entries


@pytest.mark.parametrize("seed", [*range(4), *slow(*range(4, 12))])
def test_a_steady_workload_becomes_still(seed: int) -> None:
    """Random workloads, scaled in once: what is launched after that replaces something dearer, nothing is launched for
    pods that a move left over (the cluster's scheduler does not know the plan), and in the end nothing happens."""
    dice = random.Random(seed)
    names = [f"d{n}" for n in range(dice.randint(2, 5))]
    workloads = [deployment(name, dice) for name in names]
    for workload in workloads:
        workload["spec"]["replicas"] = dice.randint(4, 20)
    actions = [
        {"at": "20m", "action": "scale", "namespace": "other", "name": name, "replicas": dice.randint(0, 4)}
        for name in names
    ]
    run = Run(given(*actions, more=tuple(workloads), budgets=[{"nodes": "100%"}]), until=4 * HOUR)
    moved = [entry.at for entry in run.entries() if entry.type.startswith("claim.")]
    assert max(moved) < START + 90 * MINUTE
    assert not run.entries()[-1].at > START + 2 * HOUR
    later = [entry.payload for entry in events(run, Decision) if entry.at >= START + 20 * MINUTE]
    orders = [(payload.decider, i.claim) for payload in later for i in payload.intents if isinstance(i, LaunchInstance)]
    assert {decider for decider, _ in orders} <= {"move"}
    assert len(orders) == len(set(orders))
    waiting = [pod for pod in run.simulation.cluster.api.pods.values() if pod.phase == "Pending"]
    assert waiting == []
    assert re_derived(run.memory) == run.memory.entries
