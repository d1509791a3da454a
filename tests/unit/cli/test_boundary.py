"""Whatever ends a command becomes one coded line and an exit code. A traceback is shown for --debug alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kerf.adapters.cli import command_table
from kerf.adapters.cli.command_table import Command
from kerf.adapters.cli.main import main
from kerf.engine.errors import fault_of
from kerf.engine.passwords import without_secrets
from tests.support.repository import ROOT

RECORD = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
SECRET = "wJalrXUtnFEMI"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose `error` the command `kerf fail` raises."""
    module = ModuleType("kerf.failing")
    code = "def fail():\n    '''Fail.'''\n    raise error\n"
    exec(compile(code, "failing.py", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "kerf.failing", module)
    table = (Command("fail", "kerf.failing:fail", "Fail."), *command_table.COMMANDS)
    for name in ("kerf.adapters.cli.boundary", "kerf.adapters.cli.command_table"):
        monkeypatch.setattr(f"{name}.COMMANDS", table)
    return module


def ended(
    failing: ModuleType, error: BaseException, *flags: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    vars(failing)["error"] = error
    code = main(["fail", *flags])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyError("pods"), 70, "KERF900: KeyError: 'pods' (kerf.failing:3) [kerf fail]. This is a defect of kerf: "),
        (RecursionError("too deep"), 70, "KERF900: RecursionError: too deep (kerf.failing:3) [kerf fail]. "),
        (ExceptionGroup("two", [ValueError()]), 70, "KERF900: ExceptionGroup: two (1 sub-exception) "),
        (AssertionError(), 70, "KERF900: AssertionError (kerf.failing:3) [kerf fail]. "),
        (PermissionError(13, "Permission denied", "a.yaml"), 2, "KERF901: Permission denied [kerf fail: a.yaml]. "),
        (OSError(36, "File name too long"), 2, "KERF901: File name too long [kerf fail]. "),
        (OSError("no number"), 70, "KERF900: OSError: no number (kerf.failing:3) [kerf fail]. "),
        (MemoryError(), 2, "KERF902: there is not enough memory [kerf fail]. "),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_nobody_expected_has_a_code_and_an_exit_code(
    failing: ModuleType, error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("kerf.adapters.cli.main.silence_output", lambda: None)
    found, shown = ended(failing, error, capsys=capsys)
    assert (found, shown[: len(said)]) == (code, said)
    assert shown.count("\n") == bool(said)
    assert "Traceback" not in shown


def test_a_defect_says_how_it_is_reported(failing: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(failing, KeyError("pods"), capsys=capsys)
    assert "docs/security.md" in shown
    assert "kerf bundle export --pseudonymise" in shown
    assert "--debug" in shown
    assert "# Reporting a problem" in (ROOT / "docs/security.md").read_text()


def test_a_long_text_is_cut(failing: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = ended(failing, ValueError("x" * 100_000), capsys=capsys)
    assert len(shown) < 1000


@pytest.mark.parametrize("flags", [["--debug"], []])
def test_a_traceback_is_shown_for_debug_alone(
    failing: ModuleType, flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows no password of a URL, no value of a secret variable, and no variable of a frame."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    error = ValueError(f"postgresql://kerf:hunter2@db/kerf {SECRET} AWS_SESSION_TOKEN='Fwo GZX' \x1b[31m")
    code, shown = ended(failing, error, *flags, capsys=capsys)
    assert code == 70
    assert ("Traceback (most recent call last)" in shown) == bool(flags)
    assert ("failing.py" in shown) == bool(flags)
    for secret in ("hunter2", SECRET, "GZX", "\x1b"):
        assert secret not in shown


@pytest.mark.parametrize("flags", [["--debug"], []])
def test_debug_shows_the_traceback_of_a_defect_that_a_command_survives(
    failing: ModuleType, flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a one as `kerf run` records as KERF605, and goes on."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setitem(vars(failing), "fail", lambda: str(fault_of(_raised(ValueError(f"{SECRET} \x1b[31m")), "here")))
    code, shown = main(["fail", *flags]), capsys.readouterr().err
    assert code == 0
    assert ("Traceback (most recent call last)" in shown) == bool(flags)
    assert ("in _raised" in shown) == bool(flags)
    assert SECRET not in shown
    assert "\x1b" not in shown
    fault_of(_raised(ValueError()), "after it")
    assert capsys.readouterr().err == ""


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_debug_may_stand_anywhere_and_shows_coded_errors_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.kerf")
    for arguments in (["--debug", "verify", missing], ["verify", "--debug", missing], ["verify", missing, "--debug"]):
        assert main(arguments) == 2
        shown = capsys.readouterr().err
        assert "Traceback" in shown
        assert shown.splitlines()[-1].startswith("KERF113: ")
    assert main(["verify", "--", "--debug"]) == 2
    assert capsys.readouterr().err == "KERF113: there is no such file or folder [--debug]. Check the record's path\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("AWS_SECRET_ACCESS_KEY=abc, more", "AWS_SECRET_ACCESS_KEY=…, more"),
        ("{'GITHUB_TOKEN': 'a b', 'HOME': '/root'}", "{'GITHUB_TOKEN': …, 'HOME': '/root'}"),
        ("token = self.token", "token = self.token"),
        ("the secret is abcdef, not ab", "the secret is …, not ab"),
    ],
)
def test_secrets_like_those_of_an_environment_are_left_out(text: str, shown: str) -> None:
    assert without_secrets(text, {"MY_SECRET": "abcdef", "A_TOKEN": "ab", "HOME": "/root"}) == shown


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("stream", "code"), [("stdout", 2), ("stderr", 0)])
def test_output_that_cannot_be_written_changes_no_exit_code(stream: str, code: int) -> None:
    """The interpreter would try again at its end, fail, and exit with 120."""
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: full.fileno()}
        done = subprocess.run([sys.executable, "-m", "kerf", "--version"], cwd=ROOT, text=True, check=False, **streams)  # type: ignore[call-overload]
    assert done.returncode == code
    assert "Traceback" not in (done.stderr or "")
    assert (done.stderr or "").startswith("KERF901: No space left on device" if stream == "stdout" else "")


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_defect(closed: str) -> None:
    command = f'exec "{sys.executable}" -m kerf --version {closed}>&-'
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, check=False, env=dict(os.environ))
    assert (done.returncode, done.stderr) == (0, b"")


def unread(*command: str) -> tuple[int, bytes]:
    """The exit code and the errors of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = [sys.executable, "-m", "kerf", *command]
        done = subprocess.run(ran, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", [["status"], ["log"], ["log", "--json"], ["verify"]])
def test_a_reader_that_has_seen_enough_is_no_failure(command: list[str]) -> None:
    """1 would say that something was found, to a script with `set -o pipefail`."""
    assert unread(*command, str(RECORD)) == (0, b"")


def test_a_help_page_whose_reader_has_seen_enough_is_no_failure() -> None:
    """rich, which prints it, would end the process with 1."""
    assert unread("log", "--help") == (0, b"")


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
def test_what_was_found_is_the_exit_code_also_if_nobody_reads_it(tmp_path: Path, form: list[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy:\n- max_hourly_cost: 0.001\n")
    assert unread("check", str(policy), str(RECORD), *form) == (1, b"")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["diff", "tests/golden/spot-interruption", "start"], " -> "),
        (["--help"], "+- Begin ------"),
        (["verify", "--help"], "+- Parameters ------"),
    ],
)
def test_a_terminal_without_unicode_shows_something_like_it(arguments: list[str], shown: str) -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    said = subprocess.run(
        [sys.executable, "-m", "kerf", *arguments], cwd=ROOT, env=env, capture_output=True, check=True
    )
    assert shown in said.stdout.decode("ascii")
