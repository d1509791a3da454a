"""Fold the prices of the catalogues: what each offering cost, from when to when."""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import CatalogueSeen
from kerf.projections.tables.rows import PriceRow

_Key = tuple[str, str, str, str, str, str]


class PricesFold:
    """Folds catalogues. `catalogue` gives the Catalogue of a digest. A repeated price makes no row."""

    def __init__(self, catalogue: Callable[[str], Catalogue]) -> None:
        self._catalogue = catalogue
        self._known: dict[str, dict[_Key, tuple[Offering, int]]] = {}  # by NodeClass: each offering, and since when
        self._over: list[PriceRow] = []

    def apply(self, entry: Entry) -> None:
        if isinstance(entry.payload, CatalogueSeen):
            self.seen(entry.payload.node_class, entry.payload.digest, entry.at)

    def seen(self, node_class: str, digest: str, at: int) -> None:
        """Take the catalogue of a NodeClass as known from a time on (ms since the epoch)."""
        before, now = self._known.get(node_class, {}), {}
        for instance_type in self._catalogue(digest).types:
            for offering in instance_type.offerings:
                key = (
                    node_class, instance_type.name, offering.zone, offering.capacity_type, offering.tenancy,
                    offering.reservation_id,
                )  # fmt: skip
                known = before.get(key)
                same = known is not None and _sold(known[0]) == _sold(offering)
                now[key] = known if known is not None and same else (offering, at)
        self._over += [_row(key, *known, at) for key, known in before.items() if now.get(key) is not known]
        self._known[node_class] = now

    def rows(self) -> list[PriceRow]:
        """Return all prices, by offering and time."""
        known = (item for offerings in self._known.values() for item in offerings.items())
        rows = [*self._over, *(_row(key, *offering, 0) for key, offering in known)]
        return sorted(rows, key=lambda row: (row.node_class, row.instance_type, row.zone, row.capacity_type,
                                             row.tenancy, row.reservation, row.since))  # fmt: skip


def _sold(offering: Offering) -> tuple[float, bool]:
    return offering.price, offering.available


def _row(key: _Key, offering: Offering, since: int, until: int) -> PriceRow:
    node_class, instance_type, zone, capacity_type, tenancy, reservation = key
    return PriceRow(
        node_class=node_class, instance_type=instance_type, zone=zone, capacity_type=capacity_type, tenancy=tenancy,
        reservation=reservation, price=offering.price, available=offering.available, since=since, until=until,
    )  # fmt: skip
