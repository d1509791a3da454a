"""Give records to a database as tables."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.adapters.cli.analysis.database import Database
from kerf.adapters.cli.figures import fold_into, window_of
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.store.open import AnyStore, file_of, in_database
from kerf.engine.model.missing_knowledge import words_of
from kerf.engine.passwords import without_password
from kerf.engine.state.load import beginning
from kerf.projections.tables.record_tables import RecordTables
from kerf.projections.tables.rows import TABLES
from kerf.replay.partial_records import imported_from


def add_records(database: Database, records: Iterable[str]) -> None:
    """Read each record and add its rows. What an imported one does not know is noted on standard error."""
    given = list(dict.fromkeys(records))
    for record, name in zip(given, names_of(given), strict=True):
        with opened(record) as store:
            for table, rows in _folded(store, name).rows():
                database.add(table, TABLES[table], name, rows)


def names_of(records: list[str]) -> list[str]:
    """What the column `record` says: the file's name without its ending where no other has the same, else all of it."""
    short = [record if in_database(record) else file_of(record).stem for record in records]
    return [
        name if short.count(name) == 1 and not in_database(record) else without_password(record)
        for record, name in zip(records, short, strict=True)
    ]


def _folded(store: AnyStore, name: str) -> RecordTables:
    imported = imported_from(store)
    if imported is not None:
        lacks = "; ".join(words_of(code) for code in imported.lacks)
        print_error(f"Note: {name} is an imported record. Not in it: {lacks}")
    first = beginning(store)
    blobs = first.indexes.blobs
    whole = window_of(store, "start", "end")
    tables = RecordTables(
        blobs.shape, blobs.catalogue, catalogues=first.facts.catalogues, since=whole.since, imported=imported
    )
    fold_into(store, whole.position, tables)
    return tables
