"""Nodes that go together where the budgets let all of them go, with the whole controller (issue 5; D-110, L-198)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.lifecycle.drain.eviction_waves import WAVE_INTERVAL
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, LaunchInstance, MoveStepResult, ProposedMovesResult
from kerf.projections.cluster_status.draining_pods import draining_pods
from tests.support.records import re_derived
from tests.support.simulation.run import Run, scale, workshop

MINUTE = 60_000
SIZES = {"large": "1500m", "middle": "700m", "little": "100m"}
REPLICAS, LEFT = {"large": 24, "middle": 32, "little": 90}, 3
"""All are scaled to one in three."""


def deployment(name: str) -> dict[str, Any]:
    requests = {"cpu": SIZES[name], "memory": "256Mi"}
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": REPLICAS[name], "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "other"},
        "spec": spec,
    }


def scaled_in(faults: FaultPlan | None = None, *, until: int = 40 * MINUTE) -> Run:
    actions = [{**scale("20m", REPLICAS[name] // LEFT), "name": name} for name in SIZES]
    documents = workshop(*actions)
    for document in documents:
        if document["kind"] == "NodePool":
            document["spec"]["disruption"] = {"consolidateAfter": "10s", "budgets": [{"nodes": "100%"}]}
    return Run([*documents, *map(deployment, SIZES)], until=until, faults=faults)


def since(run: Run, kind: type[Any]) -> list[tuple[int, Any]]:
    """(ms after the scale-in, payload)."""
    begun = START + 20 * MINUTE
    return [
        (entry.at - begun, entry.payload) for entry in run.entries() if entry.at > begun and type(entry.payload) is kind
    ]


def results(run: Run, kind: type[Any]) -> list[tuple[int, Any]]:
    return [(at, made.result) for at, made in since(run, Decision) if isinstance(made.result, kind)]


def test_all_of_them_go_at_once_and_their_large_pods_first() -> None:
    run = scaled_in()
    proposed = [move for _, result in results(run, ProposedMovesResult) for move in result.proposed]
    by_turns = {claim for move in proposed if move.turns for claim in move.claims}
    assert len(by_turns) > 2
    started = [(at, step.step) for at, step in results(run, MoveStepResult) if step.begun.claims[0] in by_turns]
    assert len(set(started)) == 1
    evicted: dict[str, list[int]] = {}
    for at, gone in since(run, ev.PodEvicted):
        assert gone.claim in by_turns
        evicted.setdefault(gone.pod.removeprefix("other/").split("-")[0], []).append(at)
    assert list(evicted) == list(SIZES)
    for sooner, later in zip(list(SIZES), list(SIZES)[1:], strict=False):
        assert max(evicted[sooner]) < min(evicted[later])
        assert WAVE_INTERVAL <= min(evicted[later]) - min(evicted[sooner]) < 2 * WAVE_INTERVAL
    assert max(at for at, _ in since(run, ev.Terminated)) < MINUTE
    orders = [i for _, made in since(run, Decision) for i in made.intents if isinstance(i, LaunchInstance)]
    assert orders == []
    assert re_derived(run.memory) == run.memory.entries


def test_between_the_turns_it_is_told_what_pods_wait_for() -> None:
    state = scaled_in(until=20 * MINUTE + 16_040 + WAVE_INTERVAL // 2).runtime.state
    left = [draining_pod for claim in state.facts.claims.values() for draining_pod in draining_pods(claim, state)]
    assert {leaving.pod.split("-")[0] for leaving in left} == {"other/middle", "other/little"}
    assert {leaving.reason.code for leaving in left} == {"waiting-for-turn"}


@pytest.mark.parametrize("point", list(KillPoint))
@pytest.mark.parametrize("intent", [75, 80])
def test_killed_between_the_turns_no_pod_is_evicted_twice(intent: int, point: KillPoint) -> None:
    run = scaled_in(FaultPlan(kills=(Kill(intent, point),)))
    assert run.driver.deaths == 1
    assert not run.runtime.state.facts.moves
    gone = [payload.uid for _, payload in since(run, ev.PodEvicted)]
    assert len(gone) == len(set(gone))
    assert re_derived(run.memory) == run.memory.entries
