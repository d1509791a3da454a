"""`kerf sweep`: a grid over records, resumable and idempotent, on processes or a Dask cluster, ranked and drawn."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from kerf.adapters.cli.sweeping import sweep as sweeping
from kerf.adapters.cli.sweeping.cell import Cell, Outcome, engine_version, run_cell, run_cell_of_file
from kerf.adapters.cli.sweeping.errors import NothingToCompare, PlanRefused
from kerf.adapters.cli.sweeping.plan import UNCHANGED, ChangeText, Configuration, read_plan
from kerf.adapters.cli.sweeping.plot import tradeoff_svg
from kerf.adapters.cli.sweeping.ranking import Ranking, ranking
from kerf.replay.modelled.figures import Figures
from tests.support.repository import ROOT

HUNDRED = {"price": "spot", "to": list(range(100))}
SPOT = ROOT / "tests" / "golden" / "spot-interruption"
AFTER = "nodepool/default.spec.disruption.consolidateAfter"
PLAN = f"grid: {{after: {{set: {AFTER}, to: [10s]}}, price: {{price: spot, to: ['+50%', '-50%']}}}}"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that were run, in this process."""
    cells: list[Cell] = []

    def here(asked: Sequence[Cell], bundles: Mapping[str, Path], _jobs: int) -> Iterator[tuple[Cell, bytes]]:
        for cell in asked:
            cells.append(cell)
            yield cell, run_cell_of_file(bundles[cell.bundle], cell)

    monkeypatch.setattr(sweeping, "in_processes", here)
    return cells


def plan(folder: Path, text: str) -> Path:
    file = folder / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    return file


# ── plans ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_combination_is_a_configuration_and_the_unchanged_one_comes_first(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("kind: NodePool")
    text = """
        from: +1m
        grid:
          gate: {setting: SpotToSpotConsolidation, to: [true, false]}
          pool:
            as it is: {}
            ours: {apply: pool.yaml, no-capacity: [m5.large, c5.large/spot]}
    """
    found = read_plan(plan(tmp_path, text))
    assert (found.since, found.until) == ("+1m", "end")
    assert [configuration.name for configuration in found.configurations] == [
        UNCHANGED, "gate=true pool=as it is", "gate=true pool=ours", "gate=false pool=as it is", "gate=false pool=ours",
    ]  # fmt: skip
    assert found.configurations[2].changes == (
        ChangeText("setting", "SpotToSpotConsolidation=true"),
        ChangeText("apply", "pool.yaml", "kind: NodePool"),
        ChangeText("no-capacity", "m5.large"),
        ChangeText("no-capacity", "c5.large/spot"),
    )


