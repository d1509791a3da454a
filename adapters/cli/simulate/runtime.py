"""The runtime of a simulation: it writes a record of its own, as the holder that its command names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import kerf
from kerf.engine.model.settings import Settings
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.runtime.runtime import Runtime

SIMULATE_HOLDER, DEMO_HOLDER, REPLAY_HOLDER = "kerf simulate", "kerf demo", "kerf replay"
"""Who writes a simulated record. Such a record may be replaced by the next one."""


def runtime_factory(
    store: Store,
    *,
    holder: str,
    record: str,
    report: Callable[[Sequence[Entry]], None],
    settings: Settings | None = None,
) -> Callable[[int], Runtime]:
    """A function that makes the runtime at a time (ms since the epoch), as `Driver` wants it: again after each death.
    `report` gets the entries with which each runtime begins. `record` is the record's id."""

    def make(now: int) -> Runtime:
        runtime = Runtime(
            store,
            holder=holder,
            settings=settings if settings is not None else Settings(),
            record=record,
            engine=kerf.__version__,
            now=now,
        )
        report(runtime.new_entries)
        return runtime

    return make
