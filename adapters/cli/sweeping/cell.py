"""One cell of a sweep: a record under a configuration. It needs nothing but a bundle's bytes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

import kerf
from kerf.adapters.cli.figures import fold_into
from kerf.adapters.cli.input.changes import changes_of
from kerf.adapters.cli.limits import LIFTED
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.replaying.modelled_run import ModelledRun
from kerf.adapters.cli.replaying.question import window_of
from kerf.adapters.cli.sweeping.errors import ClusterUnavailable
from kerf.adapters.cli.sweeping.plan import ChangeText, Configuration
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import KerfError
from kerf.replay.modelled.comparison import compared
from kerf.replay.modelled.extraction import workload_of_record
from kerf.replay.modelled.figures import Figures, FiguresFold
from kerf.replay.verify.decide_again import VERSIONS
from kerf.replay.what_if.changes import Change


class Cell(Struct, frozen=True, kw_only=True):
    """What is asked: the digest of a bundle, the part of it, and a configuration. `engine` has to be that of whoever
    runs it. `lifted`: without limits of time and memory."""

    record: str
    bundle: str
    since: str
    until: str
    configuration: Configuration
    engine: str
    lifted: bool = False

    @property
    def key(self) -> str:
        """The same question has the same key, whoever asks it."""
        asked = (self.bundle, self.since, self.until, self.configuration.changes, self.engine)
        return blake2b(msgspec.json.encode(asked), digest_size=16).hexdigest()


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a cell came to: modelled figures, or the error for which there are none.

    Only the unchanged cell has what was recorded, `errors` (how far the model is from it, as shares) and `holds`.
    """

    figures: Figures | None = None
    error: str = ""
    said: tuple[str, ...] = ()
    recorded: Figures | None = None
    errors: dict[str, float] = {}
    holds: bool = False


Done = Generator[tuple[Cell, bytes], None, None]
"""Cells with their outcomes, as they are done. Closing it ends what still runs."""


def engine_version() -> str:
    """kerf's version, with those of its deciders: where one differs, so may the figures."""
    return f"{kerf.__version__} {' '.join(f'{decider}={version}' for decider, version in sorted(VERSIONS.items()))}"


def run_cell(bundle: bytes, cell: Cell) -> bytes:
    """Run a cell. Returns its Outcome as JSON, also of an error that the bundle or the configuration brings about."""
    LIFTED.set(cell.lifted)
    with TemporaryDirectory(prefix="kerf-") as folder:
        place = Path(folder) / "record.kerfb"
        place.write_bytes(bundle)
        try:
            _require_same_engine(cell)
            changes = _changes(cell.configuration.changes, Path(folder))
            with opened(str(place), decides=True) as store:
                outcome = _modelled(store, cell, changes)
        except KerfError as error:
            outcome = Outcome(error=" ".join(str(error).replace(str(place), cell.record).split()))
    return msgspec.json.encode(outcome)


def run_cell_of_file(bundle: Path, cell: Cell) -> bytes:
    """Run a cell on the bundle of a file."""
    return run_cell(bundle.read_bytes(), cell)


def _require_same_engine(cell: Cell) -> None:
    if cell.engine != engine_version():
        hint = "Install the same version of kerf on every worker"
        raise ClusterUnavailable(f"the worker has kerf {engine_version()}, and not {cell.engine}", hint=hint)


def _modelled(store: AnyStore, cell: Cell, changes: list[Change]) -> Outcome:
    window = window_of(store, cell.since, cell.until)
    workload = workload_of_record(store, window, changes, _tell_nobody)
    run = ModelledRun(workload, changed=bool(changes), tell=_tell_nobody)
    run.go(None)
    if changes:
        return Outcome(figures=run.figures.figures(workload.since, workload.until), said=workload.changes)
    recorded = FiguresFold()
    fold_into(store, window.last, recorded)
    answer = compared(workload, recorded, run.figures, None)
    return Outcome(figures=answer.unchanged, recorded=answer.recorded, errors=answer.errors, holds=answer.holds)


def _tell_nobody(_position: int) -> None:
    """Progress of a cell is not told: many run at once."""


def _changes(texts: tuple[ChangeText, ...], folder: Path) -> list[Change]:
    """The changes of `kerf whatif`, with the files that they brought along."""
    given: dict[str, list[str]] = {}
    files: dict[str, list[Path]] = {}
    for number, change in enumerate(texts):
        if change.content:
            file = folder / f"{number}.yaml"
            file.write_text(change.content, encoding="utf-8")
            files.setdefault(change.flag, []).append(file)
        else:
            given.setdefault(change.flag, []).append(change.text)
    return _from_flags(given, files) if texts else []


def _from_flags(given: Mapping[str, list[str]], files: Mapping[str, list[Path]]) -> list[Change]:
    return changes_of(
        given.get("set", []), files.get("apply", []), given.get("delete", []), given.get("remove", []),
        files.get("add-pods", []), given.get("price", []), given.get("no-capacity", []), given.get("setting", []),
    )  # fmt: skip
