"""Each command that reads a record answers the same of a record in each of its forms, and takes the same moments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from kerf.adapters.cli.command_table import COMMANDS
from kerf.adapters.cli.main import main
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.files.bundle import export_bundle
from kerf.adapters.store.files.golden import GoldenStore
from kerf.adapters.store.read_only import blobs_of
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.store import Append
from tests.support.repository import ROOT
from tests.support.servers.postgres import MISSING, binaries, running

GOLDEN = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
"""From 00:00:00 to 00:08:10 of 2026-01-01. The live store holds it while its writer has it open."""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "status": (),
    "diff": ("start", "end"),
    "log": (),
    "at": ("end",),
    "explain": ("inflate",),
    "story": ("inflate",),
    "cost": (),
    "evictions": (),
    "churn": (),
    "capacity": (),
    "whatif": ("--at", "+0s", "--set", "nodepool/default.spec.limits.cpu=0"),
    "verify": (),
}
"""Each command that reads a record, with what it is asked."""
ELSEWHERE = {"sweep", "sql", "export", "check", "replay", "ui"}
"""Commands on several records, or that write files: they open records as the others do, and have tests of their own."""
MOMENTS = ("17", "+2m", "-1m", "00:02", "00:02:30", "2026-01-01 00:02", "2026-01-01T02:02:00+02:00", "start", "end")
AT = {
    "status": ("--at", "{}"),
    "diff": ("start", "{}"),
    "log": ("--until", "{}"),
    "at": ("{}",),
    "explain": ("nodepool/default", "--at", "{}"),
    "story": ("nodepool/default", "--at", "{}"),
    "cost": ("--until", "{}"),
    "evictions": ("--until", "{}"),
    "churn": ("--until", "{}"),
    "capacity": ("--until", "{}"),
    "whatif": ("--at", "{}", "--setting", "batch_idle=2s"),
}
"""The same, with a moment. `verify` is about all of a record."""
NAMED = {"explain": ("inflat",), "story": ("inflat",), "whatif": ("--delete", "nodepool/defaul")}
_SECONDS = re.compile(r'in [0-9.]+s \([0-9,]+ entries/s\)|"seconds": [0-9.e-]+')
Told = tuple[int, str, str]


def copied(store: ChainedStore) -> None:
    golden = GoldenStore(GOLDEN)
    for _, turn in groupby(golden.scan(), key=lambda entry: entry.turn):
        entries = tuple(turn)
        named = {digest for entry in entries for digest in blobs_of(entry)}
        store.append(Append(entries, {digest: golden.blob(digest) for digest in named}))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The record by the name of its form; the live one is held by its writer."""
    folder = tmp_path_factory.mktemp("forms")
    closed = SQLiteStore(folder / "closed.kerf", "create")
    copied(closed)
    closed.close()
    writer = SQLiteStore(folder / "live.kerf", "create")
    copied(writer)
    export_bundle(writer, folder / "it.kerfb")
    yield {
        "golden": str(GOLDEN),
        "file": str(folder / "closed.kerf"),
        "live": f"sqlite://{folder / 'live.kerf'}",
        "bundle": str(folder / "it.kerfb"),
    }
    writer.close()


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    def run(command: str, place: str, *arguments: str) -> Told:
        code = main([command, place, *arguments])
        out, err = capsys.readouterr()
        return code, _SECONDS.sub("", out.replace(place, "PLACE")), err.replace(place, "PLACE")

    return run


def test_all_commands_on_records_are_asked() -> None:
    reading = {command.name for command in COMMANDS if {"record", "figures"} & set(command.path.split("."))}
    assert reading - ELSEWHERE == set(QUESTIONS)
    assert AT.keys() == QUESTIONS.keys() - {"verify"}


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_command_answers_the_same_of_each_form(
    command: str, places: dict[str, str], ask: Callable[..., Told]
) -> None:
    """Issue 16, point 1."""
    answers = {form: ask(command, place, *QUESTIONS[command], "--json") for form, place in places.items()}
    code, out, err = answers["golden"]
    assert (code, err) == (0, "")
    assert len(out) > 20
    assert set(answers.values()) == {answers["golden"]}


@pytest.mark.slow
@pytest.mark.skipif(binaries() is None, reason=MISSING)
def test_a_database_answers_the_same(ask: Callable[..., Told]) -> None:
    from kerf.adapters.store.postgres.store import PostgresStore

    with running() as server:
        writer = PostgresStore(server.url, "create")
        copied(writer)
        for command, question in QUESTIONS.items():
            assert ask(command, server.url, *question, "--json") == ask(command, str(GOLDEN), *question, "--json")
        writer.close()


OFTEN = MOMENTS[1::4]
"""The other moments are asked by `make test-all`."""
PAIRS = [
    pytest.param(command, moment, marks=[] if moment in OFTEN else pytest.mark.slow)
    for command in AT
    for moment in MOMENTS
]


@pytest.mark.parametrize(("command", "moment"), PAIRS)
def test_a_command_takes_each_way_to_write_a_moment(
    command: str, moment: str, places: dict[str, str], ask: Callable[..., Told]
) -> None:
    code, out, err = ask(command, places["file"], *(part.format(moment) for part in AT[command]))
    if moment == "start" and command in ("explain", "story"):
        assert (code, "was not there yet" in err) == (2, True)
    else:
        assert (code, bool(out), "KERF" in err) == (0, True, False)


@pytest.mark.parametrize("command", AT)
def test_a_command_refuses_what_is_no_moment_of_the_record(
    command: str, places: dict[str, str], ask: Callable[..., Told]
) -> None:
    for moment in ("2020-01-01", "now"):
        arguments = [part.format(moment) for part in AT[command]]
        code, out, err = ask(command, places["bundle"], *arguments)
        assert (code, out, err[:8]) == (2, "", "KERF202:"), (moment, err)


@pytest.mark.parametrize("command", NAMED)
def test_a_command_names_the_nearest_of_an_unknown_name(
    command: str, places: dict[str, str], ask: Callable[..., Told]
) -> None:
    code, out, err = ask(command, places["golden"], *NAMED[command])
    assert (code, out, err[:7]) == (2, "", "KERF208" if command == "whatif" else "KERF203")
    assert "Is it " in err


@pytest.mark.parametrize("command", QUESTIONS)
def test_a_command_says_what_is_no_record(command: str, tmp_path: Path, ask: Callable[..., Told]) -> None:
    (tmp_path / "empty.kerf").touch()
    (tmp_path / "text.kerf").write_text("hello")
    said = [ask(command, str(tmp_path / name), *QUESTIONS[command]) for name in ("none", "empty.kerf", "text.kerf")]
    assert [(code, out) for code, out, _ in said] == [(2, "")] * 3
    assert "there is no such file" in said[0][2]
    assert "the file is empty" in said[1][2]
    assert "neither a record nor a bundle" in said[2][2]
