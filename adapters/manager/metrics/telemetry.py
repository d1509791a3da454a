"""What the controller says of itself: its metrics, and what keeps it from being ready (L-299, L-340)."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Iterable, Sequence

import kerf
from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.manager.checkpoints import CheckpointLoop
from kerf.adapters.manager.clock_watch import clock_families, clock_notes
from kerf.adapters.manager.kubernetes_controller import KubernetesController
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.manager.metrics.request_metrics import RequestMetrics, process_text
from kerf.adapters.manager.retention import RetentionLoop
from kerf.adapters.manager.stderr import print_error
from kerf.engine.errors import KerfError
from kerf.engine.record.entries import Entry
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.state import State
from kerf.projections.metrics.cluster_gauges import cluster_gauges
from kerf.projections.metrics.conditions import ConditionMetrics
from kerf.projections.metrics.counter_definitions import PREFIX
from kerf.projections.metrics.counters import RecordCounters
from kerf.projections.metrics.families import GAUGE, Family
from kerf.projections.metrics.offerings import offering_families

SCRAPE_CACHED = 5.0  # seconds for which a scrape is answered with the last one: it looks at every pod
LONG = 0.1  # seconds of a turn, from which the process counts as busy
MAX_TURN_WAIT = 2.0
"""Seconds that a scrape waits for the end of a turn. A plan for thousands of pods takes longer: then the scrape gets
the text of the last one, with its age."""


class Telemetry:
    """Called with each turn's entries; asked at any time. `state_metrics`: with those of pods, nodes and NodePools.
    `per_object`: conditions of each NodeClaim and Node, and not only how many have them. `longest_turn`: the seconds
    after which a turn hangs; 0 for no limit."""

    def __init__(
        self, *, provider: str, state_metrics: bool, per_object: bool = False, longest_turn: float = 0.0
    ) -> None:
        self.requests, self.aws = RequestMetrics(), AwsMetrics()
        self._per_object, self._longest_turn = per_object, longest_turn
        self._hung = False
        self._provider, self._state_metrics = provider, state_metrics
        self._world: KubernetesController | None = None
        self._metrics: RecordCounters | None = None
        self._conditions: ConditionMetrics | None = None
        self._pools_taken_up = False
        self._made: tuple[float, bytes] | None = None
        self._making: asyncio.Task[tuple[float, bytes]] | None = None
        self._reading: tuple[int, int] | None = None
        self.told: list[RetentionLoop | CheckpointLoop] = []
        self.clocks = ProcessClocks()

    def read(self, position: int, last: int) -> None:
        """The record is read up to a position: kerf is alive, but not ready yet."""
        self._reading = position, last

    def record_is_read(self, runtime: Runtime) -> None:
        """Metrics are counted from here on, and from the turn in which the process took office."""
        self._reading = None
        self._metrics = RecordCounters(runtime.state, self._provider, runtime.new_entries)
        self._conditions = ConditionMetrics(runtime.state, self._provider)

    def recall(self, entry: Entry) -> None:
        """Take up what an earlier process decided."""
        if self._metrics is not None and self._conditions is not None:
            self._metrics.recall(entry)
            self._conditions.recall(entry)

    def recall_lives(self, entries: Iterable[Entry]) -> None:
        """Take up claims that are over in the state, of their earlier events."""
        if self._metrics is not None:
            self._metrics.recall_lives(entries)

    def watch(self, world: KubernetesController) -> None:
        self._world = world

    def __call__(self, entries: Sequence[Entry]) -> None:
        self._take_up_pools()
        for entry in entries:
            if self._metrics is not None and self._conditions is not None:
                self._metrics.apply(entry)
                self._conditions.apply(entry)
        if self._metrics is not None and self._world is not None:
            self._metrics.turned(entries, self._world.controller.took)

    def _take_up_pools(self) -> None:
        """With the first turn, for then the NodePools are listed: take up since when their conditions are as they are,
        which an earlier process has seen."""
        if self._conditions is None or self._world is None or self._pools_taken_up:
            return
        self._pools_taken_up = True
        for name in self._world.runtime.state.facts.pools:
            self._conditions.shown(name, self._world.shown_on_pool(name))

    def faults(self) -> list[str]:
        """What keeps kerf from being ready. While it waits for the Lease it is ready, as Karpenter is (L-340)."""
        world = self._world
        if self._reading is not None:
            return [f"the record is being read: position {self._reading[0]} of {self._reading[1]}"]
        if world is None:
            return []
        faults = [
            f"not listed yet: {reflector.resource.path}"
            for reflector in world.reflectors
            if not reflector.listed.is_set()
        ]
        faults += [str(reflector.error) for reflector in world.reflectors if reflector.error is not None]
        faults += [str(error) for error in world.forbidden]
        if world.runtime.error is not None:
            faults.append(str(world.runtime.error))
        if (hanging := self.hangs()) is not None:
            faults.append(str(hanging))
        return faults if faults or world.ready else ["the cluster has not been looked at yet"]

    def notes(self) -> list[str]:
        """What an operator should know although kerf is ready."""
        return clock_notes(self.clocks)

    def busy(self) -> bool:
        """Whether a thread computes for long: it reads the record, or is in a turn that is no short one."""
        return self._reading is not None or (self._world is not None and self._world.controller.watch.seconds() > LONG)

    def hangs(self) -> KerfError | None:
        """The turn that takes too long: it will not end by itself, and nothing is decided meanwhile. Printed once,
        because who looks for it finds a process that was started again. A start is no turn: it may take its time."""
        hanging = self._world.controller.watch.overdue(self._longest_turn) if self._world is not None else None
        if hanging is not None and not self._hung:
            print_error(str(hanging))
        self._hung = hanging is not None
        return hanging

    async def metrics(self) -> list[bytes]:
        """All metrics in Prometheus's text format: the text, which all scrapers of a moment share, and its age."""
        if self._made is None or time.monotonic() - self._made[0] >= SCRAPE_CACHED:
            if self._making is None:
                self._making = asyncio.create_task(self._make(), name="metrics")
                self._making.add_done_callback(self._is_made)
            made, text = await asyncio.shield(self._making)
        else:
            made, text = self._made
        age = Family("kerf_metrics_age_seconds", GAUGE, "How long ago the metrics of the state were made.")
        age.set(time.monotonic() - made)
        return [text, exposition([age])]

    def _is_made(self, _: asyncio.Task[tuple[float, bytes]]) -> None:
        self._making = None

    async def _make(self) -> tuple[float, bytes]:
        """The text, and when it was made. No turn runs while the state is read."""
        world, metrics = self._world, self._metrics
        families = [_build(), *self._synced(), *self.requests.families(), *clock_families(self.clocks)]
        families += self.aws.families() if self._provider == "aws" else []
        families += [family for loop in self.told for family in loop.families()]
        if world is None or metrics is None:
            return time.monotonic(), exposition(families) + process_text()
        if not await _taken(world.controller.between_turns, MAX_TURN_WAIT if self._made is not None else None):
            assert self._made is not None
            return self._made
        try:
            families += metrics.families() + (self._conditions.families() if self._conditions is not None else [])
            families += await asyncio.to_thread(self._gauges, world.runtime.state, metrics)
        finally:
            world.controller.between_turns.release()
        text = await asyncio.to_thread(exposition, families) + process_text()
        self._made = time.monotonic(), text
        return self._made

    def _gauges(self, state: State, metrics: RecordCounters) -> list[Family]:
        now = self.clocks.now()
        families = offering_families(state, now)
        if self._conditions is not None:
            families += self._conditions.gauges(now, per_object=self._per_object)
        return families + cluster_gauges(state, metrics, now) if self._state_metrics else families

    def _synced(self) -> list[Family]:
        """Whether all that is watched has been listed, and whether kerf may act (L-382)."""
        world = self._world
        listed = world is not None and all(reflector.listed.is_set() for reflector in world.reflectors)
        synced = Family(PREFIX + "cluster_state_synced", GAUGE, "Whether everything that is watched has been listed.")
        synced.set(float(listed))
        ready = Family("kerf_ready", GAUGE, "Whether kerf sees the cluster, writes its record, and may act.")
        ready.set(float(world is not None and not self.faults()))
        return [synced, ready]


async def _taken(lock: asyncio.Lock, patience: float | None) -> bool:
    """Take the lock within so many seconds; returns whether that succeeded."""
    try:
        async with asyncio.timeout(patience):
            return await lock.acquire()
    except TimeoutError:
        return False


def _build() -> Family:
    """The constant metric that says which version runs (L-365)."""
    family = Family(PREFIX + "build_info", GAUGE, "What runs.", ("version", "goversion", "goarch", "commit"))
    family.set(1, kerf.__version__, f"python{platform.python_version()}", platform.machine(), "")
    return family
