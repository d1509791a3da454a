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
from kerf.engine.disruption.moves import execution
from kerf.engine.lifecycle import launch_to_initialized
from kerf.engine.scheduling import provision
from kerf.replay.golden.pytest_plugin import failure, guarded_by
from kerf.replay.verify.report import Divergence, Report
from tests.support.records import whole_life
from tests.support.repository import ROOT
from tests.support.world import World


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with_store = SQLiteStore(folder / "life.kerf", "create")
    whole_life(World(with_store))  # type: ignore[arg-type]
    write_golden(with_store, folder / "life")
    with_store.close()
    (folder / "life" / "README.md").write_text("A node's whole life.\n")
    return folder / "life"


def project(folder: Path) -> Path:
    """A project with folders named as kerf's houses."""
    for house in ("engine", "adapters", "projections", "replay"):
        (folder / house).mkdir(parents=True)
        (folder / house / "__init__.py").write_text("raise RuntimeError('the user\\'s own package was imported')\n")
    return folder


def case(project: Path, golden: Path, name: str, *, below: str = "golden") -> Path:
    """A case of the project: that golden record."""
    folder = project / "tests" / below / name
    folder.mkdir(parents=True)
    for file in golden.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def change_decision(case: Path) -> None:
    edit(case / "decisions.jsonl", '"instance_types":["m5.large",', '"instance_types":["m5.xlarge","m5.large",')


def run_pytest(project: Path, *arguments: str) -> tuple[int, str]:
    """pytest in another process, with the plugin by its entry point, as a user has it."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": "", "PYTEST_ADDOPTS": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def told(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of a project with an honest case and with one of each kind that fails."""
    made = project(tmp_path_factory.mktemp("users") / "project")
    case(made, golden, "honest")
    case(made, golden, "elsewhere", below="records")
    change_decision(case(made, golden, "changed"))
    (case(made, golden, "bare") / "README.md").unlink()
    older = f'"version":{launch_to_initialized.VERSION},"settings"'
    edit(case(made, golden, "older") / "decisions.jsonl", older, '"version":1,"settings"')
    edit(case(made, golden, "damaged") / "record.jsonl", '"position":7,', '"position":"seven",')
    code, out = run_pytest(made, "tests")
    assert code == 1, out
    assert "4 failed, 1 passed" in out
    return out


def part(told: str, name: str) -> str:
    """What is said of one case that fails."""
    found = re.search(rf"^_+ [^\n]*{name}[^\n]* _+$(.*?)(?=^_{{4,}} |^={{4,}} )", told, re.MULTILINE | re.DOTALL)
    assert found is not None, told
    return found[1]


def test_an_honest_case_passes(told: str) -> None:
    assert re.search(r"golden/honest::decisions PASSED", told)


def test_a_changed_decision_fails_with_what_would_be_launched(told: str) -> None:
    out = part(told, "changed")
    assert re.search(r"- launch default-\w+: m5.xlarge or 3 other types", out)
    assert re.search(r"\+ launch default-\w+: m5.large or 2 other types", out)
    assert "payload.result.claims[0].instance_types[0]" in out
    assert re.search(r"position \d+ \(decision.made by provision, ", out)
    assert f"raise the VERSION of provision (engine/scheduling/provision.py, now {provision.VERSION})" in out
    assert "run pytest --golden-update" in out
    assert "docs/CONTRIBUTING.md" in out
    assert "Traceback" not in told


def test_a_case_without_a_readme_fails_and_says_so(told: str) -> None:
    assert "the case has no README.md" in part(told, "bare")


def test_an_older_decision_version_fails_with_what_to_do(told: str) -> None:
    assert "decision-version: " in part(told, "older")


def test_a_damaged_case_fails_with_the_line(told: str) -> None:
    assert re.search(r"KERF109: .*damaged/record.jsonl, line 7", part(told, "damaged"))


def test_a_record_outside_of_a_golden_folder_is_left_alone(told: str) -> None:
    assert "elsewhere" not in told


def test_update_rewrites_what_changed_and_says_so_and_nothing_else(golden: Path, tmp_path: Path) -> None:
    made = project(tmp_path / "project")
    honest, changed = case(made, golden, "honest"), case(made, golden, "changed")
    change_decision(changed)
    code, out = run_pytest(made, "tests", "--golden-update")
    assert code == 0, out
    assert re.findall(r"rewritten: .*golden/(\S+)", out) == ["changed/decisions.jsonl"]
    assert "1 turn decided otherwise by deciders whose VERSION is the recorded one" in out
    for updated in (honest, changed):
        assert {f.name: f.read_bytes() for f in updated.iterdir()} == {f.name: f.read_bytes() for f in golden.iterdir()}


