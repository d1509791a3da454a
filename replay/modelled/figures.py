"""What a record or a run of the model comes to: cost, node hours, evictions, waiting, nodes that came and went."""

from __future__ import annotations

from math import fsum

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.projections.figures.cost import COST, NODE_HOURS, cost_measures
from kerf.projections.figures.evictions import EVICTED, FORCED, EvictionsFold
from kerf.projections.figures.lives import ADOPTED, LivesFold
from kerf.projections.figures.measures import within
from kerf.projections.figures.waits import WaitsFold


class Figures(Struct, frozen=True, kw_only=True):
    """Cost in USD. `evictions` counts pods that were evicted or deleted by force, `pending_seconds` sums up how long
    pods were without a node; nodes that were there at the beginning are not among `launched`.
    `running` are the nodes at the end."""

    cost: float
    node_hours: float
    evictions: int
    pending_seconds: float
    launched: int
    gone: int
    running: int


class FiguresFold:
    """Folds the figures. Give it every entry of a record, in order."""

    def __init__(self) -> None:
        self.lives = LivesFold()
        self._evictions = EvictionsFold(self.lives)
        self._waits = WaitsFold()
        self.reads = self.lives.reads | self._evictions.reads | self._waits.reads

    def apply(self, entry: Entry) -> None:
        self.lives.apply(entry)
        self._evictions.apply(entry)
        self._waits.apply(entry)

    def figures(self, since: int, until: int) -> Figures:
        """Return the figures between two times (ms since the epoch)."""
        costs = list(cost_measures(self.lives, "pool", since, until))
        evictions = within(self._evictions.measures, since, until)
        lives = [life for life in self.lives.lives.values() if life.launched]
        return Figures(
            cost=fsum(measure.amounts[COST] for measure in costs),
            node_hours=fsum(measure.amounts[NODE_HOURS] for measure in costs),
            evictions=sum(EVICTED in measure.amounts or FORCED in measure.amounts for measure in evictions),
            pending_seconds=self._waited(since, until),
            launched=sum(life.launched_for != ADOPTED and since <= life.launched <= until for life in lives),
            gone=sum(since <= life.over <= until for life in lives),
            running=sum(life.launched <= until and not 0 < life.over <= until for life in lives),
        )

    def _waited(self, since: int, until: int) -> float:
        waits = ((max(wait.since, since), min(wait.until or until, until)) for wait in self._waits.waits)
        return sum(max(0, end - begin) for begin, end in waits) / 1000
