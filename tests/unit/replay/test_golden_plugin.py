"""The pytest plugin, in a user's project of its own: it collects golden records, and says what would change."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.lifecycle import launch_to_initialized
from tests.support.records import whole_life
from tests.support.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with_store = SQLiteStore(folder / "life.kerf", "create")
    whole_life(World(with_store))  # type: ignore[arg-type]
    write_golden(with_store, folder / "life")
    with_store.close()
    (folder / "life" / "README.md").write_text("A node's whole life.\n")
    return folder / "life"


@pytest.fixture
def project(tmp_path: Path, golden: Path) -> Path:
    """A project with folders named as kerf's houses, and one golden case."""
    for house in ("engine", "adapters", "projections", "replay"):
        (tmp_path / house).mkdir()
        (tmp_path / house / "__init__.py").write_text("raise RuntimeError('the user\\'s own package was imported')\n")
    case = tmp_path / "tests" / "golden" / "life"
    case.mkdir(parents=True)
    for file in golden.iterdir():
        (case / file.name).write_bytes(file.read_bytes())
    return tmp_path


def run_pytest(project: Path, *arguments: str) -> tuple[int, str]:
    """pytest in another process, with the plugin by its entry point, as a user has it."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": "", "PYTEST_ADDOPTS": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def edit(project: Path, name: str, old: str, new: str) -> None:
    path = project / "tests" / "golden" / "life" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_honest_case_passes(project: Path) -> None:
    code, out = run_pytest(project, "tests")
    assert code == 0, out
    assert "1 passed" in out


def test_a_changed_decision_fails_with_what_would_be_launched(project: Path) -> None:
    edit(project, "decisions.jsonl", '"instance_types":["m5.large",', '"instance_types":["m5.xlarge","m5.large",')
    code, out = run_pytest(project, "tests/golden")
    assert code == 1
    assert re.search(r"- launch default-\w+: m5.xlarge or 3 other types", out)
    assert re.search(r"\+ launch default-\w+: m5.large or 2 other types", out)
    assert "payload.result.claims[0].instance_types[0]" in out
    assert "raise the decider's VERSION and run pytest --golden-update" in out
    assert "docs/CONTRIBUTING.md" in out
    assert "Traceback" not in out


def test_update_rewrites_what_changed_and_says_so(project: Path) -> None:
    edit(project, "decisions.jsonl", '"instance_types":["m5.large",', '"instance_types":["m5.xlarge","m5.large",')
    code, out = run_pytest(project, "tests", "--golden-update")
    assert code == 0, out
    assert re.findall(r"rewritten: .*life/(\S+)", out) == ["decisions.jsonl"]
    assert "1 turn decided otherwise by deciders whose VERSION is the recorded one" in out
    code, out = run_pytest(project, "tests")
    assert code == 0, out


def test_update_of_an_honest_case_changes_nothing(project: Path, golden: Path) -> None:
    code, out = run_pytest(project, "tests", "--golden-update")
    assert code == 0, out
    assert "rewritten" not in out
    case = project / "tests" / "golden" / "life"
    assert {f.name: f.read_bytes() for f in case.iterdir()} == {f.name: f.read_bytes() for f in golden.iterdir()}


def test_a_case_without_a_readme_fails_and_says_so(project: Path) -> None:
    (project / "tests" / "golden" / "life" / "README.md").unlink()
    code, out = run_pytest(project, "tests")
    assert code == 1
    assert "the case has no README.md" in out


def test_an_older_decision_version_fails_with_what_to_do(project: Path) -> None:
    edit(project, "decisions.jsonl", f'"version":{launch_to_initialized.VERSION},"settings"', '"version":1,"settings"')
    code, out = run_pytest(project, "tests")
    assert code == 1
    assert "decision-version: " in out


def test_a_damaged_case_fails_with_the_line(project: Path) -> None:
    edit(project, "record.jsonl", '"position":7,', '"position":"seven",')
    code, out = run_pytest(project, "tests")
    assert code == 1
    assert re.search(r"KERF109: .*record.jsonl, line 7", out)
    assert "Traceback" not in out


def test_a_record_outside_of_a_golden_folder_is_left_alone(project: Path) -> None:
    (project / "tests" / "golden").rename(project / "tests" / "records")
    code, out = run_pytest(project, "tests")
    assert code == 5, out
    assert "no tests ran" in out


def test_the_case_is_one_line_an_entry(project: Path) -> None:
    lines = (project / "tests" / "golden" / "life" / "decisions.jsonl").read_text().splitlines()
    assert all(json.loads(line)["type"] == "decision.made" for line in lines)
