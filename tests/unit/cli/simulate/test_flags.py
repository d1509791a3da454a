"""The flags of `kerf simulate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from tests.support.simulation.command import WORKSHOP, simulated


@pytest.mark.parametrize("until", ["soon", "-1h", "0s"])
def test_an_until_that_is_no_duration_is_refused(until: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, f"--until={until}"]) == 2
    assert capsys.readouterr().err.startswith("KERF332: ")


BUFFER = """
apiVersion: v1
kind: PodTemplate
metadata: {name: spare}
template: {spec: {containers: [{name: a, image: x, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: b}
spec: {podTemplateRef: {name: spare}, replicas: 2}
"""


@pytest.mark.parametrize(("gates", "launched"), [("", 0), ("CapacityBuffer=true,Unknown=true", 2)])
def test_s177_a_buffer_counts_if_its_feature_gate_is_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, gates: str, launched: int
) -> None:
    (tmp_path / "buffer.yaml").write_text(BUFFER)
    flags = ["--feature-gates", gates] if gates else []
    code, outcome = simulated(capsys, WORKSHOP, str(tmp_path / "buffer.yaml"), "--until", "5m", *flags)
    assert (code, outcome["nodes"]["launched"]) == (0, launched)
    assert [note["code"] for note in outcome["notes"]].count("gate-off") == (0 if gates else 2)
    assert [note["code"] for note in outcome["notes"]].count("unknown-gate") == bool(gates)


@pytest.mark.parametrize(
    ("flag", "content", "code"),
    [
        ("--feature-gates", "NodeOverlay", "KERF339: 'NodeOverlay' switches nothing on or off"),
        ("--feature-gates", "NodeOverlay=maybe", "KERF339"),
        ("--scheduler-config", "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}", "KERF338"),
        ("--scheduler-config", "a: [", "KERF331"),
    ],
)
def test_l288_s149_flags_that_the_controller_would_not_start_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flag: str, content: str, code: str
) -> None:
    given = content
    if flag == "--scheduler-config":
        (tmp_path / "config.yaml").write_text(content)
        given = str(tmp_path / "config.yaml")
    assert main(["simulate", WORKSHOP, flag, given]) == 2
    assert code in capsys.readouterr().err
