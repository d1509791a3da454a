"""A PodDisruptionBudget shuts during a move: what was launched for its pods does not stand idle until their node's
deadline (D-60, D-116, D-118, S-49)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import MoveStepResult
from kerf.replay.verify.verify import verify
from tests.support.simulation.edits import apply
from tests.support.simulation.run import HOUR, Run, scale, workshop

MINUTE = 60_000
DRIFTS, SHUTS, DRAIN_HAS_BEGUN, OPENS = "30m", "30m20s", "35m", "2h"
GRACE = "4h"


@pytest.mark.parametrize("bound", [{"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": 2}])
def test_d118_a_move_is_called_off_before_its_drain_if_its_pods_may_not_leave(bound: dict[str, Any]) -> None:
    """Then the node goes without a replacement, which comes shortly before the deadline (D-89). The first one stood
    idle for four hours."""
    run = Run(drifting(shut(SHUTS, bound)), until=6 * HOUR)
    old, first, second = [entry.payload.claim for entry in run.entries("claim.requested")]
    assert [(step.step, step.reason.code) for step in steps(run)][:2] == [
        ("started", "drifted"),
        ("abandoned", "pod-budget-exhausted"),
    ]
    assert idle(run, first) < 3 * MINUTE
    (forced, _) = run.entries("claim.pod-forced")
    assert forced.payload.claim == old
    assert forced.at - 6 * MINUTE < requested(run, second) < forced.at
    assert [pod.node for pod in run.runtime.state.facts.pods.values()] == [node_of(run, second)] * 2
    assert verify(run.store).exit_code == 0


@pytest.mark.parametrize(("grace", "first"), [("4h", "drain"), ("10m", "drain"), ("5m", "launch")])
def test_s49_d89_a_drifted_node_whose_pods_are_all_needed_has_its_next_node_when_it_must_go(
    grace: str, first: str
) -> None:
    """The next one stood idle for the whole grace period. Where that is short, it still comes first."""
    given = drifting(grace=grace)
    given[-1]["spec"] = budget({"minAvailable": 2})["spec"]
    run = Run(given, until=6 * HOUR)
    old, second = [entry.payload.claim for entry in run.entries("claim.requested")]
    (drained,) = [entry.at for entry in run.entries("claim.drain-started") if entry.payload.claim == old]
    (forced, _) = run.entries("claim.pod-forced")
    assert (requested(run, second) < drained) == (first == "launch")
    assert forced.at - 6 * MINUTE < requested(run, second) < forced.at - 3 * MINUTE
    assert [pod.node for pod in run.runtime.state.facts.pods.values()] == [node_of(run, second)] * 2
    assert verify(run.store).exit_code == 0


def test_d118_a_node_without_a_grace_period_stays_until_its_budget_opens() -> None:
    """It would have been drained for as long as the budget is shut, and nobody can take that back."""
    run = Run(
        drifting(shut(SHUTS, {"maxUnavailable": 0}), shut(OPENS, {"maxUnavailable": 1}), grace=""), until=3 * HOUR
    )
    old, first, second = [entry.payload.claim for entry in run.entries("claim.requested")]
    assert idle(run, first) < 3 * MINUTE
    (drained,) = [entry.at for entry in run.entries("claim.drain-started") if entry.payload.claim == old]
    assert START + 2 * HOUR < requested(run, second) < drained < START + 2 * HOUR + 2 * MINUTE
    assert [(c.name, c.state) for c in run.runtime.state.facts.claims.values()] == [(second, INITIALIZED)]
    assert verify(run.store).exit_code == 0


def test_d60_d50_what_was_launched_goes_as_empty_beside_the_node_that_uses_the_budget() -> None:
    """The budget shuts when the drain has begun, which cannot be taken back. Until then it lets no pod go either, for
    one of its workload has no place; but that may end at any time, so the new node waits."""
    run = Run(drifting(shut(DRAIN_HAS_BEGUN, {"maxUnavailable": 0}), *nowhere()), until=6 * HOUR)
    old, first, second = [entry.payload.claim for entry in run.entries("claim.requested")]
    (emptied,) = [entry for entry in run.entries("claim.tainted") if entry.payload.why == "empty"]
    assert emptied.payload.claim == first
    assert START + 35 * MINUTE < emptied.at < START + 37 * MINUTE
    (forced, _) = run.entries("claim.pod-forced")
    assert forced.payload.claim == old
    assert forced.at - 6 * MINUTE < requested(run, second) < forced.at
    assert verify(run.store).exit_code == 0


def test_d48_budgets_that_let_nothing_go_keep_an_unused_node_too() -> None:
    frozen = copy.deepcopy(drifted())
    frozen["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
    actions = shut(DRAIN_HAS_BEGUN, {"maxUnavailable": 0}), apply("34m", frozen)
    run = Run(drifting(*actions, *nowhere()), until=2 * HOUR)
    assert [entry for entry in run.entries("claim.tainted") if entry.payload.why == "empty"] == []
    assert len(run.runtime.state.facts.claims) == 2


def test_d66_a_budget_that_shuts_and_opens_each_two_minutes_costs_few_launches() -> None:
    """Each time it shuts just before the drain would begin."""
    swings = [
        shut(f"{30 + 2 * number}m{20 if number == 0 else 0}s", {"maxUnavailable": number % 2}) for number in range(30)
    ]
    run = Run(drifting(*swings, grace=""), until=3 * HOUR)
    assert len(run.entries("claim.requested")) <= 4
    assert verify(run.store).exit_code == 0


def drifting(*actions: dict[str, Any], grace: str = GRACE) -> list[Any]:
    """Two pods under a PodDisruptionBudget of one, on one node, whose NodePool is changed."""
    found = [
        *workshop(scale("10s", 2), apply(DRIFTS, drifted(grace)), *[one for one in actions if "at" in one]),
        *[one for one in actions if "at" not in one],
        budget({"maxUnavailable": 1}),
    ]
    for document in found:
        if document["kind"] == "NodePool" and grace:
            document["spec"]["template"]["spec"]["terminationGracePeriod"] = grace
    return found


def drifted(grace: str = GRACE) -> dict[str, Any]:
    document: dict[str, Any] = next(one for one in workshop() if one["kind"] == "NodePool")
    document["spec"]["template"]["metadata"]["labels"]["team"] = "b"
    if grace:
        document["spec"]["template"]["spec"]["terminationGracePeriod"] = grace
    return document


def nowhere() -> list[dict[str, Any]]:
    """A pod of the same budget that no NodePool takes, so that it lets no other go."""
    found = copy.deepcopy(next(one for one in workshop() if one["kind"] == "Deployment"))
    found["metadata"]["name"], found["spec"]["replicas"] = "nowhere", 1
    found["spec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
    return [found]


def budget(bound: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "inflate", "namespace": "other"},
        "spec": {"selector": {"matchLabels": {"app": "inflate"}}, **bound},
    }


def shut(at: str, bound: dict[str, Any]) -> dict[str, Any]:
    return apply(at, budget(bound))


def steps(run: Run) -> list[MoveStepResult]:
    found = [entry.payload.result for entry in run.entries("decision.made")]
    return [result for result in found if isinstance(result, MoveStepResult)]


def requested(run: Run, claim: str) -> int:
    at: int = next(entry.at for entry in run.entries("claim.requested") if entry.payload.claim == claim)
    return at


def idle(run: Run, claim: str) -> int:
    """How long a node was in service until its drain began (ms)."""
    kinds = ("claim.initialized", "claim.drain-started")
    ready, begun = (next(entry for entry in run.entries(kind) if entry.payload.claim == claim) for kind in kinds)
    idle_for: int = begun.at - ready.at
    return idle_for


def node_of(run: Run, claim: str) -> str:
    return run.runtime.state.facts.claims[claim].node
