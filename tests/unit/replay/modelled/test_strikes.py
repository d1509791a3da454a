"""What the cloud and users did to instances, by offering and rank."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.replay.modelled.workload import Strike
from tests.support.simulation.modelled import workload_of
from tests.support.simulation.run import HOUR, Run, scale, workshop


def strikes(*actions: dict[str, Any]) -> list[tuple[str, int, int]]:
    run = Run(workshop(scale("10s", 5), *actions, capacity_type="spot"), until=HOUR)
    steps = [(timed.at, timed.step) for timed in workload_of(run.store).steps]
    return [(step.kind, (at - run.simulation.start) // 1000, step.lasts) for at, step in steps if type(step) is Strike]


def on_spot(kind: str, /, **more: str) -> dict[str, Any]:
    return {"at": "20m", "action": kind, "capacityType": "spot", **more}


@pytest.mark.parametrize("kind", ["interrupt", "reclaim", "vanish", "cordon"])
def test_each_blow_strikes_once_and_when_it_did(kind: str) -> None:
    """An instance that vanishes is noticed 40 s later, when its kubelet does not answer."""
    assert strikes(on_spot(kind)) == [(kind, 1200, 0)]


def test_a_deletion_by_a_user_strikes_and_kerfs_own_do_not() -> None:
    assert strikes(on_spot("delete", kind="NodeClaim"), scale("40m", 0)) == [("delete", 1200, 0)]


def test_a_silent_kubelet_is_silent_as_long_as_it_was() -> None:
    assert strikes(on_spot("node-notready", **{"for": "3m"})) == [("node-notready", 1200, 180_000)]
