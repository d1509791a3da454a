"""What the driver sees of the cluster: a watch on each kind, with delays, repetitions and gaps.

A watch is a stream, so an event that is late holds up those behind it. While a watch is broken, nothing is seen.
Afterwards all objects are listed again, and the differences follow a `WatchGap`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import KIND_OF, key_of
from kerf.adapters.simulation.cluster.cluster import VirtualCluster
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.engine.record.observations import ObjectGone, Observation, WatchGap


class Watch:
    """The watches of all kinds. `known` is what has been handed out: kind → key → object."""

    def __init__(
        self, cluster: VirtualCluster, clock: Clock, rng: SeededRandom, latency: int, faults: FaultPlan
    ) -> None:
        self._cluster, self._clock, self._rng = cluster, clock, rng
        self._latency, self._faults = latency, faults
        self._fault_injector = FaultInjector(faults, rng, clock)
        self._coming: list[tuple[int, int, Observation]] = []
        self._held: dict[str, int] = {}  # kind → when its stream's last event arrives
        self._broken: dict[str, tuple[int, int]] = {}  # kind → (when it is relisted, the event that it broke at)
        self._known: dict[str, dict[str, Struct]] = {}
        self._events = 0  # that the cluster produced
        self._sent = 0

    def next_due(self) -> int | None:
        """Return when the next event or list is to be collected."""
        self._pull()
        times = [when for when, _ in self._broken.values()]
        if self._coming:
            times.append(self._coming[0][0])
        return min(times, default=None)

    def collect(self) -> list[Observation]:
        """Return what has arrived by now, in order."""
        self._pull()
        now = self._clock.now
        arrived = []
        while self._coming and self._coming[0][0] <= now:
            arrived.append(heappop(self._coming)[2])
        for observation in arrived:
            self._note(observation)
        for kind in [kind for kind, (when, _) in self._broken.items() if when <= now]:
            _, since = self._broken.pop(kind)
            arrived += self._relisted(kind, since)
        return arrived

    def relist(self, *, everything: bool = False) -> list[Observation]:
        """Start over as a new process does: drop what is on its way, and give all that differs from what is known, or
        everything."""
        asked = [o for o in self._cluster.drain_observations() if not _kind(o)]
        asked = [o for _, _, o in sorted(self._coming, key=lambda c: c[:2]) if not _kind(o)] + asked
        self._coming.clear()
        self._held.clear()
        self._broken.clear()
        arrived: list[Observation] = []
        for kind in KIND_OF.values():
            known = {} if everything else self._known.get(kind, {})
            arrived += self._difference(kind, known)
        return arrived + asked

    # ── faults ──────────────────────────────────────────────────────────────────────────────────────────────

    def _pull(self) -> None:
        for observation in self._cluster.drain_observations():
            self._events += 1
            kind = _kind(observation)
            if kind in self._broken:
                continue
            if kind and self._fault_injector.strikes("watch_gap", self._events):
                self._break(kind)
                continue
            self._send(observation, kind)
            if kind and self._fault_injector.strikes("watch_twice", self._events):
                self._send(observation, kind)

    def _break(self, kind: str) -> None:
        """Break the watch, and lose what was still on its way."""
        self._broken[kind] = (self._clock.now + self._faults.watch_gap_for, self._events)
        self._held.pop(kind, None)
        self._coming = [coming for coming in self._coming if _kind(coming[2]) != kind]
        heapify(self._coming)

    def _send(self, observation: Observation, kind: str) -> None:
        late = 0
        if kind and self._fault_injector.strikes("watch_late", self._events):
            late = self._rng.between(0, self._faults.watch_late_by, "watch-late-by", self._events)
        when = max(self._clock.now + self._latency + late, self._held.get(kind, 0))
        self._held[kind] = when
        self._sent += 1
        heappush(self._coming, (when, self._sent, observation))

    def _relisted(self, kind: str, since: int) -> list[Observation]:
        arrived = self._difference(kind, self._known.get(kind, {}))
        gone = sum(isinstance(observation.payload, ObjectGone) for observation in arrived)
        gap = WatchGap(kind, since=str(since), until=str(self._events), changed=len(arrived) - gone, gone=gone)
        return [Observation(gap), *arrived]

    def _difference(self, kind: str, known: dict[str, Struct]) -> list[Observation]:
        """Return the observations that lead from what is known of a kind to what there is."""
        table = self._cluster.api.table(kind)
        listed = self._cluster.api.listing(kind)
        differences = [o for o in listed if known.get(_key(o.payload)) != o.payload]
        differences += [Observation(ObjectGone(kind=kind, key=key)) for key in sorted(known) if key not in table]
        for observation in differences:
            self._note(observation)
        return differences

    def _note(self, observation: Observation) -> None:
        payload = observation.payload
        if isinstance(payload, ObjectGone):
            self._known.setdefault(payload.kind, {}).pop(payload.key, None)
        elif type(payload) in KIND_OF:
            self._known.setdefault(KIND_OF[type(payload)], {})[_key(payload)] = payload


def _kind(observation: Observation) -> str:
    """Return the kind whose watch gives this observation, or "" for one that comes through no watch."""
    payload = observation.payload
    return payload.kind if isinstance(payload, ObjectGone) else KIND_OF.get(type(payload), "")


def _key(payload: Struct) -> str:
    return key_of(payload)
