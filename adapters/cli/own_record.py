"""The record that `kerf run` goes on with. It is of one mode and of one cluster, as its first settings say."""

from __future__ import annotations

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import open_record
from kerf.engine.errors import InputError
from kerf.engine.model.settings import Settings
from kerf.engine.record.errors import RecordNotFound
from kerf.engine.record.observations import SettingsSeen
from kerf.engine.state.load import beginning

BEGINNING = 10  # entries, among which are a record's first settings


def open_own(url: str, *, observe: bool, cluster: str) -> ChainedStore:
    """The record at a URL; a new one where there is none. `cluster` is the uid of this cluster, "" if nobody knows.

    Raises InputError when it is of the other mode (KERF342), or of another cluster (KERF345): here all its nodes
    would be gone, so that their instances would be ended there. Raises StoreError.
    """
    try:
        store = open_record(url, "write")
    except RecordNotFound:
        store = open_record(url, "create")
    assert isinstance(store, ChainedStore)
    made = _first_settings(store)
    if made is not None and (wrong := _wrong(made, url, observe, cluster)) is not None:
        store.close()
        raise wrong
    return store


def _wrong(made: Settings, url: str, observe: bool, cluster: str) -> InputError | None:
    where = f"--store {url}"
    if made.observe != observe:
        said = "observe" if made.observe else "control"
        hint = "Give each mode a record of its own"
        return InputError(f"this record was made in {said} mode", where=where, hint=hint, code="KERF342")
    if made.cluster and cluster and made.cluster != cluster:
        said = f"kube-system has the uid {made.cluster} there, and {cluster} here"
        hint = "Name the record of this cluster, or a new one: kerf adopts the nodes that it finds"
        return InputError(f"this record is of another cluster: {said}", where=where, hint=hint, code="KERF345")
    return None


def _first_settings(store: ChainedStore) -> Settings | None:
    """Those that the record begins with, None for an empty one."""
    if store.base() is not None:
        return beginning(store).facts.settings
    seen = (each.payload for each in store.scan(until=BEGINNING))
    return next((each.settings for each in seen if isinstance(each, SettingsSeen)), None)
