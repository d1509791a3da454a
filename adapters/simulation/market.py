"""What the virtual cloud sells: a catalogue whose prices change and whose capacity runs out."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.instances import Catalogue, InstanceType, Offering

Key = tuple[str, str, str]
"""(capacity type, instance type, zone)."""


class Slice(Struct, frozen=True):
    """Some of the offerings; "" stands for any."""

    capacity_type: str = ""
    instance_type: str = ""
    zone: str = ""

    def holds(self, key: Key) -> bool:
        wanted = (self.capacity_type, self.instance_type, self.zone)
        return all(not part or part == have for part, have in zip(wanted, key, strict=True))


class Market:
    """`catalogue` is what observers see now: with today's prices. A lack of capacity shows only to those who
    buy."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._types = {kind.name: kind for kind in catalogue.types}
        self._lacking: dict[Slice, None] = {}

    def type(self, name: str) -> InstanceType | None:
        return self._types.get(name)

    def offering(self, key: Key, reservation: str = "") -> Offering | None:
        """The offering with this key, None when it is not sold."""
        kind = self._types.get(key[1])
        matching = (
            offering
            for offering in (() if kind is None else kind.offerings)
            if (offering.capacity_type, offering.zone) == (key[0], key[2]) and offering.reservation_id == reservation
        )
        return next(matching, None)

    def has_capacity(self, key: Key) -> bool:
        return not any(piece.holds(key) for piece in self._lacking)

    def exhaust(self, piece: Slice) -> None:
        """From now on nothing of this slice can be launched."""
        self._lacking[piece] = None

    def restore(self, piece: Slice) -> bool:
        """Undo the `exhaust` of this slice and of all within it; whether there was any."""
        ended = [lacking for lacking in self._lacking if _within(lacking, piece)]
        for lacking in ended:
            del self._lacking[lacking]
        return bool(ended)

    def reprice(self, piece: Slice, *, price: float | None = None, factor: float = 1.0) -> int:
        """Set or multiply prices (USD per hour); how many offerings changed."""
        changed = 0
        types = []
        for kind in self.catalogue.types:
            offerings = []
            for offering in kind.offerings:
                new = offering
                if piece.holds((offering.capacity_type, kind.name, offering.zone)):
                    new = replace(offering, price=offering.price * factor if price is None else price)
                changed += new != offering
                offerings.append(new)
            types.append(replace(kind, offerings=tuple(offerings)))
        if changed:
            self.catalogue = replace(self.catalogue, types=tuple(types))
            self._types = {kind.name: kind for kind in types}
        return changed


def _within(inner: Slice, outer: Slice) -> bool:
    return outer.holds((inner.capacity_type, inner.instance_type, inner.zone))
