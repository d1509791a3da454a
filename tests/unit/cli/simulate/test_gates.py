"""`kerf simulate` leaves pods with scheduling gates alone, as a cluster does (S-40)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from tests.support.simulation.command import WORKSHOP, simulated, written

GATED = """
apiVersion: v1
kind: Pod
metadata: {name: gated, namespace: shop}
spec:
  schedulingGates: [{name: example.com/g}]
  containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]
"""
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulingGates: [{name: a}, {name: b}]
      containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]
"""
LATER = """
---
apiVersion: kerf.dev/v1alpha1
kind: Timeline
metadata: {name: later}
spec:
  actions:
    - at: 2m
      action: apply
      object: OBJECT
"""


def later(text: str) -> str:
    """Applied again two minutes later, without gates."""
    inner = "\n".join(line for line in text.strip().splitlines() if "schedulingGates" not in line)
    return text + LATER.replace("OBJECT", "\n" + "\n".join(f"        {line}" for line in inner.splitlines()))


@pytest.mark.parametrize(("text", "pods", "gates"), [(GATED, 1, ["example.com/g"]), (WORKLOAD, 2, ["a", "b"])])
def test_s40_a_pod_with_scheduling_gates_is_not_bound_and_no_node_is_launched_for_it(
    text: str, pods: int, gates: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = simulated(capsys, WORKSHOP, written(tmp_path, text), "--until", "5m")
    assert (code, found["nodes"]["launched"], found["pods"]) == (0, 0, {"Pending": pods})
    (waiting,) = found["waiting"]
    (why,) = waiting["reasons"]
    assert (len(waiting["pods"]), why["code"], why["params"]) == (pods, "scheduling-gated", {"gates": gates})
    assert main(["simulate", WORKSHOP, written(tmp_path, text), "--until", "5m"]) == 0
    assert f"scheduling gates are removed: {', '.join(gates)}\n" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "pods"), [(GATED, 1), (WORKLOAD, 2)])
def test_s40_without_its_gates_it_gets_its_node(
    text: str, pods: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = simulated(capsys, WORKSHOP, written(tmp_path, later(text)), "--until", "10m")
    assert (code, found["pods"], found["waiting"]) == (0, {"Running": pods}, [])


@pytest.mark.parametrize("text", [GATED, WORKLOAD])
def test_another_scheduler_is_noted(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = next(line for line in text.splitlines() if "schedulingGates" in line)
    other = text.replace(gates, gates.partition("schedulingGates")[0] + "schedulerName: packer")
    _, found = simulated(capsys, WORKSHOP, written(tmp_path, other), "--until", "5m")
    assert [note["code"] for note in found["notes"]] == ["other-scheduler"]
    assert "packer" in found["notes"][0]["text"]
    assert found["nodes"]["launched"]
