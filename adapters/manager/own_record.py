"""The record that `kerf run` goes on with. It is of one mode, as its first settings say."""

from __future__ import annotations

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import open_record
from kerf.engine.errors import InputError
from kerf.engine.record.errors import RecordNotFound
from kerf.replay.time_travel.record_beginning import first_settings


def open_own(url: str, *, observe: bool) -> ChainedStore:
    """The record at a URL; a new one where there is none. Raises InputError when it is of the other mode (KERF342),
    and StoreError. (Of which cluster it is, the runtime looks at once the record is read.)"""
    try:
        store = open_record(url, "write")
    except RecordNotFound:
        store = open_record(url, "create")
    assert isinstance(store, ChainedStore)
    made = first_settings(store)
    if made is not None and made.observe != observe:
        store.close()
        said, hint = "observe" if made.observe else "control", "Give each mode a record of its own"
        raise InputError(f"this record was made in {said} mode", where=f"--store {url}", hint=hint, code="KERF342")
    return store
