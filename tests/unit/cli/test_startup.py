"""A help page comes at once: what it may not import, and that the overview says what the commands say themselves."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import re
import subprocess
import sys

import pytest

from kerf.adapters.cli.command_table import COMMANDS, GROUPS, Command
from kerf.adapters.cli.commands.plan import EFFORT, MAX_STEPS
from kerf.adapters.cli.main import main
from kerf.engine.model.settings import Settings
from tests.support.repository import ROOT

PAGES = [(command.name, *rest) for command in COMMANDS for rest in [(), *((sub,) for sub in command.subcommands)]]
HEAVY = (
    "aiohttp", "asyncio", "boto3", "botocore", "concurrent.futures", "eventsourcing", "kubernetes", "markdown_it",
    "moto", "msgspec", "prometheus_client", "psycopg", "pygments", "sqlite3", "ssl", "transitions", "yaml", "zstandard",
    "kerf.adapters.aws", "kerf.adapters.kubernetes", "kerf.adapters.manager.manager",
    "kerf.adapters.manager.settings", "kerf.adapters.simulation", "kerf.adapters.store", "kerf.engine.model",
    "kerf.engine.scheduling", "kerf.engine.state", "kerf.projections", "kerf.replay.errors",
)  # fmt: skip
"""What takes long to import, and no help page needs. Of replay a page may have the text on times, and no more."""
OVERVIEW_TOO = ("cyclopts", "rich", "inspect", "typing_extensions")
"""Neither is imported for `kerf --help`, `kerf -h` and `kerf`."""

_PROGRAM = """\
import contextlib, io, json, sys
from kerf.adapters.cli.main import main
heavy, overview_too, pages = json.loads(sys.argv[1])
imported = {}
for page in pages:
    before = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*page, "--help"]) == 0, page
    assert "Usage: kerf" in out.getvalue(), page
    fresh = heavy if page else heavy + overview_too
    imported["kerf " + " ".join(page)] = sorted(name for name in fresh if name in sys.modules and name not in before)
print(json.dumps(imported))
"""


def test_help_pages_import_nothing_heavy() -> None:
    """All pages in one process, the overview first: a module that is named was imported for that page."""
    pages = [(), *PAGES]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps([HEAVY, OVERVIEW_TOO, pages])],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    imported = json.loads(done.stdout)
    assert len(imported) == len(pages)
    assert {page: modules for page, modules in imported.items() if modules} == {}


def test_a_heavy_import_would_be_found() -> None:
    """Each name is that of a module that some command imports once it runs: a misspelt one would hold nothing."""
    missing = [name for name in (*HEAVY, *OVERVIEW_TOO) if importlib.util.find_spec(name) is None]
    assert set(missing) <= {"moto", "psycopg"}  # extras


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_overview_has_each_commands_own_summary(command: Command) -> None:
    module, _, name = command.path.partition(":")
    target = getattr(importlib.import_module(module), name)
    own = (inspect.getdoc(target) if inspect.isfunction(target) else target.help) or ""
    assert command.summary == own.partition("\n\n")[0]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_table_names_all_subcommands(command: Command) -> None:
    module, _, name = command.path.partition(":")
    target = getattr(importlib.import_module(module), name)
    own = () if inspect.isfunction(target) else tuple(name for name in target if not name.startswith("-"))
    assert command.subcommands == own


def test_each_command_is_in_one_group() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(c.name for c in COMMANDS)


@pytest.mark.parametrize("tokens", [[], ["--help"], ["-h"], ["--debug"]])
def test_the_overview_names_every_command(tokens: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tokens) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Usage: kerf COMMAND"
    assert {len(line) for line in lines[5:]} == {80}
    assert [line.strip("╭╮─ ") for line in lines if line.startswith("╭")] == [*GROUPS, "With any command"]
    shown = {line.split()[1] for line in lines if line.startswith("│ ") and line[2] != " "}
    assert shown == {command.name for command in COMMANDS} | {"--debug", "--no-limits", "--help", "--version"}


def test_the_help_of_plan_has_the_settings_defaults() -> None:
    assert (Settings().effort, Settings().max_steps) == (EFFORT, MAX_STEPS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_docstring_fits_a_help_page(command: Command) -> None:
    """A help page has 80 columns and prints the lines of a docstring as they stand. It wraps the first one, and
    the parameters, each of which is one line."""
    module = importlib.import_module(command.path.partition(":")[0])
    pages = [
        inspect.getdoc(function) or ""
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]
    assert pages
    for page in pages:
        text, _, parameters = page.partition("Parameters\n----------\n")
        assert not [line for line in text.splitlines()[1:] if len(line) > 80]
        indented = [line.startswith(" ") for line in parameters.splitlines()]
        assert not any(first and second for first, second in itertools.pairwise(indented))


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_a_help_page_says_of_each_flag_what_it_is_for(
    page: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """And no default that says only that the flag may be left out."""
    assert main([*page, "--help"]) == 0
    shown = capsys.readouterr().out
    assert not re.findall(r"^│ (?:[*]  |   )?--[a-z-]+(?: [A-Z]+)? +(?:\[.*)?│$", shown, re.MULTILINE)
    assert not re.findall(r'\[default: (?:False|""|\(\))\]|--empty-', shown)


@pytest.mark.parametrize("command", ["verify", "status"])
def test_json_is_printed_without_what_prints_text(command: str) -> None:
    record = str(ROOT / "tests" / "golden" / "workshop-scale-up-and-down")
    program = f"""\
import json, sys
from kerf.adapters.cli.main import main
assert main([{command!r}, {record!r}, "--json"]) == 0
print(*[name for name in ("rich", "yaml") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)
    assert done.stderr.split() == []


_CTRL_C_WHILE_LOADED = """\
import os, signal, sys
loaded, how = sys.argv[1:]
class Interrupting:
    def find_spec(self, name, *_):
        if name == loaded:
            os.kill(os.getpid(), signal.SIGINT)
# Whoever runs the tests in the background of a shell ignores the signal, and so would this.
signal.signal(signal.SIGINT, signal.SIG_IGN if how == "ignored" else signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from kerf.__main__ import run
sys.argv[1:] = ["--help"]
sys.exit(run())
"""


@pytest.mark.parametrize("loaded", ["kerf.adapters.cli.main", "kerf.adapters.cli.limits", "kerf.adapters.cli.overview"])
@pytest.mark.parametrize(("signal", "codes"), [("heeded", {-2, 130}), ("ignored", {0})])
def test_ctrl_c_while_the_command_is_loaded_shows_no_traceback(loaded: str, signal: str, codes: set[int]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CTRL_C_WHILE_LOADED, loaded, signal],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode in codes, done.stderr) == (True, "")
