"""The flags of `kerf simulate`."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.cli.render.simulation.live_story import LiveStory
from kerf.adapters.simulation.build import START
from kerf.engine.model.durations import format_time
from kerf.engine.record.entries import Entry
from tests.support.simulation.command import CROWD, NODE_CLASS, WORKSHOP, example, simulated, written


@pytest.mark.parametrize("until", ["soon", "-1h", "0s", ""])
def test_an_until_that_is_no_duration_is_refused(until: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, f"--until={until}"]) == 2
    assert capsys.readouterr().err.startswith("KERF332: ")


def test_days_are_taken_as_they_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actions = "[{at: 1d, action: scale, name: crowd, replicas: 1}, {at: 1d1h, action: throttle, for: 1d}]"
    head = "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nmetadata: {name: t}\nspec:\n  actions: "
    file = written(tmp_path, NODE_CLASS.format(more="") + CROWD.format(replicas=0) + head + actions)
    code, outcome = simulated(capsys, file, "--until", "1d2h")
    assert (code, outcome["duration"], outcome["nodes"]["launched"]) == (0, 26 * 3600, 1)


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


def test_the_help_tells_when_virtual_time_begins_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--help"]) == 0
    assert format_time(START) in capsys.readouterr().out


@pytest.mark.parametrize("start", ["soon", "2026-02-30", "1969-01-01", "08:00", ""])
def test_a_start_that_is_no_time_is_refused(start: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, f"--start={start}"]) == 2
    assert capsys.readouterr().err.startswith("KERF332: ")


@pytest.mark.parametrize(("start", "removed"), [("2026-03-02", {}), ("2026-03-03T00:00:00Z", {"drifted": 1})])
def test_d14_the_start_decides_which_day_a_budgets_schedule_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: str, removed: dict[str, int]
) -> None:
    """2026-03-02 is a Monday, on which the budget lets no node go."""
    budget = 'disruption: {budgets: [{nodes: "0", schedule: "0 0 * * 1", duration: 24h}]}'
    whole = NODE_CLASS.format(more="").replace("spec:\n  template", f"spec:\n  {budget}\n  template")
    timeline = """
apiVersion: kerf.dev/v1alpha1
kind: Timeline
metadata: {name: t}
spec:
  actions:
    - at: 30m
      action: apply
      object:
"""
    changed = whole.partition("---")[0].replace("al2023@latest", "al2023@v20250807")
    file = written(tmp_path, whole + CROWD.format(replicas=3) + timeline + indent(changed.strip(), " " * 8))
    code, outcome = simulated(capsys, file, "--until", "2h", "--start", start)
    assert (code, outcome["nodes"]["removed"], outcome["start"]) == (0, removed, f"{start[:10]}T00:00:00Z")


def test_quiet_prints_the_summary_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, example("workshop.yaml"), "--quiet"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0].startswith("  virtual time ")
    assert not [line for line in lines if line.startswith("  +")]


def test_progress_is_told_on_a_terminal_also_beside_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("kerf.adapters.cli.render.progress.REFRESHED", 0.0)
    monkeypatch.setattr("kerf.adapters.cli.render.progress.SHOWN_AFTER", 0.0)
    assert main(["simulate", WORKSHOP, example("workshop.yaml"), "--json"]) == 0
    told = capsys.readouterr()
    assert "\rvirtual time +0:00:0" in told.err
    assert told.err.endswith("\r"), "the line is removed at the end"
    assert json.loads(told.out)["nodes"]["launched"] == 1


def test_ctrl_c_ends_a_simulation_with_a_summary_and_a_record_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, record = 0, tmp_path / "run.kerf"
    tell, handler = LiveStory.tell, signal.getsignal(signal.SIGINT)

    def pressing(self: LiveStory, entries: Sequence[Entry]) -> None:
        nonlocal turns
        turns += 1
        if turns == 12:
            signal.raise_signal(signal.SIGINT)
        tell(self, entries)

    monkeypatch.setattr(LiveStory, "tell", pressing)
    code, outcome = simulated(capsys, WORKSHOP, example("workshop.yaml"), "--record", str(record))
    assert (code, outcome["interrupted"], turns) == (130, True, 12)
    assert 0 < outcome["duration"] < 600
    assert main(["verify", str(record)]) == 0
    assert main(["log", str(record)]) == 0
    assert signal.getsignal(signal.SIGINT) is handler
