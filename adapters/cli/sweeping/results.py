"""The folder of a sweep: a file for each cell that is done, so that it can go on where it was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from kerf.adapters.cli.analysis.database import opened_database
from kerf.adapters.cli.sweeping.cell import Cell, Outcome
from kerf.adapters.cli.sweeping.rows import CellRow
from kerf.adapters.store.files.private_files import OWNER_FOLDER, regular_file, write_whole
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.engine.record.errors import RecordExists, SpecialFile

CELLS, TABLE, PLOT = "cells", "cells.parquet", "tradeoff.svg"
_outcome = msgspec.json.Decoder(Outcome)


class ResultsFolder:
    """A folder that a sweep made, or makes now. Raises SpecialFile (KERF119) for a link, RecordExists (KERF114) for
    a folder of something else, and other StoreErrors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with refused_by_system(path):
            if path.is_symlink():
                raise SpecialFile("a link is here, and no folder", where=str(path), hint="Name a new folder")
            if path.is_dir():
                if any(path.iterdir()) and not self._cells.is_dir():
                    hint = "Name a new folder, or that of an earlier sweep"
                    raise RecordExists("there is a folder of something else", where=str(path), hint=hint)
            elif regular_file(path) is not None:
                raise RecordExists("there is a file already", where=str(path), hint="Name a new folder")
            for folder in (path, self._cells):
                folder.mkdir(mode=OWNER_FOLDER, exist_ok=True)

    @property
    def _cells(self) -> Path:
        return self.path / CELLS

    def outcome(self, cell: Cell) -> Outcome | None:
        """What a cell came to in an earlier run; None if it is not done, or cannot be read."""
        file = self._file(cell)
        try:
            return _outcome.decode(file.read_bytes()) if regular_file(file) is not None else None
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, cell: Cell, outcome: bytes) -> Outcome:
        """Keep what a cell came to, unless it is an error: that may be another next time."""
        found = _outcome.decode(outcome)
        if not found.error:
            write_whole(self._file(cell), outcome, replace=True)
        return found

    def write_table(self, rows: Sequence[tuple[str, CellRow]]) -> Path:
        """Write all cells, each with its record, as Parquet. Raises AnalysisUnavailable (KERF240) without DuckDB."""
        with TemporaryDirectory(prefix="kerf-") as folder:
            made = Path(folder) / TABLE
            with opened_database(folder=Path(folder)) as database:
                for record, row in rows:
                    database.add(CELLS, CellRow, record, [row])
                database.write_parquet(CELLS, made)
            return self._write(TABLE, made.read_bytes())

    def write_plot(self, svg: str) -> Path:
        return self._write(PLOT, svg.encode())

    def _write(self, name: str, content: bytes) -> Path:
        write_whole(self.path / name, content, replace=True)
        return self.path / name

    def _file(self, cell: Cell) -> Path:
        return self._cells / f"{cell.key}.json"
