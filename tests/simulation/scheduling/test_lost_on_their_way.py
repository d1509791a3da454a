"""Nodes that are lost before they join, each of them: kerf launches ever fewer (S-57, D-164)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.engine.model.settings import Settings
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, Run, scale, workshop

STATIC = Settings(static_capacity=True)
ENDS = [{"at": f"{second}s", "action": "reclaim", "count": 0} for second in range(14, 3600, 5)]
"""The cloud ends every instance within five seconds of its launch, and says so."""


def launches(run: Run) -> list[int]:
    """When instances were launched, in seconds since the start."""
    return [(entry.at - START) // 1_000 for entry in run.entries("claim.launched")]


def expiring(after: str, **spec: Any) -> list[Any]:
    found = workshop(scale("10s", 0 if spec else 2))
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"]["template"]["spec"]["expireAfter"] = after
            document["spec"] |= spec
            if spec:
                document["spec"].pop("limits", None)
                document["spec"]["disruption"] = {}
    return found


@pytest.mark.parametrize("after", ["0s", "1s", "10s"])
def test_s57_nodes_that_expire_before_they_join_are_ever_fewer(after: str) -> None:
    """They were a thousand an hour."""
    run = Run(expiring(after), until=HOUR)
    assert 8 < len(launches(run)) <= 11
    assert run.codes_without_place() == {"launched-in-vain"}
    assert verify(run.store).exit_code == 0


def test_s57_instances_that_end_at_once_are_ever_fewer() -> None:
    """They were 538 in an hour. The first is replaced at once: one instance that ends is no pattern."""
    run = Run(workshop(scale("10s", 2), *ENDS), until=HOUR)
    first, second, *_ = launches(run)
    assert second - first < 10
    assert 8 < len(launches(run)) <= 11
    assert verify(run.store).exit_code == 0


def test_s57_pods_come_soon_after_instances_stay() -> None:
    """The pause is no longer than what went before it."""
    run = Run(workshop(scale("10s", 2), *ENDS[:12]), until=HOUR)
    assert len(launches(run)) <= 5
    assert not run.runtime.state.indexes.pending
    assert [claim.state for claim in run.runtime.state.facts.claims.values()] == ["initialized"]


def test_d164_a_static_nodepool_pauses_as_well() -> None:
    """It launched 240 nodes an hour for two."""
    run = Run(expiring("10s", replicas=2), until=HOUR, settings=STATIC)
    assert 2 < len(launches(run)) <= 30
    assert verify(run.store).exit_code == 0
