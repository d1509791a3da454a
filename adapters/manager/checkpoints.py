"""Checkpoints: now and then the controller tells the outside where its record ends and which value the chain has there.

Whoever keeps one can find out later whether the record up to there was changed (`kerf verify --checkpoint`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kerf.adapters.kubernetes.events import EventRecorder, Happening, Subject
from kerf.adapters.store.chained import ChainedStore
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.hash_chain import START
from kerf.projections.kubernetes_events.event import NORMAL
from kerf.projections.metrics.families import GAUGE, Family

EVERY = 1800.0  # seconds: the API server forgets an Event after an hour, and each value makes a new series of metrics
SOON = 10.0  # seconds from one look to the next while nothing is in the record


class CheckpointLoop:
    """`run` beside the controller until cancelled. The Event is about the Lease, under which the record is written;
    there is none without `events`."""

    def __init__(
        self, store: ChainedStore, lease: tuple[str, str], events: EventRecorder | None, *,
        failed: Callable[[KerfError], None], every: float = EVERY,
    ) -> None:  # fmt: skip
        self.latest = START
        self._store, self._events, self._failed, self._every = store, events, failed, every
        namespace, name = lease
        self._lease = Subject("coordination.k8s.io/v1", "Lease", name, namespace)

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # a defect or a store that fails: the next one is told again
                self._failed(fault_of(error, "checkpoints"))
            await asyncio.sleep(self._every if self.latest != START else min(SOON, self._every))

    async def look(self) -> None:
        """Tell where the record ends now. Raises StoreError."""
        self.latest = latest = await asyncio.to_thread(self._store.checkpoint)
        if self._events is not None and latest != START:
            value = f"{latest.position}:{latest.value.hex()}"
            message = f"The record's chain has a value to keep: kerf verify RECORD --checkpoint {value}"
            self._events.tell([Happening(self._lease, NORMAL, "RecordCheckpoint", message, (value,), 0)])

    def families(self) -> list[Family]:
        told = "Where the record ended at the last checkpoint, and the value of its chain there."
        family = Family("kerf_record_checkpoint_position", GAUGE, told, ("chain",))
        if self.latest != START:
            family.set(self.latest.position, self.latest.value.hex())
        return [family]
