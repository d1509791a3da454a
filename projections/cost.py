"""Compute what the nodes cost, as price × time, from claim events alone.

A claim costs from `Launched` (or `Adopted`, from when it was found) until it is over, at the price in that event, in
USD per hour. These are list prices: no bill, no discounts, no reservations.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry

HOUR_MS = 3_600_000
PriceOf = Callable[[ev.Launched | ev.Adopted], float]
"""The price of a launch, in USD per hour."""
_READ = frozenset(
    {
        ev.Requested, ev.Launched, ev.Adopted, ev.LaunchFailed, ev.LaunchTimedOut, ev.Cancelled, ev.Terminated,
        ev.InstanceVanished,
    }
)  # fmt: skip
"""Few entries are of these types, so one look leaves all others out."""


class ClaimCost(Struct, frozen=True, kw_only=True):
    """The time for which one claim costs. `until` is 0 while it runs. Times are in ms since the epoch."""

    claim: str
    node_pool: str
    instance_type: str
    capacity_type: str
    price: float
    since: int
    until: int = 0

    def cost(self, now: int, since: int = 0) -> float:
        """Return USD from `since` up to `now`."""
        begin, end = max(self.since, since), min(self.until or now, now)
        return self.price * max(0, end - begin) / HOUR_MS


class HourlyCost(Struct, frozen=True):
    """What the hour that begins at `at` cost, in USD, in all and by NodePool."""

    at: int
    cost: float
    pools: dict[str, float]


class CostReport(Struct, frozen=True, kw_only=True):
    """The cost up to `at`: `total` in USD so far, `rate` in USD per hour now. `pools` and `claims` hold totals, dearest
    first."""

    at: int
    total: float
    rate: float
    pools: dict[str, float]
    claims: dict[str, float]
    hours: tuple[HourlyCost, ...]


class CostFold:
    """Folds the cost. Give it entries with `apply`, then ask."""

    def __init__(self, price: PriceOf | None = None) -> None:
        """`price` gives the price of a launch in place of the recorded one."""
        self.at = 0
        self._price: PriceOf = price or _recorded
        self.paid: dict[str, ClaimCost] = {}
        self._pools: dict[str, str] = {}

    def apply(self, entry: Entry) -> None:
        self.at = entry.at
        payload = entry.payload
        if type(payload) not in _READ:
            return
        if isinstance(payload, ev.Requested):
            self._pools[payload.claim] = payload.node_pool
        elif isinstance(payload, ev.Launched):
            self._begin(payload, self._pools.pop(payload.claim, ""), entry.at)
        elif isinstance(payload, ev.Adopted):
            self._begin(payload, payload.node_pool, entry.at)
        elif isinstance(payload, ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled):
            self._pools.pop(payload.claim, None)
        elif isinstance(payload, ev.Terminated | ev.InstanceVanished) and payload.claim in self.paid:
            paid = self.paid[payload.claim]
            self.paid[payload.claim] = ClaimCost(
                claim=paid.claim, node_pool=paid.node_pool, instance_type=paid.instance_type,
                capacity_type=paid.capacity_type, price=paid.price, since=paid.since, until=entry.at,
            )  # fmt: skip

    def _begin(self, event: ev.Launched | ev.Adopted, node_pool: str, at: int) -> None:
        self.paid[event.claim] = ClaimCost(
            claim=event.claim, node_pool=node_pool, instance_type=event.instance_type,
            capacity_type=event.capacity_type, price=self._price(event), since=at,
        )  # fmt: skip

    def total(self, now: int | None = None) -> float:
        """Return USD up to `now` (the last entry by default)."""
        end = self.at if now is None else now
        return fsum(paid.cost(end) for paid in self.paid.values())

    def rate(self) -> float:
        """Return USD per hour of what runs now."""
        return fsum(paid.price for paid in self.paid.values() if not paid.until)

    def hours(self, now: int | None = None) -> list[HourlyCost]:
        """Return every hour of the clock in which something ran, up to `now`."""
        end = self.at if now is None else now
        costs: dict[int, dict[str, list[float]]] = {}
        for paid in self.paid.values():
            last = min(paid.until or end, end)
            for hour in range(paid.since // HOUR_MS * HOUR_MS, last, HOUR_MS):
                amount = paid.cost(min(hour + HOUR_MS, end), hour)
                costs.setdefault(hour, {}).setdefault(paid.node_pool, []).append(amount)
        return [
            HourlyCost(
                hour, fsum(a for pool in pools.values() for a in pool), {p: fsum(a) for p, a in sorted(pools.items())}
            )
            for hour, pools in sorted(costs.items())
        ]

    def report(self, now: int | None = None) -> CostReport:
        end = self.at if now is None else now
        pools: dict[str, list[float]] = {}
        for paid in self.paid.values():
            pools.setdefault(paid.node_pool, []).append(paid.cost(end))
        return CostReport(
            at=end,
            total=self.total(end),
            rate=self.rate(),
            pools=_dearest_first({pool: fsum(amounts) for pool, amounts in pools.items()}),
            claims=_dearest_first({name: paid.cost(end) for name, paid in self.paid.items()}),
            hours=tuple(self.hours(end)),
        )


def _recorded(event: ev.Launched | ev.Adopted) -> float:
    return event.price


def _dearest_first(costs: dict[str, float]) -> dict[str, float]:
    return dict(sorted(costs.items(), key=lambda item: (-item[1], item[0])))