def test_a_value_may_be_a_list(tmp_path: Path) -> None:
    """It is one value: that of a field which is a list."""
    target = "nodepool/default.spec.template.spec.requirements[karpenter.k8s.aws/instance-cpu].values"
    grid = f"grid: {{cpus: {{set: '{target}', to: [['5'], ['5', '6']]}}}}"

    read = read_plan(plan(tmp_path, grid))

    assert [c.changes for c in read.configurations[1:]] == [
        (ChangeText("set", f'{target}=["5"]'),),
        (ChangeText("set", f'{target}=["5", "6"]'),),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no object"),
        ("grid: {}", "no grid"),
        ("a: [", "neither YAML nor JSON"),
        ("gird: {}", "Is it grid"),
        ("grid: {a: }", "needs values"),
        ("grid: {a: {to: [1]}}", "needs one target"),
        ("grid: {a: {set: x, price: y, to: [1]}}", "needs one target"),
        ("grid: {a: {delete: x, to: [1]}}", "needs one target"),
        ("grid: {a: {set: x, to: 5}}", "no list of values"),
        ("grid: {a: {set: x, to: [{}]}}", "no list of values"),
        ("grid: {a: {b: 5}}", "needs its changes"),
        ("grid: {a: {b: {prices: m5.large=1}}}", "Is it price"),
        ("grid: {a: {b: {apply: missing.yaml}}}", "missing.yaml cannot be read"),
        (json.dumps({"grid": {"a": HUNDRED, "b": HUNDRED, "c": HUNDRED}}), "more than 10,000"),
        (json.dumps({"grid": {f"a{n}": HUNDRED for n in range(2_200)}}), "more than 10,000"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(kerf: Any, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PlanRefused, match="KERF242: ") as refused:
        read_plan(plan(tmp_path, text))
    assert said in str(refused.value)
    assert kerf("sweep", tmp_path / "plan.yaml", SPOT, "--out", tmp_path / "out")[2].startswith("KERF242: ")
    assert not (tmp_path / "out").exists()


# ── cells ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sweep_ranks_its_cells_and_runs_none_of_them_twice(kerf: Any, ran: list[Cell], tmp_path: Path) -> None:
    import duckdb

    file, out = plan(tmp_path, PLAN), tmp_path / "out"
    code, told, err = kerf("sweep", file, SPOT, "--out", out, "--json")
    assert (code, err, len(ran)) == (0, "", 3)
    answer = json.loads(told)
    found = {one["configuration"]: one["figures"] for one in answer["ranking"]["configurations"]}
    assert found["after=10s price=+50%"]["cost"] > found[UNCHANGED]["cost"] > found["after=10s price=-50%"]["cost"]
    plain = json.loads(kerf("replay", SPOT, "--json")[1])
    assert found[UNCHANGED] == plain["unchanged"]
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT configuration, cost, holds FROM '{answer['table']}'").fetchall()
    assert sorted(rows) == sorted((name, figures["cost"], True) for name, figures in found.items())
    assert ElementTree.fromstring(Path(answer["plot"]).read_text()).tag.endswith("svg")

    again = json.loads(kerf("sweep", file, SPOT, "--out", out, "--json")[1])
    assert (again, len(ran)) == ({**answer, "done_before": 3}, 3)
    wider = plan(tmp_path, PLAN.replace("[10s]", "[10s, 1m]"))
    assert json.loads(kerf("sweep", wider, SPOT, "--out", out, "--json")[1])["done_before"] == 3
    assert [cell.configuration.name for cell in ran[3:]] == ["after=1m price=+50%", "after=1m price=-50%"]
    copied = tmp_path / "copied.kerfb"
    assert kerf("bundle", "export", SPOT, copied)[0] == 0
    _, text, err = kerf("sweep", wider, SPOT, copied, "--out", out)
    assert re.search(r"PODS WAITED.*\n.* [0-9.]+(ms|s|m[0-9]+s) ", text), "as kerf replay writes it"
    assert err == "Note: copied is one of the other records, and counts once\n"
    assert "5 cells done, 5 of them before; modelled over spot-interruption" in text


def test_a_cell_that_was_cut_off_or_failed_is_run_again(kerf: Any, ran: list[Cell], tmp_path: Path) -> None:
    text = f"grid: {{a: {{one: {{set: {AFTER}=10s}}, two: {{set: nodepool/x.spec.weight=1}}}}}}"
    file, out = plan(tmp_path, text), tmp_path / "out"
    code, told, _ = kerf("sweep", file, SPOT, "--out", out)
    assert (code, len(ran)) == (0, 3)
    assert "Left out: a=two: spot-interruption: KERF208: " in told
    kept = sorted((out / "cells").iterdir())
    kept[0].write_text(kept[0].read_text()[:20])
    assert kerf("sweep", file, SPOT, "--out", out)[0] == 0
    assert len(ran) == 3 + 2


def test_ctrl_c_keeps_what_is_done(kerf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(asked: Sequence[Cell], bundles: Mapping[str, Path], _jobs: int) -> Iterator[tuple[Cell, bytes]]:
        yield asked[0], run_cell_of_file(bundles[asked[0].bundle], asked[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "in_processes", interrupted)
    file, out = plan(tmp_path, PLAN), tmp_path / "out"
    code, told, err = kerf("sweep", file, SPOT, "--out", out)
    assert (code, told) == (130, "")
    assert "done and kept, of 3 cells: 1" in err
    assert [path.name for path in out.iterdir()] == ["cells"]
    assert len(list((out / "cells").iterdir())) == 1


def test_a_cell_needs_nothing_but_the_bundle_and_the_same_engine(tmp_path: Path, kerf: Any) -> None:
    bundle = tmp_path / "b.kerfb"
    assert kerf("bundle", "export", SPOT, bundle)[0] == 0
    cell = Cell(
        record="x", bundle="b", since="start", until="end", configuration=Configuration((), ()), engine=engine_version()
    )
    found = msgspec.json.decode(run_cell(bundle.read_bytes(), cell), type=Outcome)
    assert found.holds
    assert found.recorded is not None
    other = msgspec.structs.replace(cell, engine="0.0.1")
    assert other.key != cell.key
    assert "KERF243" in msgspec.json.decode(run_cell(bundle.read_bytes(), other), type=Outcome).error
    assert "KERF10" in msgspec.json.decode(run_cell(b"no bundle", cell), type=Outcome).error


# ── ranking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def cell_of(record: str, name: str) -> Cell:
    changes = () if name == UNCHANGED else (ChangeText("set", name),)
    values = () if name == UNCHANGED else (("a", name),)
    configuration = Configuration(values, changes)
    return Cell(record=record, bundle=record, since="start", until="end", configuration=configuration, engine="")


def outcome_of(cost: float, evictions: int, **more: Any) -> Outcome:
    figures = Figures(
        cost=cost, node_hours=1.0, evictions=evictions, pending_seconds=0.0, launched=1, gone=1, running=0
    )
    return Outcome(figures=figures, **more)


def ranked(**outcomes: Outcome) -> Ranking:
    return ranking({cell_of(*name.split("__")): outcome for name, outcome in outcomes.items()})


def test_the_front_is_what_no_other_configuration_beats() -> None:
    found = ranked(
        r__unchanged=outcome_of(10, 10, holds=True), r__cheap=outcome_of(5, 20), r__calm=outcome_of(12, 0),
        r__worse=outcome_of(12, 20), r__same=outcome_of(10, 10), s__unchanged=outcome_of(1, 1, holds=True),
        s__cheap=outcome_of(1, 1), s__calm=outcome_of(1, 1), s__worse=outcome_of(1, 1), s__same=outcome_of(1, 1),
    )  # fmt: skip
    assert [(one.configuration, one.beaten_by) for one in found.configurations] == [
        ("a=cheap", 0), ("a=same", 0), ("unchanged", 0), ("a=calm", 0), ("a=worse", 4),
    ]  # fmt: skip
    assert (found.unchanged.cost, found.unchanged.evictions, found.records) == (11, 11, ("r", "s"))


def test_what_does_not_hold_or_failed_is_left_out_and_said() -> None:
    far = outcome_of(1, 1, errors={"cost": 0.5})
    outcomes = {
        cell_of("r", UNCHANGED): outcome_of(10, 10, holds=True), cell_of("r", "b"): outcome_of(5, 20),
        cell_of("r", "c"): Outcome(error="KERF208: no"), cell_of("s", UNCHANGED): far, cell_of("s", "b"): far,
        cell_of("s", "c"): far,
    }  # fmt: skip
    found = ranking(outcomes)
    assert (found.records, [one.configuration for one in found.configurations]) == (("r",), ["a=b", "unchanged"])
    assert found.left_out == (
        "s: the model is too far from what was recorded (cost 50%)", "a=c: r: KERF208: no",
    )  # fmt: skip
    assert ranking(outcomes, anyway=True).records == ("r", "s")
    with pytest.raises(NothingToCompare, match=r"KERF244: .*too far"):
        ranking({cell: outcome for cell, outcome in outcomes.items() if cell.record == "s"})


def test_a_plot_is_sound_svg_whatever_a_configuration_is_called() -> None:
    found = ranking(
        {
            cell_of("r", UNCHANGED): outcome_of(10, 10, holds=True),
            cell_of("r", "<script>&\x1b]0;\x07"): outcome_of(10, 10),
        }
    )
    drawn = tradeoff_svg(found.configurations)
    assert "\x1b" not in drawn
    assert len(ElementTree.fromstring(drawn).findall("{*}circle")) == 2


# ── folders and clusters ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["file", "link", "folder of something else"])
def test_results_go_to_a_folder_of_a_sweep_alone(kerf: Any, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    if what == "file":
        out.write_text("mine")
    elif what == "link":
        out.symlink_to(tmp_path)
    else:
        (out / "mine").mkdir(parents=True)
    code, _, err = kerf("sweep", plan(tmp_path, PLAN), SPOT, "--out", out)
    assert (code, err[:9]) == (2, "KERF119: " if what == "link" else "KERF114: ")


def test_without_dask_the_extra_is_named(kerf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = kerf("sweep", plan(tmp_path, PLAN), SPOT, "--out", tmp_path / "out", "--on", "tcp://127.0.0.1:1")
    assert (code, err[:9]) == (2, "KERF243: ")
    assert "pip install '.[sweep]'" in err


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler with two workers."""
    told = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    begin = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    logs = (tmp_path / "dask.log").open("wb")
    started = [subprocess.Popen([*begin, "--scheduler-file", str(told)], stdout=logs, stderr=logs)]
    try:
        for _ in range(600):
            if told.exists():
                break
            time.sleep(0.1)
        worker = [*dask, "worker", "--scheduler-file", str(told), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        for number in range(2):
            place = ["--local-directory", str(tmp_path / f"worker-{number}")]
            started.append(subprocess.Popen([*worker, *place], cwd=tmp_path, stdout=logs, stderr=logs))
        yield json.loads(told.read_text())["address"]
    finally:
        # Not terminate(): a worker that is asked to end tells a scheduler that may be gone, and waits for its answer.
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        logs.close()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask, the extra sweep")
def test_a_dask_cluster_comes_to_the_same_as_processes(scheduler: str, tmp_path: Path) -> None:
    file, answers = plan(tmp_path, PLAN), []
    for where in (["--on", scheduler], ["--jobs", "2"]):
        out = tmp_path / where[0].strip("-")
        command = [sys.executable, "-m", "kerf", "sweep", str(file), str(SPOT), "--out", str(out), "--json", *where]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        answers.append(json.loads(done.stdout))
        assert len(list((out / "cells").iterdir())) == 3
    assert answers[0]["ranking"] == answers[1]["ranking"]
    cells = [{file.name: file.read_bytes() for file in (tmp_path / at / "cells").iterdir()} for at in ("on", "jobs")]
    assert cells[0] == cells[1]


@pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask, the extra sweep")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://nobody.invalid:1", "127.0.0.1:1", "abc://x"])
def test_a_scheduler_that_does_not_answer_is_named(kerf: Any, tmp_path: Path, address: str) -> None:
    code, _, err = kerf("sweep", plan(tmp_path, PLAN), SPOT, "--out", tmp_path / "out", "--on", address)
    assert (code, err[:9]) == (2, "KERF243: ")
    assert address in err
