"""What the virtual cloud sells: catalogues whose prices change and whose capacity runs out."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.labels import DEFAULT_TENANCY
from kerf.engine.scheduling.launchable.launch_offers import offerings_of

Key = tuple[str, str, str]
"""(capacity type, instance type, zone)."""
UNLIMITED_INSTANCES = 1 << 30
"""More instances than any reservation has."""
SHARED_CATALOGUE = ""
"""The key of the catalogue for NodeClasses without one of their own."""


class OfferingSelector(Struct, frozen=True):
    """Selects offerings. "" stands for any."""

    capacity_type: str = ""
    instance_type: str = ""
    zone: str = ""

    def holds(self, key: Key) -> bool:
        wanted = (self.capacity_type, self.instance_type, self.zone)
        return all(not part or part == have for part, have in zip(wanted, key, strict=True))


class PriceChange(Struct, frozen=True):
    """A new price for the selected offerings, or a factor for the old one."""

    piece: OfferingSelector
    price: float | None
    factor: float

    def of(self, catalogue: Catalogue) -> tuple[Catalogue, int]:
        """Return the catalogue with the new prices, and how many offerings changed."""
        changed = 0
        types = []
        for kind in catalogue.types:
            offerings = []
            for offering in kind.offerings:
                new = offering
                if self.piece.holds((offering.capacity_type, kind.name, offering.zone)):
                    new = replace(offering, price=offering.price * self.factor if self.price is None else self.price)
                changed += new != offering
                offerings.append(new)
            types.append(replace(kind, offerings=tuple(offerings)))
        return (replace(catalogue, types=tuple(types)) if changed else catalogue), changed


class Market:
    """What is sold. `catalogue_of` is what everybody sees, at today's prices; a lack of capacity shows only to those
    who buy.

    Every NodeClass (`group/kind/name`) buys from the shared catalogue, unless it has one of its own: the same offerings
    with what its machines have room for.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._given = {SHARED_CATALOGUE: catalogue}
        self._today: dict[str, Catalogue] = {}
        self._types: dict[str, dict[str, InstanceType]] = {}
        self._repriced: list[PriceChange] = []
        self._lacking: dict[OfferingSelector, None] = {}
        self._taken: dict[str, int] = {}  # of each reservation
        self.ended: set[str] = set()  # reservations
        self._show(SHARED_CATALOGUE, catalogue)

    def stock(self, node_class: str, catalogue: Catalogue) -> bool:
        """Give a NodeClass a catalogue of its own, at today's prices. Return whether that changes anything."""
        if self._given.get(node_class) == catalogue:
            return False
        self._given[node_class] = catalogue
        self._show(node_class, self._as_of_today(catalogue))
        return True

    def _as_of_today(self, catalogue: Catalogue) -> Catalogue:
        for repricing in self._repriced:
            catalogue, _ = repricing.of(catalogue)
        return _with_reservations(catalogue, self._taken)

    def catalogue_of(self, node_class: str = SHARED_CATALOGUE) -> Catalogue:
        return self._today.get(node_class, self._today[SHARED_CATALOGUE])

    def type(self, name: str, node_class: str = SHARED_CATALOGUE) -> InstanceType | None:
        return self._types.get(node_class, self._types[SHARED_CATALOGUE]).get(name)

    def _show(self, node_class: str, catalogue: Catalogue) -> None:
        self._today[node_class] = catalogue
        self._types[node_class] = {kind.name: kind for kind in catalogue.types}

    def offering(self, key: Key, reservation: str = "", tenancy: str = DEFAULT_TENANCY) -> Offering | None:
        """Return the offering with this key, or None if it is not sold."""
        kind = self.type(key[1])
        matching = (
            offering
            for offering in (() if kind is None else offerings_of(kind, tenancy))
            if (offering.capacity_type, offering.zone) == (key[0], key[2]) and offering.reservation_id == reservation
        )
        return next(matching, None)

    def has_capacity(self, key: Key) -> bool:
        return not any(piece.holds(key) for piece in self._lacking)

    def exhaust(self, piece: OfferingSelector) -> None:
        """Let none of the selected offerings be launched from now on."""
        self._lacking[piece] = None

    def restore(self, piece: OfferingSelector) -> bool:
        """Undo `exhaust` for the selected offerings. Return whether there was anything to undo."""
        ended = [lacking for lacking in self._lacking if _selected(lacking, piece)]
        for lacking in ended:
            del self._lacking[lacking]
        return bool(ended)

    def reservations(self, node_class: str = SHARED_CATALOGUE) -> tuple[str, ...]:
        """Return the reservations that the NodeClass may use, also those with nothing left."""
        types = self.catalogue_of(node_class).types
        return tuple(sorted({o.reservation_id for kind in types for o in kind.offerings if o.reservation_id}))

    def reserve(self, reservation: str, change: int) -> None:
        """Change by how many instances a reservation has left."""
        self._taken[reservation] = self._taken.get(reservation, 0) - change
        for node_class in list(self._given):
            self._show(node_class, self._as_of_today(self._given[node_class]))

    def end_reservation(self, reservation: str) -> None:
        """Sell nothing of this reservation any more."""
        self.ended.add(reservation)
        self.reserve(reservation, -UNLIMITED_INSTANCES)

    def reprice(self, piece: OfferingSelector, *, price: float | None = None, factor: float = 1.0) -> int:
        """Set or multiply prices (USD per hour) in every catalogue. Return how many offerings of the shared one
        changed."""
        repricing = PriceChange(piece, price, factor)
        self._repriced.append(repricing)
        sold = 0
        for node_class, catalogue in list(self._today.items()):
            repriced, changed = repricing.of(catalogue)
            self._show(node_class, repriced)
            sold = changed if node_class == SHARED_CATALOGUE else sold
        return sold


def _selected(inner: OfferingSelector, outer: OfferingSelector) -> bool:
    return outer.holds((inner.capacity_type, inner.instance_type, inner.zone))


def _with_reservations(catalogue: Catalogue, taken: dict[str, int]) -> Catalogue:
    """Show of reserved offerings what is left (A-209, A-210)."""
    if not taken:
        return catalogue
    types = []
    for kind in catalogue.types:
        offerings = [
            _left_of(offering, taken.get(offering.reservation_id, 0)) if offering.reservation_id else offering
            for offering in kind.offerings
        ]
        types.append(replace(kind, offerings=tuple(offerings)))
    return replace(catalogue, types=tuple(types))


def _left_of(offering: Offering, taken: int) -> Offering:
    left = max(0, offering.reservation_capacity - taken)
    return replace(offering, reservation_capacity=left, available=left > 0)
