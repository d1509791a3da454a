"""The record that a command reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kerf.adapters.store.open import AnyStore, open_record


@contextmanager
def opened(record: str) -> Iterator[AnyStore]:
    """The record, closed at the end. Raises StoreError."""
    store = open_record(record)
    try:
        yield store
    finally:
        store.close()
