"""Long work says how far it is: on a terminal's standard error, beside any output, and where Ctrl-C ended it."""

from __future__ import annotations

import json
import re

import pytest

from kerf.adapters.cli import records
from kerf.adapters.cli.main import main
from kerf.adapters.cli.render import progress
from kerf.adapters.cli.render.lines import print_text
from kerf.adapters.cli.render.progress import progress_line
from kerf.replay.verify import verify
from tests.support.repository import ROOT

RECORD = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
ENTRIES = 67


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error is a terminal, on which a line is shown at once."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(progress, "REFRESHED", 0.0)
    monkeypatch.setattr(records, "PROGRESS_EVERY", 20)


@pytest.mark.parametrize("command", ["status", "at", "log", "cost", "evictions", "churn", "verify", "story", "explain"])
def test_every_command_on_a_record_tells_and_removes_its_line(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch)
    named = ["np/default"] if command in ("story", "explain") else []
    assert main([command, str(RECORD), *named, "--json"]) == 0
    out, err = capsys.readouterr()
    said = "decided again up to position" if command == "verify" else "entries read (again counts again):"
    assert f"\r{said} " in err
    assert err.endswith("\r")
    assert [json.loads(line) for line in out.splitlines()] if command == "log" else json.loads(out)


def test_nothing_is_told_before_two_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with progress_line("at position") as tell:
        for second in range(4):
            clock[0] = second
            tell(second * 1_000)
            assert ("at position" in capsys.readouterr().err) == (second >= progress.SHOWN_AFTER)


def test_nothing_is_told_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(RECORD)]) == 0
    assert capsys.readouterr().err == ""


def test_what_is_printed_removes_the_line_and_inner_work_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch)
    with progress_line("outer") as outer, progress_line("inner") as inner:
        outer(1)
        inner(2)
        print_text("text")
        told = capsys.readouterr()
        assert (told.err, told.out) == ("\rinner 2\r" + " " * 7 + "\r", "text\n")


def test_entries_that_are_read_again_are_said_to_count_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number may be larger than that of the record's entries."""
    on_terminal(monkeypatch)
    assert main(["explain", str(RECORD), "np/default", "--json"]) == 0
    told = re.findall(r"entries read \(again counts again\): (\d+)", capsys.readouterr().err)
    assert max(map(int, told)) > ENTRIES


def test_ctrl_c_says_how_far_it_came_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = verify._Run._tell_progress

    def pressed(self: verify._Run) -> None:
        told(self)
        if self._last > 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(verify._Run, "_tell_progress", pressed)
    assert main(["verify", str(RECORD), "--json"]) == 130
    out, err = capsys.readouterr()
    assert (out, err) == ("", err)
    assert err.startswith("Stopped by Ctrl-C: decided again up to position 4")
    monkeypatch.undo()
    assert main(["status", str(RECORD)]) == 0
    assert capsys.readouterr().err == ""
