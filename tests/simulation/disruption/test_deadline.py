"""A node's terminationGracePeriod against a pod that will not leave (L-203, D-151)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.replay.verify.verify import verify
from tests.support.simulation.run import Run, scale, workshop


@pytest.mark.parametrize(("written", "forced_before_end"), [(None, 30_000), (90, 90_000)])
def test_a_protected_pod_is_forced_off_by_the_deadline(written: int | None, forced_before_end: int) -> None:
    """Pods that name no grace period have the API server's 30 s, as on a real cluster: without one, none is forced."""
    run = Run(held(written))
    (tainted,) = run.entries("claim.tainted")
    (forced,) = run.entries("claim.pod-forced")
    assert tainted.payload.deadline == tainted.at + 600_000
    assert 0 < forced.at - (tainted.payload.deadline - forced_before_end) < 1_000
    (ended,) = run.entries("claim.terminated")
    assert ended.payload.claim == tainted.payload.claim
    assert verify(run.store).exit_code == 0


def held(grace: int | None) -> list[Any]:
    """One pod that carries do-not-disrupt on a node that expires after half an hour, with ten minutes to go."""
    found = workshop(scale("10s", 1))
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"] |= {"expireAfter": "30m", "terminationGracePeriod": "10m"}
        elif document["kind"] == "Deployment":
            template = document["spec"]["template"]
            template["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
            template["spec"].pop("terminationGracePeriodSeconds", None)
            if grace is not None:
                template["spec"]["terminationGracePeriodSeconds"] = grace
    return found
