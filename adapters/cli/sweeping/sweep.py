"""`kerf sweep`: run the cells that are not done yet, and weigh what all of them came to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.analysis.errors import AnalysisUnavailable
from kerf.adapters.cli.analysis.record_rows import names_of
from kerf.adapters.cli.limits import LIFTED
from kerf.adapters.cli.records import located, opened
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.cli.sweeping.cell import Cell, Outcome, engine_version
from kerf.adapters.cli.sweeping.cluster import on_cluster
from kerf.adapters.cli.sweeping.plan import Plan, read_plan
from kerf.adapters.cli.sweeping.plot import tradeoff_svg
from kerf.adapters.cli.sweeping.processes import in_processes
from kerf.adapters.cli.sweeping.ranking import Ranking, ranking
from kerf.adapters.cli.sweeping.results import ResultsFolder
from kerf.adapters.cli.sweeping.rows import CellRow
from kerf.adapters.store.files.bundle import export_bundle
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import extra_hint
from kerf.replay.modelled.figures import Figures


class Swept(Struct, frozen=True, kw_only=True):
    """The answer. `done_before` cells were there from an earlier run."""

    cells: int
    done_before: int
    ranking: Ranking
    table: str
    plot: str


class Where(Struct, frozen=True):
    """Where cells run: on a Dask scheduler at `address`, or in so many processes (0 for all cores)."""

    address: str
    jobs: int


def sweep_records(plan_file: Path, records: Sequence[str], out: Path, where: Where, *, anyway: bool) -> Swept:
    """Run a sweep, and write its table and plot. What is done is kept from cell to cell.

    Raises PlanRefused (KERF242), ClusterUnavailable (KERF243), NothingToCompare (KERF244), AnalysisUnavailable
    (KERF240), WorkerDied (KERF903) and StoreError.
    """
    plan = read_plan(plan_file)
    _require_duckdb()
    results = ResultsFolder(out)
    with TemporaryDirectory(prefix="kerf-") as folder:
        cells, bundles = _cells(plan, records, Path(folder))
        outcomes = {cell: results.outcome(cell) for cell in cells}
        left = [cell for cell, outcome in outcomes.items() if outcome is None]
        ran = _run(left, bundles, where, results)
    done = {cell: outcome or ran[cell] for cell, outcome in outcomes.items()}
    found = ranking(done, anyway=anyway)
    return Swept(
        cells=len(cells),
        done_before=len(cells) - len(left),
        ranking=found,
        table=str(results.write_table(_rows(done))),
        plot=str(results.write_plot(tradeoff_svg(found.configurations))),
    )


def _require_duckdb() -> None:
    """Say at once what would be missing in the end."""
    if find_spec("duckdb") is None:
        hint = extra_hint("analysis")
        raise AnalysisUnavailable("the table of a sweep needs DuckDB, which is not installed", hint=hint)


def _cells(plan: Plan, records: Sequence[str], folder: Path) -> tuple[list[Cell], dict[str, Path]]:
    """All cells, those of one record together, and the records' bundles by digest."""
    cells: list[Cell] = []
    bundles: dict[str, Path] = {}
    given = list(dict.fromkeys(records))
    for number, (record, name) in enumerate(zip(given, names_of(given), strict=True)):
        file = folder / f"{number}.kerfb"
        with opened(record) as store:
            export_bundle(store, file, created=0)
            since, until = _place(store, plan.since), _place(store, plan.until)
        digest = blake2b(file.read_bytes(), digest_size=16).hexdigest()
        if digest in bundles:
            print_error(f"Note: {name} is one of the other records, and counts once")
            continue
        bundles[digest] = file
        for configuration in plan.configurations:
            cell = Cell(
                record=name, bundle=digest, since=since, until=until, configuration=configuration,
                engine=engine_version(), lifted=LIFTED.get(),
            )  # fmt: skip
            cells.append(cell)
    return cells, bundles


def _place(store: AnyStore, when: str) -> str:
    """A moment as every worker understands it: a position. The beginning and the end stay what they are."""
    return when if when in ("start", "end") else str(located(store, when).position)


def _run(cells: Sequence[Cell], bundles: dict[str, Path], where: Where, results: ResultsFolder) -> dict[Cell, Outcome]:
    """Run cells, and keep each as it is done."""
    found: dict[Cell, Outcome] = {}
    if not cells:
        return found
    needed = {cell.bundle: bundles[cell.bundle] for cell in cells}
    address = where.address
    running = on_cluster(cells, needed, address) if address else in_processes(cells, needed, where.jobs)
    with progress_line(f"done and kept, of {len(cells)} cells:") as tell, closing(running):
        for cell, outcome in running:
            found[cell] = results.keep(cell, outcome)
            tell(len(found))
    return found


def _rows(outcomes: dict[Cell, Outcome]) -> list[tuple[str, CellRow]]:
    unchanged = {cell.record: outcome for cell, outcome in outcomes.items() if not cell.configuration.changes}
    return [(cell.record, _row(cell, outcome, unchanged[cell.record])) for cell, outcome in outcomes.items()]


def _amounts(figures: Figures | None) -> dict[str, Any]:
    return {name: getattr(figures, name, None) for name in Figures.__struct_fields__}


def _row(cell: Cell, outcome: Outcome, unchanged: Outcome) -> CellRow:
    figures = outcome.figures
    return CellRow(
        configuration=cell.configuration.name, changes=outcome.said, holds=unchanged.holds, error=outcome.error,
        **_amounts(figures),
        unchanged_cost=getattr(unchanged.figures, "cost", None),
        unchanged_evictions=getattr(unchanged.figures, "evictions", None),
        recorded_cost=getattr(unchanged.recorded, "cost", None),
        recorded_evictions=getattr(unchanged.recorded, "evictions", None),
    )  # fmt: skip
