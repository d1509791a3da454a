"""What `kerf store prune` does: a record is cut, while no controller writes it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.adapters.manager.settings import SettingError, age, size
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.retention.policy import Extent, Retention, due, extent
from kerf.adapters.store.retention.prune import cut_now, finish


class Pruned(Struct, frozen=True):
    """What a cut did, or would do: the record begins after position `base`, and of what is before, only what is after
    position `after` is kept (0 for no cut). Sizes are in bytes."""

    base: int
    after: int
    done: bool
    before: Extent
    now: Extent


def retention_of(observations: str, decisions: str, record_size: str) -> Retention:
    """Ages and size as flags give them. Raises SettingError (KERF340)."""
    values = []
    for option, parse, text in (
        ("observations", age, observations), ("decisions", age, decisions), ("size", size, record_size),
    ):  # fmt: skip
        try:
            values.append(parse(text))
        except ValueError as error:
            where, hint = f"--{option}", f"Give {error}"
            raise SettingError(f"{text!r} is not accepted", where=where, hint=hint) from error
    return Retention(*values)


def prune_record(store: ChainedStore, policy: Retention, *, dry_run: bool, progress: Callable[[int], None]) -> Pruned:
    """Cut the record once, if that is due. Raises StoreError."""
    if not dry_run:
        finish(store, progress=progress)
    before = extent(store)
    last = next((entry.at for entry in store.scan(store.last_position() - 1)), 0)
    cut = due(store, policy, last)
    if cut is None or dry_run:
        base, after = (cut.base, cut.after) if cut is not None else (0, 0)
        return Pruned(base, after, False, before, before)
    cut_now(store, cut, progress=progress)
    return Pruned(cut.base, cut.after, True, before, extent(store))
