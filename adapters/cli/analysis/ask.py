"""`kerf sql`: answer a query about records, within the limits of files that strangers may have made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from kerf.adapters.cli.analysis.database import opened_database
from kerf.adapters.cli.analysis.record_rows import add_records
from kerf.adapters.cli.limits import LIFTED, allowed_memory, limited
from kerf.adapters.cli.render.output import one_form
from kerf.adapters.cli.render.query import print_csv, print_json, print_table
from kerf.adapters.store.open import file_of, in_database

_SHARE_OF_DATABASE = 0.7
"""Of the memory that is allowed: kerf holds rows, too."""


def print_answer(query: str, records: Sequence[str], *, json: bool, as_csv: bool) -> None:
    """Print the answer of a query: a table, JSON or CSV. Raises QueryRefused (KERF241), LimitReached (KERF128) for one
    that takes more than the records may, and StoreError."""
    one_form(json=json, csv=as_csv)
    files = [file_of(record) for record in records if not in_database(record)]
    free = LIFTED.get() or len(files) < len(records)
    megabytes = None if free else int(allowed_memory(files) * _SHARE_OF_DATABASE)
    with opened_database(megabytes=megabytes) as database:
        add_records(database, records)
        with nullcontext() if free else limited(*files):
            show = print_json if json else print_csv if as_csv else print_table
            show(database.ask(query))
