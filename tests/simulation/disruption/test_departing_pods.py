"""A pod that may not leave its expired node yet gets its next node when it comes, not at once (S-46…S-49, D-132)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.engine.model.labels import ZONE
from kerf.engine.record.decisions import ProposedMovesResult
from kerf.replay.explain.pod import explain_pod
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, ZONES, Run, scale, workshop

GRACE = 0  # as the example writes it
BOUND_AFTER = 70
"""Milliseconds from the forced deletion to the bind of the pod that takes its place, as onto a node that has long stood
there."""


@pytest.mark.parametrize("held_by", ["annotation", "maxUnavailable", "minAvailable"])
def test_s48_s49_d132_a_node_of_an_hour_with_twelve_to_go_is_launched_anew_once(held_by: str) -> None:
    """Each hour the new node stood idle, expired itself and was launched again: 14 launches in these 14 hours."""
    run = Run(expiring(held_by), until=14 * HOUR)
    first, second = run.entries("claim.requested")
    (forced,) = run.entries("claim.pod-forced")
    expired = next(entry for entry in run.entries("claim.tainted") if entry.payload.claim == first.payload.claim)
    assert 0 <= forced.at - (expired.payload.deadline - GRACE) < 1_000
    ready = next(e for e in run.entries("claim.initialized") if e.payload.claim == second.payload.claim)
    assert second.at < ready.at < forced.at < second.at + 6 * 60_000
    assert bound_at(run)[-1] - forced.at <= BOUND_AFTER
    assert verify(run.store).exit_code == 0


def test_s48_explain_says_what_keeps_it_and_when_its_next_place_is_looked_for() -> None:
    run = Run(expiring("annotation"), until=2 * HOUR)
    (pod,) = run.runtime.state.facts.pods.values()
    explained = explain_pod(run.store, pod.key)
    assert [reason.code for reason in explained.kept] == ["kept-by-annotation"]
    assert explained.kept[0].params["node"] == pod.node
    moments = explained.kept[0].params["leaves"], explained.kept[0].params["planned"]
    assert moments == ("2026-01-01T13:00:11.120Z", "2026-01-01T12:55:11.120Z")


def test_d50_nothing_is_proposed_again_and_again_behind_a_pod_that_holds_a_node() -> None:
    """The idle node was proposed and withdrawn each two minutes, for hours, and tainted each time: the node that goes
    uses the budget."""
    gone = {"at": "30m", "action": "delete", "kind": "NodeClaim", "zone": ZONES[0]}
    found = workshop(scale("10s", 1), gone, scale("40m", 0))
    pool, deployment = (next(d for d in found if d["kind"] == kind) for kind in ("NodePool", "Deployment"))
    pool["spec"]["template"]["spec"]["terminationGracePeriod"] = "4h"
    held = copy.deepcopy(deployment)
    held["metadata"]["name"], held["spec"]["replicas"] = "held", 1
    held["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    for document, zone in ((held, ZONES[0]), (deployment, ZONES[1])):
        document["spec"]["template"]["spec"]["nodeSelector"][ZONE] = zone
    run = Run([*found, held], until=5 * HOUR)
    results = [(entry.at, entry.payload.result) for entry in run.entries("decision.made")]
    proposed = [at for at, result in results if isinstance(result, ProposedMovesResult) and result.proposed]
    assert len(proposed) <= 3
    assert min(proposed) > START + 4 * HOUR, "when the held pod leaves soon"
    assert [claim.node_pool for claim in run.runtime.state.facts.claims.values()] == ["default"], "that of the held pod"
    assert verify(run.store).exit_code == 0


def expiring(held_by: str) -> list[Any]:
    """One pod that may not be evicted, on nodes that expire after an hour, with twelve to go."""
    found = workshop(scale("10s", 1))
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"] |= {"expireAfter": "1h", "terminationGracePeriod": "12h"}
        elif document["kind"] == "Deployment" and held_by == "annotation":
            document["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    if held_by != "annotation":
        bound = {"maxUnavailable": 0} if held_by == "maxUnavailable" else {"minAvailable": 1}
        found.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "inflate", "namespace": "other"},
                "spec": {"selector": {"matchLabels": {"app": "inflate"}}, **bound},
            }
        )
    return found


def bound_at(run: Run) -> list[int]:
    """When each pod was bound, in order."""
    first: dict[str, int] = {}
    for entry in run.entries("pod.seen"):
        if entry.payload.node:
            first.setdefault(entry.payload.uid, entry.at)
    return list(first.values())
