"""Write the tables of records as files into a new folder, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kerf.adapters.cli.analysis.database import Database, opened_database
from kerf.adapters.cli.analysis.record_rows import add_records
from kerf.adapters.cli.render.query import print_csv
from kerf.adapters.store.files.private_files import new_folder
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.projections.tables.rows import TABLES


def export_tables(folder: Path, form: Literal["parquet", "csv"], records: Sequence[str]) -> list[Path]:
    """Write one file for each table, and return them. Raises RecordExists (KERF114) or SpecialFile (KERF119) if
    something is at `folder`, and StoreError for a record that cannot be read."""
    with new_folder(folder) as growing, opened_database(folder=growing) as database:
        add_records(database, records)
        for table in TABLES:
            file = growing / f"{table}.{form}"
            with refused_by_system(folder / file.name):
                if form == "parquet":
                    database.write_parquet(table, file)
                else:
                    _write_csv(database, table, file)
    return [folder / f"{table}.{form}" for table in TABLES]


def _write_csv(database: Database, table: str, file: Path) -> None:
    with file.open("x", encoding="utf-8", newline="") as out:
        print_csv(database.ask(f"SELECT * FROM {table}"), out)
