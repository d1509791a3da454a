"""Retention while the controller runs. Now and then it checks whether the record is to be cut. A cut is done
bit by bit, in threads of its own, so that turns hardly wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.retention import cut as cutting
from kerf.adapters.store.retention.policy import Due, Extent, Retention, base_at, due, extent
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.observations import Observation, RecordCut
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.snapshot import SCHEMA
from kerf.projections.metrics.families import COUNTER, GAUGE, Family

EVERY = 60.0  # seconds
PAUSE = 0.05  # between two steps: each holds writers up for some milliseconds
_ANNOUNCEMENT_TIMEOUT = 600.0  # seconds that an announcement may take to be in the record
Put = Callable[[Iterable[Observation]], None]


class RetentionLoop:
    """`run` beside the controller until cancelled. A failure is reported and tried again; the record stays intact."""

    def __init__(
        self, store: ChainedStore, runtime: Runtime, put: Put, policy: Retention, *, now: Callable[[], int],
        failed: Callable[[KerfError], None], every: float = EVERY,
    ) -> None:  # fmt: skip
        self.extent: Extent | None = None
        self.errors = 0
        self._store, self._runtime, self._put, self._policy = store, runtime, put, policy
        self._now, self._failed, self._every = now, failed, every

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # a defect must not let the record grow for ever, unnoticed
                self.errors += 1
                self._failed(fault_of(error, "retention"))
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """Finish a cut that an earlier process began, then cut once if that is due. Raises StoreError."""
        await self._remove()
        self.extent = await asyncio.to_thread(extent, self._store)
        cut = await asyncio.to_thread(self._due)
        if cut is None or not self._runtime.ready:
            return
        announced = await asyncio.to_thread(self._propose, cut)
        position = await self._recorded(announced)
        if position:
            await asyncio.to_thread(cutting.begin, self._store, position)
            await self._remove()
            self.extent = await asyncio.to_thread(extent, self._store)

    def _due(self) -> Due | None:
        with self._store.session() as session:
            rows = session.run("SELECT position FROM snapshots WHERE schema = ? ORDER BY 1", SCHEMA)
        return due(self._store, self._policy, self._now(), candidates=[position for (position,) in rows])

    def _propose(self, cut: Due) -> RecordCut:
        return cutting.propose(self._store, base_at(self._store, cut.base), after=cut.after)

    async def _recorded(self, announced: RecordCut) -> int:
        """The position of the announcement once it is stored; 0 if that takes too long, and then nothing is cut."""
        facts = self._runtime.state.facts
        before = facts.cut
        self._put([Observation(announced)])
        until = asyncio.get_running_loop().time() + _ANNOUNCEMENT_TIMEOUT
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(PAUSE)
            position = facts.cut
            if position > before and await asyncio.to_thread(self._store.last_position) >= position:
                return position
        return 0

    async def _remove(self) -> None:
        steps = cutting.steps(self._store)
        while await asyncio.to_thread(next, steps, None) is not None:
            await asyncio.sleep(PAUSE)

    def families(self) -> list[Family]:
        failed = Family("kerf_record_retention_errors_total", COUNTER, "Times that the record could not be cut.")
        failed.set(self.errors)
        extent_now = self.extent
        if extent_now is None:
            return [failed]
        size = Family("kerf_record_size_bytes", GAUGE, "What the record takes.")
        size.set(extent_now.size)
        oldest = Family(
            "kerf_record_oldest_entry_timestamp_seconds", GAUGE, "Since when claims' events and decisions are kept."
        )
        oldest.set(extent_now.oldest / 1000)
        since = Family(
            "kerf_record_decidable_since_timestamp_seconds", GAUGE, "Since when everything is kept: decided again."
        )
        since.set(extent_now.since / 1000)
        return [size, oldest, since, failed]
