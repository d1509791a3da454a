"""The record that `kerf run` appends to. It belongs to one mode, control or observe, as its first settings say."""

from __future__ import annotations

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import open_record
from kerf.engine.errors import InputError
from kerf.engine.passwords import without_password
from kerf.engine.record.errors import RecordNotFound
from kerf.replay.time_travel.record_beginning import first_settings


def open_writable(url: str, *, observe: bool) -> ChainedStore:
    """Open the record at a URL, or make a new one. Raises StoreError, and InputError (KERF342) when it is of the other
    mode. The runtime checks later, once it has read the record, that it is of this cluster."""
    try:
        store = open_record(url, "write")
    except RecordNotFound:
        store = open_record(url, "create")
    assert isinstance(store, ChainedStore)
    settings = first_settings(store)
    if settings is not None and settings.observe != observe:
        store.close()
        mode, hint = "observe" if settings.observe else "control", "Give each mode a record of its own"
        where = f"--store {without_password(url)}"
        raise InputError(f"this record was made in {mode} mode", where=where, hint=hint, code="KERF342")
    return store
