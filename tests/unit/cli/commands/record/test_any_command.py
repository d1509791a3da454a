"""What the commands on records have in common: one coded line for each error, help, records that grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support.repository import ROOT
from tests.support.world import World


@pytest.mark.parametrize(
    "command",
    [
        ("log", "--since", "-10m"), ("log", "--until", "-0s", "--json"), ("at", "-0s"), ("at", "-0s", "--json"),
        ("at", "--json"), ("explain", "pod", "default/b", "--at", "-0s"), ("story", "default/b", "--at", "-0s"),
    ],
)  # fmt: skip
def test_a_time_before_the_end_begins_with_a_hyphen_and_is_a_time(
    command: tuple[str, ...], kerf: Any, record: Path
) -> None:
    name, *rest = command
    code, out, err = kerf(name, record, *rest)
    assert (code, bool(out), err) == (0, True, "")


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--at"), ("whatif", "--no-capacity", "m5.large", "--at"), ("log", "--since"), ("log", "--until"),
        ("at",), ("explain", "pod", "default/b", "--at"), ("cost", "--since"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nothing", ["", " "])
def test_an_empty_variable_of_a_script_is_no_time(
    command: tuple[str, ...], nothing: str, kerf: Any, record: Path
) -> None:
    name, *rest = command
    code, out, err = kerf(name, record, *rest, nothing)
    assert (code, out) == (2, "")
    assert err.startswith("KERF202: '' is neither a position nor a time")


def test_a_duration_that_no_clock_holds_is_named_as_such(kerf: Any, record: Path) -> None:
    assert "292 years" in kerf("at", record, "+999999999h")[2]


def test_a_limit_below_nothing_is_usage(kerf: Any, record: Path) -> None:
    code, _, err = kerf("verify", record, "--limit", "-1")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF200: ")


@pytest.mark.parametrize(
    ("command", "flag"), [("simulate", "--quiet"), ("validate", "--strict"), ("convert", "--json")]
)
def test_files_may_stand_before_and_after_a_flag(command: str, flag: str, kerf: Any) -> None:
    first, second = (ROOT / "docs" / "examples" / name for name in ("workshop", "simulations/workshop.yaml"))
    together = kerf(command, flag, first, second)
    assert together[0] == 0
    assert kerf(command, first, flag, second) == kerf(command, first, second, flag) == together


def test_records_may_stand_before_and_after_a_flag(kerf: Any, record: Path) -> None:
    policy = ROOT / "docs" / "examples" / "ci" / "policy.yaml"
    together = kerf("check", policy, record, record, "--json")
    assert kerf("check", policy, record, "--json", record) == together


def test_what_a_command_has_no_use_for_is_named(kerf: Any, record: Path) -> None:
    code, _, err = kerf("log", record, "node/n1")
    assert code == 2
    assert err.startswith("KERF200: kerf log takes no more arguments, and has no use for 'node/n1'. Try --help")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["story"], "kerf story needs RECORD."),
        (["import", "k.log"], "kerf import needs --record or --timeline."),
        (["import", "k.log", "--record"], "kerf import needs --record with a value."),
    ],
)
def test_what_is_missing_is_named(kerf: Any, arguments: list[str], said: str) -> None:
    code, _, err = kerf(*arguments)
    assert (code, err.splitlines()) == (2, [f"KERF200: {said} Try --help"])


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        (["verify", "nowhere.kerf"], "KERF113"),
        (["verify"], "KERF200"),
        (["frobnicate"], "KERF200"),
        (["at", "{record}", "yesterday"], "KERF202"),
        (["explain", "{record}", "pod", "default/nobody"], "KERF203"),
        (["explain", "{record}", "decision", "twelve"], "KERF202"),
        (["explain", "{record}", "planet", "mars"], "KERF200"),
        (["explain", "{record}", "planet/mars"], "KERF203"),
        (["explain", "{record}", "node"], "KERF200"),
        (["explain", "{record}", "node/"], "KERF200"),
        (["story", "{record}", "nobody"], "KERF203"),
        (["story", "{record}", "planet", "mars"], "KERF200"),
        (["story", "{record}", "node"], "KERF200"),
        (["story", "{record}", "nodeclass"], "KERF200"),
        (["log", "{record}", "--since", "soon"], "KERF202"),
        (["bundle", "export", "{record}", "{record}"], "KERF114"),
        (["bundle", "inspect", "{record}"], "KERF108"),
    ],
)
def test_an_error_is_one_coded_line_on_stderr(kerf: Any, record: Path, tokens: list[str], code: str) -> None:
    status, out, err = kerf(*(token.format(record=record) for token in tokens))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"{code}: ")


@pytest.mark.parametrize("command", ["", "log", "at", "explain", "story", "verify", "bundle", "bundle export"])
def test_help(kerf: Any, command: str) -> None:
    code, out, _ = kerf(*command.split(), "--help")
    assert code == 0
    assert "Usage: kerf" in out


@pytest.mark.parametrize("command", ["log", "at", "explain", "story", "verify"])
def test_help_has_examples(kerf: Any, command: str) -> None:
    assert f"kerf {command} " in kerf(command, "--help")[1].replace("Usage: kerf", "")


def test_a_record_that_somebody_else_is_writing_can_be_read(kerf: Any, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "live.kerf", "create")
    World(store).prepare()  # type: ignore[arg-type]
    code, out, _ = kerf("log", tmp_path / "live.kerf")
    assert code == 0
    assert "NodePool default is there" in out
    store.close()


def test_observe_report_of_a_record_of_control_mode_is_refused(kerf: Any, record: Path) -> None:
    """kerf acted itself there: nothing is beside what it decided, so the report would be empty."""
    code, out, err = kerf("observe", "report", record)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("KERF206: ")
    assert "kerf run --mode observe" in err


@pytest.mark.parametrize("command", [("whatif", "my.kerf"), ("replay", "my.kerf"), ("check", "policy.yaml", "my.kerf")])
def test_two_forms_of_one_answer_are_refused(kerf: Any, command: tuple[str, ...]) -> None:
    code, out, err = kerf(*command, "--json", "--markdown")
    assert (code, out) == (2, "")
    assert err == "KERF200: --json and --markdown are two forms of one answer. Give one of them\n"