def test_the_case_is_one_line_an_entry(golden: Path) -> None:
    lines = (golden / "decisions.jsonl").read_text().splitlines()
    assert all(json.loads(line)["type"] == "decision.made" for line in lines)


@pytest.mark.slow
def test_a_policy_is_held_against_records_and_simulations(tmp_path: Path, golden: Path) -> None:
    """The nearest policy counts: the record's above it, the simulation's own."""
    folder = case(project(tmp_path), golden, "life")
    (folder.parent / "policy.yaml").write_text("policy: [{max_nodes: 1}, {max_cost: 0, name: free of charge}]\n")
    simulated = folder.parent / "five-pods"
    simulated.mkdir()
    (simulated / "policy.yaml").write_text("policy: [{verifies: true}]\n")
    for name in ("nodepool.yaml", "ec2nodeclass.yaml", "inflate.yaml"):
        (simulated / name).write_text((ROOT / "docs/examples/workshop" / name).read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "tests/golden"],
        cwd=tmp_path, env={**os.environ, "PYTEST_ADDOPTS": "", "NO_COLOR": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 3 passed" in done.stdout
    assert "policy: max_nodes 1" in done.stdout
    assert "policy: verifies" in done.stdout
    assert re.search(r"free of charge\n.*\$\d\.\d+, more than \$0\.0000", done.stdout)
    assert "why: kerf cost" in done.stdout


@pytest.mark.parametrize(
    ("readme", "guarded"),
    [
        ("# A\n\nA story.\nIt guards: nodes\nstay (D-1).\n", "nodes stay (D-1)."),
        ("# A\n\nA story.\n\nIt shows: nodes go.\n\nMore.\n", "nodes go."),
        ("# A\n\nFive pods share a node.\n", "Five pods share a node."),
        ("# A\n", ""),
    ],
)
def test_what_a_case_guards_stands_in_its_readme(tmp_path: Path, readme: str, guarded: str) -> None:
    (tmp_path / "README.md").write_text(readme)
    assert guarded_by(tmp_path / "README.md") == guarded


def diverged(position: int, *now: str, decider: str = "moves", was: tuple[str, ...] = ()) -> Divergence:
    return Divergence(
        position=position, turn=position, at=1, kind="different", type="decision.made", decider=decider,
        outcome_was=was, outcome_now=now,
    )  # fmt: skip


def report_of(*divergences: Divergence) -> Report:
    return Report(
        record="r", engine_recorded="1", engine="1", last=99, entries=99, turns=99, observations=0, decisions=99,
        claim_events=0, diverged=len(divergences), divergences=divergences, unsupported=(), fault=None, seconds=1,
    )  # fmt: skip


def test_a_failure_shows_first_which_nodes_come_and_go() -> None:
    """The first divergence, and of many more those that launch or remove."""
    divergences = [diverged(number, f"keep a: not now, {'for' * number}") for number in range(1, 20)]
    divergences += [diverged(20, "remove a: empty"), diverged(21, "launch b: m5.large, for 1 pod")]
    text = failure(report_of(*divergences), "nodes stay (D-30)")
    assert re.findall(r"^position (\d+)", text, re.MULTILINE) == ["1", "2", "3", "20", "21"]
    assert "  + remove a: empty" in text
    assert "… and 16 more" in text
    assert "What this case guards: nodes stay (D-30)" in text


def test_a_failure_says_once_what_differs_again_and_again() -> None:
    """Other times, amounts and nodes make no other divergence; another reason does."""
    divergences = [diverged(number, f"remove default-js8s{number}: empty for {number}m44s") for number in range(1, 10)]
    text = failure(report_of(*divergences, diverged(10, "remove default-js8sd: expired")))
    assert re.findall(r"^position (\d+)", text, re.MULTILINE) == ["1", "10"]
    assert "\n  likewise at position 2, 3, 4, 5, 6, 7 and 2 more\n" in text
    assert "… and" not in text


def test_a_failure_names_the_decider_that_differs_first_and_where_its_version_stands() -> None:
    text = failure(report_of(diverged(7, "remove a: empty", decider="move"), diverged(9, "drained", decider="drain")))
    assert text.startswith("diverged: 2 turns would be decided otherwise today, the first at position 7 by move\n")
    assert f"raise the VERSION of move (engine/disruption/moves/execution.py, now {execution.VERSION})," in text
    unknown = failure(report_of(diverged(7, "remove a: empty", decider="")))
    assert "raise the decider's VERSION," in unknown
