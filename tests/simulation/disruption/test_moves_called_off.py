"""A PodDisruptionBudget shuts during a move: what was launched for its pods does not stand idle until their node's
deadline (D-60, D-116, D-118, S-49)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.replay.verify.verify import verify
from tests.support.simulation.edits import apply
from tests.support.simulation.run import HOUR, Run, scale, workshop

MINUTE = 60_000
DRIFTS, SHUTS, DRAIN_HAS_BEGUN, OPENS = "30m", "30m20s", "35m", "2h"
GRACE = "4h"


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


def budget(bound: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "inflate", "namespace": "other"},
        "spec": {"selector": {"matchLabels": {"app": "inflate"}}, **bound},
    }


def requested(run: Run, claim: str) -> int:
    at: int = next(entry.at for entry in run.entries("claim.requested") if entry.payload.claim == claim)
    return at


def node_of(run: Run, claim: str) -> str:
    return run.runtime.state.facts.claims[claim].node
