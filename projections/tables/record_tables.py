"""Fold a whole record into the tables of `kerf sql`. What figures have is taken from them, so that sums agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import CatalogueSeen, Imported, ObjectGone, RecordStarted
from kerf.projections.figures.capacity import LAUNCHES_LOST, REFUSED, CapacityFold
from kerf.projections.figures.cost import COST, NODE_HOURS, WORKLOAD, cost_measures
from kerf.projections.figures.evictions import EvictionsFold
from kerf.projections.figures.lives import Life, LivesFold
from kerf.projections.figures.measures import HOUR, HOUR_MS, Measure
from kerf.projections.figures.usage import UsageFold
from kerf.projections.tables.claim_states import ClaimStatesFold
from kerf.projections.tables.decisions import DecisionsFold
from kerf.projections.tables.moves import MovesFold
from kerf.projections.tables.pods import PodsFold
from kerf.projections.tables.prices import PricesFold
from kerf.projections.tables.rows import (
    ClaimRow,
    EvictionRow,
    LaunchFailureRow,
    NodeHourRow,
    RecordRow,
    WorkloadCostRow,
)


class RecordTables:
    """Folds entries; give them with `apply`, then ask for `rows`.

    `shape` and `catalogue` give what a digest names. `catalogues` are those that a cut record begins with, by
    NodeClass. Costs count from `since` (ms since the epoch), when the record begins. `imported` says what a partial
    record lacks: prices that it does not know are NULL.
    """

    def __init__(
        self,
        shape: Callable[[str], PodShape],
        catalogue: Callable[[str], Catalogue],
        *,
        catalogues: Mapping[str, str],
        since: int,
        imported: Imported | None = None,
    ) -> None:
        self._imported = imported
        self._catalogues = dict(catalogues)
        self._lives = LivesFold()
        self._usage = UsageFold(shape)
        self._evictions = EvictionsFold(self._lives)
        self._capacity = CapacityFold(self._lives)
        self._states = ClaimStatesFold()
        self._decisions = DecisionsFold(self._node_pool)
        self._moves = MovesFold()
        self._pods = PodsFold(shape)
        self._prices = PricesFold(catalogue)
        self._instances: dict[str, str] = {}
        self._registered: dict[str, int] = {}
        self._since, self._last = since, 0

    @property
    def reads(self) -> frozenset[type[Struct]]:
        """The types of entries that any of the folds reads."""
        figures = (self._lives, self._usage, self._evictions, self._capacity)
        ours: set[type[Struct]] = {RecordStarted, CatalogueSeen, Decision, Pod, ObjectGone, *ev.CLAIM_EVENTS}
        return frozenset(ours.union(*(fold.reads for fold in figures)))

    def apply(self, entry: Entry) -> None:
        if not self._last:
            for node_class, digest in sorted(self._catalogues.items()):
                self._prices.seen(node_class, digest, entry.at)
        self._last = entry.position
        for fold in (
            self._lives, self._usage, self._evictions, self._capacity, self._states, self._decisions, self._moves,
            self._pods, self._prices,
        ):  # fmt: skip
            fold.apply(entry)
        payload = entry.payload
        if isinstance(payload, ev.Launched | ev.Adopted):
            self._instances[payload.claim] = payload.instance
        elif isinstance(payload, ev.Registered):
            self._registered[payload.claim] = entry.at

    def rows(self) -> Iterator[tuple[str, Iterable[Struct]]]:
        """Give each table's name and rows."""
        until = self._lives.at
        yield "records", [self._record(until)]
        yield "claims", (self._claim(life, until) for _, life in sorted(self._lives.lives.items()) if life.position)
        yield "claim_states", self._states.rows(until)
        yield "decisions", self._decisions.decisions
        yield "verdicts", self._decisions.verdicts(until, self._going)
        yield "evictions", map(_eviction, self._evictions.measures)
        yield "pods", self._pods.rows(until, self._lives.by_node)
        yield "prices", self._prices.rows()
        yield "node_hours", map(self._node_hour, cost_measures(self._lives, HOUR, self._since, until))
        shares = cost_measures(self._lives, WORKLOAD, self._since, until, self._usage)
        yield "workload_costs", map(self._workload_cost, shares)
        yield "launch_failures", map(_launch_failure, self._capacity.measures)
        yield "moves", self._moves.rows()

    def _record(self, until: int) -> RecordRow:
        imported = self._imported
        sources, lacks = (imported.sources, imported.lacks) if imported is not None else ((), ())
        return RecordRow(since=self._since, until=until, last=self._last, imported_from=sources, lacks=lacks)

    def _node_pool(self, claim: str) -> str:
        life = self._lives.lives.get(claim)
        return life.node_pool if life is not None else ""

    def _going(self, claim: str) -> int:
        """When a claim began to go or was over (ms since the epoch), 0 for not yet."""
        life = self._lives.lives.get(claim)
        return min((at for at in (life.tainted, life.over) if at), default=0) if life is not None else 0

    def _usd(self, amount: float) -> float | None:
        return None if self._imported is not None and Missing.PRICES in self._imported.lacks else amount

    def _claim(self, life: Life, until: int) -> ClaimRow:
        paid = self._lives.cost.paid.get(life.claim)
        lasted = max(0, (paid.until or until) - max(paid.since, self._since)) if paid is not None else 0
        return ClaimRow(
            claim=life.claim, node_pool=life.node_pool, node=life.node, instance=self._instances.get(life.claim, ""),
            instance_type=life.instance_type, zone=life.zone, capacity_type=life.capacity_type,
            price=self._usd(life.price) if paid is not None else None, state=self._states.state.get(life.claim, ""),
            requested=life.requested, launched=life.launched, registered=self._registered.get(life.claim, 0),
            initialized=life.initialized, drifted=life.drifted, tainted=life.tainted, ended=life.over,
            launched_for=life.launched_for, why=life.why, failed=life.failed, replaces=life.replaces,
            replaced_by=life.replaced_by, pods_served=life.served, pods_evicted=life.evicted,
            node_hours=lasted / HOUR_MS, cost=self._usd(paid.cost(until, self._since)) if paid is not None else None,
            position=life.position,
        )  # fmt: skip

    def _node_hour(self, measure: Measure) -> NodeHourRow:
        about = measure.about
        return NodeHourRow(
            hour=measure.at // HOUR_MS * HOUR_MS, claim=about["node"], node_pool=about["pool"],
            instance_type=about["type"], zone=about["zone"], capacity_type=about["capacity"],
            launched_for=about["reason"], node_hours=measure.amounts[NODE_HOURS],
            cost=self._usd(measure.amounts[COST]),
        )  # fmt: skip

    def _workload_cost(self, measure: Measure) -> WorkloadCostRow:
        about, amounts = measure.about, measure.amounts
        return WorkloadCostRow(
            claim=about["node"], node_pool=about["pool"], workload=about[WORKLOAD], node_hours=amounts[NODE_HOURS],
            cost=self._usd(amounts[COST]),
        )  # fmt: skip


def _eviction(measure: Measure) -> EvictionRow:
    about = measure.about
    return EvictionRow(
        time=measure.at, pod=about["pod"], workload=about[WORKLOAD], outcome=next(iter(measure.amounts)),
        claim=about["node"], node_pool=about["pool"], instance_type=about["type"], zone=about["zone"],
        capacity_type=about["capacity"], reason=about["reason"],
    )  # fmt: skip


def _launch_failure(measure: Measure) -> LaunchFailureRow:
    about, amounts = measure.about, measure.amounts
    return LaunchFailureRow(
        time=measure.at, claim=about["node"], node_pool=about["pool"], workload=about[WORKLOAD],
        offering=about["offering"], instance_type=about.get("type", ""), zone=about.get("zone", ""),
        capacity_type=about.get("capacity", ""), reason=about["reason"],
        refused=int(amounts.get(REFUSED, 0)), launches_lost=int(amounts.get(LAUNCHES_LOST, 0)),
    )  # fmt: skip
