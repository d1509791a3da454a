"""Fold curves over time: what the nodes cost per hour, how many there are, how many pods wait, how many leave."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from msgspec import Struct, field

from kerf.engine.model.kubernetes.pods import Pod, is_provisionable
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.explorer.steps import Steps
from kerf.projections.figures.evictions import EVICTED, FORCED, EvictionsFold
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.loops import Loop, find_loops


class Curves(Struct, frozen=True, kw_only=True):
    """Curves at the `times` (ms since the epoch), one value each.

    `cost` is USD per hour by NodePool, at the dearest moment since the time before. `nodes` are those that cost,
    `pending` the pods that wait for a node. Both are the most since the time before. `evictions` counts the pods made
    to leave since the time before.
    """

    times: tuple[int, ...]
    cost: dict[str, tuple[float, ...]]
    nodes: tuple[int, ...]
    pending: tuple[int, ...]
    evictions: tuple[int, ...]


class CurveSteps(Struct, kw_only=True):
    """What curves are made of: each number at all times, the cost by NodePool and in `total`."""

    nodes: Steps = field(default_factory=Steps)
    pending: Steps = field(default_factory=Steps)
    evictions: Steps = field(default_factory=Steps)
    pools: dict[str, Steps] = field(default_factory=dict)
    total: Steps = field(default_factory=Steps)

    def curves(self, since: int, until: int, points: int) -> Curves:
        """Return the curves at this many equal distances from `since` to `until` (ms since the epoch)."""
        times = tuple(since + (until - since) * number // (points - 1) for number in range(points))
        parts = list(zip((since - 1, *times), times, strict=False))
        evicted = [self.evictions.at(time) for time in (since - 1, *times)]
        dearest = [self.total.peak(*part) for part in parts]
        return Curves(
            times=times,
            cost={pool: tuple(_price(steps.at(at)) for at in dearest) for pool, steps in sorted(self.pools.items())},
            nodes=tuple(int(self.nodes.most(*part)) for part in parts),
            pending=tuple(int(self.pending.most(*part)) for part in parts),
            evictions=tuple(int(later - earlier) for earlier, later in pairwise(evicted)),
        )

    def runs(self, pool: str, at: int, nodes: int, price: float) -> None:
        """So many `nodes` of this price (USD per hour) more run from `at` on."""
        self.nodes.add(at, nodes)
        self.total.become(at, _price((self.total.values[-1] if self.total.values else 0) + nodes * price))
        self.pools.setdefault(pool, Steps()).add(at, nodes * price)


class CurvesFold:
    """Folds what the curves are made of. Give it entries with `apply`."""

    def __init__(self) -> None:
        self.steps = CurveSteps()
        self._lives = LivesFold()
        self._evictions = EvictionsFold(self._lives)
        self._counted = 0
        self._pending: set[str] = set()

    def apply(self, entry: Entry) -> None:
        kind = type(entry.payload)
        if kind in self._lives.reads:
            self._lives.apply(entry)
        if kind in self._evictions.reads:
            self._evictions.apply(entry)
            self._count_evictions()
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, entry.payload, entry.at)

    def loops(self, since: int, until: int) -> list[Loop]:
        """Return what goes round in circles between two times, the worst first."""
        return find_loops(self._lives, since, until, self._evictions.again)

    def _count_evictions(self) -> None:
        for measure in self._evictions.measures[self._counted :]:
            self.steps.evictions.add(measure.at, measure.amounts.get(EVICTED, 0) + measure.amounts.get(FORCED, 0))
        self._counted = len(self._evictions.measures)

    def _pod(self, pod: Pod, at: int) -> None:
        self._waits(pod.uid, is_provisionable(pod), at)

    def _gone(self, gone: ObjectGone, at: int) -> None:
        if gone.kind == "pod":
            self._waits(gone.key, False, at)

    def _waits(self, uid: str, waits: bool, at: int) -> None:
        if waits != (uid in self._pending):
            (self._pending.add if waits else self._pending.discard)(uid)
            self.steps.pending.add(at, 1 if waits else -1)

    def _begun(self, event: ev.Launched | ev.Adopted, at: int) -> None:
        self._runs(event.claim, at, 1)

    def _ended(self, event: ev.Terminated | ev.InstanceVanished, at: int) -> None:
        if event.claim in self._lives.cost.paid:
            self._runs(event.claim, at, -1)

    def _runs(self, claim: str, at: int, change: int) -> None:
        paid = self._lives.cost.paid[claim]
        self.steps.runs(paid.node_pool, at, change, paid.price)


_HANDLERS: dict[type[Struct], Callable[[CurvesFold, Any, int], None]] = {
    Pod: CurvesFold._pod,
    ObjectGone: CurvesFold._gone,
    ev.Launched: CurvesFold._begun,
    ev.Adopted: CurvesFold._begun,
    ev.Terminated: CurvesFold._ended,
    ev.InstanceVanished: CurvesFold._ended,
}


def _price(amount: float) -> float:
    """Without what is left of sums that should be zero."""
    return round(amount, 6)
