"""`kerf demo`, the main job: each part of the issue's story, from outside, as a person runs it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from kerf.adapters.cli.demo import show as demo_show
from kerf.adapters.cli.main import main
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InterruptionSeen, LaunchAnswered, OfficeTaken

pytestmark = pytest.mark.slow
KERF = (sys.executable, "-m", "kerf")


class Shown(Struct):
    """One demonstration: what it printed, and where it was."""

    folder: Path
    code: int
    out: str
    error: str

    def entries(self) -> list[Entry]:
        store = SQLiteStore(self.folder / "demo.kerf", "read")
        try:
            return list(store.scan())
        finally:
            store.close()

    def of(self, kind: type[Any]) -> list[Entry]:
        return [entry for entry in self.entries() if isinstance(entry.payload, kind)]


def kerf(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KERF, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    out, error = folder / "out.txt", folder / "error.txt"
    with out.open("wb") as to_out, error.open("wb") as to_error:
        done = subprocess.run([*KERF, "demo"], cwd=folder, stdout=to_out, stderr=to_error, timeout=300, check=False)
    return Shown(folder, done.returncode, out.read_text(), error.read_text())


def test_it_comes_to_its_end_without_an_error(shown: Shown) -> None:
    """Its time and memory are measured in benchmarks/memory.py."""
    assert shown.code == 0, shown.out + shown.error
    assert shown.error == ""
    assert "demo.kerf" in shown.out.splitlines()[0]


def test_it_chooses_m5_large_and_logs_it_as_karpenter_does(shown: Shown) -> None:
    """L-358, L-359, and the facts of the workshop's log line."""
    lines = [json.loads(line) for line in shown.out.splitlines() if line.startswith("{")]
    assert [line["message"] for line in lines] == ["launched nodeclaim"]
    line = lines[0]
    assert list(line)[:4] == ["level", "time", "logger", "message"]
    assert (line["level"], line["logger"]) == ("INFO", "controller")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert line["controller"] == "nodeclaim.lifecycle"
    assert line["controllerGroup"] == "karpenter.sh"
    assert line["controllerKind"] == "NodeClaim"
    assert re.fullmatch(r"default-[a-z0-9]{5}", line["NodeClaim"]["name"])
    assert line["name"] == line["NodeClaim"]["name"]
    assert line["NodePool"] == {"name": "default"}
    assert re.fullmatch(r"aws:///us-west-2[abc]/i-[0-9a-f]{8,17}", line["provider-id"])
    assert line["instance-type"] == "m5.large"
    assert line["zone"] in line["provider-id"]
    assert line["capacity-type"] == "on-demand"
    assert line["allocatable"] == {
        "cpu": "1930m",
        "ephemeral-storage": "17Gi",
        "memory": "6903Mi",
        "pods": "29",
        "vpc.amazonaws.com/pod-eni": "9",
    }


def test_the_first_node_lives_and_dies_empty(shown: Shown) -> None:
    claim = shown.of(ev.Launched)[0].payload.claim
    life = [e.type for e in shown.entries() if e.type.startswith("claim.") and e.payload.claim == claim]
    assert life == [
        "claim.requested", "claim.launched", "claim.registered", "claim.initialized", "claim.tainted",
        "claim.drain-started", "claim.drained", "claim.terminated",
    ]  # fmt: skip
    assert [e.payload.why for e in shown.of(ev.Terminated)] == ["empty", "interrupted"]


def test_the_replacement_is_up_before_the_two_minutes_end(shown: Shown) -> None:
    (warning,) = shown.of(InterruptionSeen)
    assert warning.payload.kind == "spot_interrupted"
    launched = shown.of(ev.Launched)
    assert [e.payload.capacity_type for e in launched] == ["on-demand", "spot", "spot"]
    assert warning.payload.instance == launched[1].payload.instance
    replacement = [e for e in shown.of(ev.Initialized) if e.payload.claim == launched[2].payload.claim]
    assert warning.at < replacement[0].at < warning.at + 120_000
    ready = [e.payload for e in shown.entries() if e.type == "pod.seen" and e.payload.ready]
    moved = {pod.uid for pod in ready if pod.node == replacement[0].payload.node}
    assert len(moved) == 5


def test_the_cloud_is_the_aws_adapter(shown: Shown) -> None:
    answers = [e.payload for e in shown.of(LaunchAnswered)]
    assert len(answers) == 3
    assert all(answer.provider_id.startswith("aws:///") and answer.image.startswith("ami-") for answer in answers)


def test_what_it_says_that_all_nodes_cost_is_what_kerf_cost_says(shown: Shown) -> None:
    (said,) = re.findall(r"all nodes together cost (\$[0-9.]+)$", shown.out, re.MULTILINE)
    total = kerf(shown.folder, "cost", "demo.kerf").stdout.splitlines()[-1]
    assert total.split()[:2] == ["total", said]


def test_the_commands_that_it_shows_run_as_shown(shown: Shown) -> None:
    closer = shown.out.partition("Look closer:")[2].partition("See it")[0]
    shown_commands = re.findall(r"^  kerf (.+)$", closer, re.MULTILINE)
    assert [line.split()[0] for line in shown_commands] == [
        "explain", "explain", "story", "log", "at", "bundle", "verify",
    ]  # fmt: skip
    for line in shown_commands:
        done = kerf(shown.folder, *shlex.split(line))
        assert done.returncode == 0, f"kerf {line}: {done.stdout}{done.stderr}"
        assert done.stdout
    assert kerf(shown.folder, "verify", "demo.kerfb").returncode == 0
    assert shown.out.endswith("See it in a browser:\n  kerf ui demo.kerf --open\n")


@pytest.mark.parametrize("seed", ["0", "4242"])
def test_its_record_verifies_elsewhere(shown: Shown, seed: str) -> None:
    done = kerf(shown.folder, "verify", "demo.kerf", "--json", PYTHONHASHSEED=seed)
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["decisions"] >= 20
    assert report["diverged"] == 0


def test_a_part_that_goes_otherwise_is_named_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kerf.adapters.cli.demo import story as demo_story

    monkeypatch.setitem(demo_story.WORKSHOP, "pods", "30")
    assert main(["demo", "--record", str(tmp_path / "demo.kerf")]) == 1
    out = capsys.readouterr().out
    assert "ok: kerf chose m5.large" in out
    last = out.splitlines()[-1]
    assert last.startswith("KERF851: not so: its allocatable is that of the workshop; found")
    assert "[1. Five pods need a node]" in last


def test_only_the_record_of_a_simulation_is_replaced(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (holder,) = (entry.payload.holder for entry in shown.of(OfficeTaken))
    assert holder == "kerf demo"
    mine = tmp_path / "demo.kerf"
    mine.write_text("not a record")
    assert main(["demo", "--record", str(mine)]) == 2
    assert capsys.readouterr().err.startswith("KERF114: ")
    assert mine.read_text() == "not a record"


def test_real_time_is_real() -> None:
    assert demo_show._pace(True, Printer()) == (1.0, time.sleep)
    assert demo_show._pace(False, Printer())[0] == 0.0  # no terminal: as fast as it goes
