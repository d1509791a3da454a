"""The record that `kerf simulate` makes: replaced, repeatable, decided again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support.simulation.command import WORKSHOP, example, simulated, written


def test_a_record_of_a_simulation_is_replaced_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, other = tmp_path / "run.kerf", tmp_path / "notes.kerf"
    other.write_text("mine")
    assert main(["simulate", WORKSHOP, "--record", str(record)]) == 0
    assert main(["simulate", WORKSHOP, "--record", str(record)]) == 0
    assert "is replaced" in capsys.readouterr().err
    assert main(["simulate", WORKSHOP, "--record", str(other)]) == 2
    assert capsys.readouterr().err.startswith("KERF114: ")
    assert other.read_text() == "mine"
    assert main(["simulate", WORKSHOP, "--record", str(tmp_path)]) == 2
    assert main(["simulate", WORKSHOP, "--record", str(tmp_path / "no" / "run.kerf")]) == 2
    assert capsys.readouterr().err.count("KERF1") == 2


def test_seeds_differ_and_are_repeatable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heads = []
    for number, seed in enumerate(("1", "1", "2")):
        record = tmp_path / f"{number}.kerf"
        simulated(capsys, WORKSHOP, example("workshop.yaml"), "--seed", seed, "--record", str(record))
        store = SQLiteStore(record, "read")
        heads.append(store.head().chain)
        store.close()
    assert heads[0] == heads[1] != heads[2]


def _long(actions: int) -> str:
    """Two days of ups and downs, interruptions, and capacity that comes and goes."""
    made = []
    for index in range(actions):
        at = f"{index * 40 + 5}m"
        made.append(f"    - {{at: {at}, action: scale, name: web, replicas: {(index * 7) % 23}}}")
        if index % 5 == 2:
            made.append(f"    - {{at: {at}, action: interrupt, capacityType: spot}}")
        if index % 9 == 4:
            made.append(f"    - {{at: {at}, action: capacity, capacityType: spot}}")
            made.append(f"    - {{at: {index * 40 + 20}m, action: restore-capacity}}")
    head = "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nmetadata: {name: long}\nspec:\n  actions:\n"
    return head + "\n".join(made)


def run(*arguments: str, seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kerf", *arguments],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_a_long_record_verifies_in_other_processes_with_other_hash_seeds(tmp_path: Path) -> None:
    timeline, record = written(tmp_path, _long(60)), tmp_path / "long.kerf"
    manifests = example("morning.yaml")
    made = run("simulate", manifests, timeline, "--until", "48h", "--record", str(record), "--json", seed="7")
    assert made.returncode in (0, 1), made.stderr  # 1: at times there is no spot instance to interrupt
    assert {refused["code"] for refused in json.loads(made.stdout)["refused"]} <= {"KERF811"}
    for seed in ("0", "4242"):
        verified = run("verify", str(record), "--json", seed=seed)
        assert verified.returncode == 0, verified.stdout
        report = json.loads(verified.stdout)
        assert report["decisions"] > 200
        assert report["claim_events"] > 200
    again = run("simulate", manifests, timeline, "--until", "48h", "--json", seed="99")
    assert json.loads(again.stdout) == {**json.loads(made.stdout), "record": None}


def test_a_record_becomes_a_golden_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, case = tmp_path / "run.kerf", tmp_path / "golden" / "workshop"
    simulated(capsys, WORKSHOP, example("workshop.yaml"), "--record", str(record))
    assert main(["bundle", "golden", str(record), str(case), "--guards", "One node for five pods"]) == 0
    assert (case / "README.md").read_text() == "# workshop\n\nOne node for five pods\n"
    assert main(["verify", str(case)]) == 0
    assert main(["bundle", "golden", str(record), str(case), "--guards", "again"]) == 2
    assert capsys.readouterr().err.startswith("KERF114: ")


def test_a_record_reaches_to_the_end_of_its_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the summary says a run costs is what `kerf cost` says of its record."""
    record, longer = str(tmp_path / "run.kerf"), str(tmp_path / "longer.kerf")
    for until, name in (("100m", record), ("200m", longer)):
        _, outcome = simulated(capsys, WORKSHOP, example("no-fit.yaml"), "--until", until, "--record", name)
        main(["cost", name, "--json"])
        costs = json.loads(capsys.readouterr().out)
        assert costs["until"] - costs["since"] == outcome["duration"] * 1000 == int(until[:-1]) * 60_000
        assert costs["total"]["cost"] == pytest.approx(outcome["spent"]["total"], abs=1e-5)
        assert costs["total"]["node_hours"] == pytest.approx(outcome["spent"]["hours"], abs=1e-5)
        assert main(["verify", name]) == 0
        capsys.readouterr()
    ends = [SQLiteStore(Path(name), "read") for name in (record, longer)]
    short, long = ([*store.scan()] for store in ends)
    assert short[:-1] == long[: len(short) - 1]
    assert short[-1].type == "instance.listed"
