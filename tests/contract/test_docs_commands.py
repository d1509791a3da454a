"""Commands in the documents run as shown.

A fenced block whose info string says `runnable` (```console runnable) holds commands, after a `$`, and may show lines
of their output, which must come out. `exit=1` says how they end, `needs=demo` that demo.kerf has to be there. The
blocks of one document run in their order in one folder, in which .venv and docs are what they are in the repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.support.repository import ROOT
from tests.support.slow import slow

DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```console runnable(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(Struct):
    """Commands with the lines that are shown below each, and the exit code of each."""

    commands: list[tuple[str, list[str]]]
    code: int
    needs_demo: bool


def blocks(document: Path) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(document.read_text(encoding="utf-8")):
        options = dict(option.split("=") for option in match["options"].split())
        assert options.keys() <= {"exit", "needs"}, f"{document.name}: {options}"
        commands: list[tuple[str, list[str]]] = []
        for line in match["body"].splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.strip() not in ("", "..."):
                commands[-1][1].append(line.rstrip())
        found.append(Block(commands, int(options.get("exit", 0)), options.get("needs") == "demo"))
    return found


RUNNABLE = [document for document in DOCUMENTS if blocks(document)]


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a demonstration."""
    record = tmp_path_factory.mktemp("demonstration") / "demo.kerf"
    made = subprocess.run(
        [sys.executable, "-m", "kerf", "demo", "--record", str(record)], capture_output=True, timeout=120, check=False
    )
    assert made.returncode == 0, made.stdout.decode()
    return record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader would stand: the repository, as far as the commands need it."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


LONG = {
    "check.md",
    "README.md",
    "diff.md",
    "explain.md",
    "figures.md",
    "getting-started.md",
    "import.md",
    "incident.md",
    "manifests.md",
    "moments.md",
    "operations.md",
    "plan.md",
    "replay.md",
    "security.md",
    "simulate.md",
    "simulation.md",
    "sql.md",
    "status.md",
    "sweep.md",
    "whatif.md",
}
"""Documents whose commands take many seconds."""


@pytest.mark.parametrize(
    "document",
    [*(file for file in RUNNABLE if file.name not in LONG), *slow(*(file for file in RUNNABLE if file.name in LONG))],
    ids=lambda document: document.name,
)
def test_commands_run_as_shown(document: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    for block in blocks(document):
        if block.needs_demo and not (folder / "demo.kerf").exists():
            record: Path = request.getfixturevalue("demonstration")
            (folder / "demo.kerf").write_bytes(record.read_bytes())
        for command, shown in block.commands:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == block.code, f"$ {command}\n{done.stdout}\n{done.stderr}"
            lines = [line.rstrip() for line in done.stdout.splitlines()]
            assert lines, f"$ {command}\nprints nothing"
            missing = [line for line in shown if line not in lines]
            assert not missing, f"$ {command}\ndoes not print {missing}, but:\n{done.stdout}"


def test_there_is_something_to_run() -> None:
    """The pattern above still finds the blocks."""
    assert {document.name for document in RUNNABLE} >= {"README.md", "getting-started.md", "plan.md", "simulate.md"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
