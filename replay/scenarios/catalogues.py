"""Read the instance types of conformance scenarios (docs/plan.md, section 1.2): from a SOURCE to a Catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVATION_TYPE, RESERVED, ZONE, ZONE_ID
from kerf.engine.model.manifests.slice_templates import attribute_bindings, slice_templates
from kerf.engine.model.quantities import parse_quantity
from kerf.engine.scheduling.matching.resources import total
from kerf.replay.scenarios.errors import CatalogueError
from kerf.replay.scenarios.forms import converted

Quantity = str | int | float
Price = Annotated[float, Meta(ge=0, le=1e9)]
"""USD per hour, or a factor of it. The planner divides by prices and adds them up: each is finite."""
DEFAULT_RESERVATION = "default"
BuiltIn = Mapping[str, Callable[[Sequence[str]], Catalogue]]
"""Catalogues by name, each made for the zones that a source names (none: for those that it has by itself)."""


class OfferingWire(Struct, rename="camel"):
    zone: str
    capacity_type: str
    price: Price
    zone_id: str = ""
    available: bool = True
    reservation_id: str = ""
    reservation_capacity: int = 0


class OverheadWire(Struct, rename="camel"):
    kube_reserved: dict[str, Quantity] = {}
    system_reserved: dict[str, Quantity] = {}
    eviction_threshold: dict[str, Quantity] = {}


class DeviceWire(Struct):
    driver: str
    pool: str
    device: str


class BindingWire(Struct):
    attribute: str
    devices: list[DeviceWire]


class InstanceTypeWire(Struct, rename="camel"):
    name: str
    capacity: dict[str, Quantity]
    overhead: OverheadWire = msgspec.field(default_factory=OverheadWire)
    requirements: dict[str, list[str]] = {}
    offerings: list[OfferingWire] = []
    resource_slices: list[dict[str, Any]] = []  # specs
    attribute_bindings: list[BindingWire] = []


class ChangeWire(Struct, rename="camel", forbid_unknown_fields=True):
    available: bool | None = None
    price: Price | None = None
    price_factor: Price | None = None


class OfferingsWire(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Every offering that matches. A matcher that is left out matches all."""

    types: list[str] | None = None
    zones: list[str] | None = None
    capacity_types: list[str] | None = None

    def match(self, name: str, offering: Offering) -> bool:
        """Whether they include this offering of the instance type `name`."""
        asked = ((self.types, name), (self.zones, offering.zone), (self.capacity_types, offering.capacity_type))
        return all(matcher is None or value in matcher for matcher, value in asked)


class PatchWire(OfferingsWire):
    """A change to offerings."""

    set: ChangeWire


class ReservationWire(Struct, rename="camel", forbid_unknown_fields=True):
    type: str
    zone: str
    id: str
    capacity: int
    price: Price
    available: bool = True


class SourceWire(Struct, rename="camel", forbid_unknown_fields=True):
    catalogue: str = ""
    names: list[str] | None = None
    zones: list[str] | None = None
    patches: list[PatchWire] = []
    reservations: list[ReservationWire] = []
    inline: list[InstanceTypeWire] = []
    in_doubt: list[OfferingsWire] = []


class Catalogues:
    """Named catalogues. Each type is read when it is first asked for. Scenarios that share a SOURCE share a
    Catalogue."""

    def __init__(self, documents: Mapping[str, Any], built_in: BuiltIn | None = None) -> None:
        """`documents`: the object under `catalogues` of catalogues.json, name → list of instance types. `built_in`
        catalogues are there without a file; a document of the same name takes the place of one."""
        self._documents = documents
        self._built_in = {name: make for name, make in (built_in or {}).items() if name not in documents}
        self._types: dict[tuple[str, tuple[str, ...]], dict[str, InstanceType]] = {}
        self._made: dict[bytes, Catalogue] = {}
        self._digests: dict[int, str] = {}

    def source(self, document: Any, where: str = "instanceTypes") -> Catalogue:
        """Return the types of one SOURCE: picked, restricted to zones, patched, with reservations, in that order.

        Raises CatalogueError for an unknown name, and ScenarioError for a wrong form, with a path below `where`.
        """
        key = msgspec.json.encode(document, order="deterministic")
        catalogue = self._made.get(key)
        if catalogue is None:
            catalogue = self._made[key] = self._make(converted(document, SourceWire, where))
        return catalogue

    def in_doubt(self, document: Any) -> frozenset[tuple[str, str, str]]:
        """Return what the cloud refused when it was last asked for, of a SOURCE, as (capacity type, instance type,
        zone): nothing is replaced by it (A-290)."""
        doubted = msgspec.convert(document, SourceWire).in_doubt
        if not doubted:
            return frozenset()
        return frozenset(
            (offering.capacity_type, instance_type.name, offering.zone)
            for instance_type in self.source(document).types
            for offering in instance_type.offerings
            if any(offerings.match(instance_type.name, offering) for offerings in doubted)
        )

    def digest(self, catalogue: Catalogue) -> str:
        """Return the content digest of a catalogue that `source` gave. It is computed once."""
        digest = self._digests.get(id(catalogue))
        if digest is None:
            digest = self._digests[id(catalogue)] = content(catalogue)[0]
        return digest

    def _make(self, wire: SourceWire) -> Catalogue:
        types = self._picked(wire) if wire.catalogue else []
        types += [_instance_type(inline) for inline in wire.inline]
        if wire.zones is not None:
            types = [_restricted(instance_type, frozenset(wire.zones)) for instance_type in types]
        for patch in wire.patches:
            types = [_patched(instance_type, patch) for instance_type in types]
        for reservation in wire.reservations:
            if not any(instance_type.name == reservation.type for instance_type in types):
                raise CatalogueError(
                    f"reservation {reservation.id} names no instance type of its source: {reservation.type}",
                    hint="Name one of the types that the source lists",
                )
            types = [
                _reserved(instance_type, reservation) if instance_type.name == reservation.type else instance_type
                for instance_type in types
            ]
        return Catalogue(tuple(types), source=wire.catalogue or "inline")

    def _picked(self, wire: SourceWire) -> list[InstanceType]:
        known = self._catalogue(wire.catalogue, tuple(wire.zones or ()))
        if wire.names is None:
            return list(known.values())
        missing = [name for name in wire.names if name not in known]
        if missing:
            raise CatalogueError(
                f"catalogue {wire.catalogue} has no instance type {', '.join(missing)}",
                hint="Leave the name out, or describe the type under inline",
            )
        return [known[name] for name in wire.names]

    def _catalogue(self, name: str, zones: tuple[str, ...]) -> dict[str, InstanceType]:
        key = name, zones if name in self._built_in else ()
        if key not in self._types:
            self._types[key] = {kind.name: kind for kind in self._read(name, zones)}
        return self._types[key]

    def _read(self, name: str, zones: tuple[str, ...]) -> Iterable[InstanceType]:
        if name in self._built_in:
            return self._built_in[name](zones).types
        if name not in self._documents:
            known = ", ".join(sorted({*self._documents, *self._built_in}))
            ones = f"Known ones: {known}" if known else ""
            file = "" if self._documents else "Give a file of catalogues (kerf plan --catalogues FILE)"
            raise CatalogueError(f"there is no catalogue {name}", hint=". ".join(filter(None, (ones, file))))
        return map(_instance_type, converted(self._documents[name], list[InstanceTypeWire], f"catalogues.{name}"))


def _resources(quantities: Mapping[str, Quantity]) -> Resources:
    return {name: parse_quantity(quantity, name) for name, quantity in quantities.items()}


def _instance_type(wire: InstanceTypeWire) -> InstanceType:
    overhead = wire.overhead
    parts = (overhead.kube_reserved, overhead.system_reserved, overhead.eviction_threshold)
    return InstanceType(
        wire.name,
        _resources(wire.capacity),
        total(_resources(part) for part in parts),
        {key: tuple(values) for key, values in wire.requirements.items()},
        tuple(_offering(offering) for offering in wire.offerings),
        slices=slice_templates(wire.resource_slices),
        bindings=attribute_bindings(msgspec.to_builtins(wire.attribute_bindings)),
    )


def _offering(wire: OfferingWire) -> Offering:
    return Offering(
        wire.zone,
        wire.capacity_type,
        wire.price,
        wire.available,
        wire.zone_id,
        wire.reservation_id,
        DEFAULT_RESERVATION if wire.reservation_id else "",
        wire.reservation_capacity,
    )


def _restricted(instance_type: InstanceType, zones: frozenset[str]) -> InstanceType:
    """Keep the offerings in these zones, and shrink the zone and zone-id requirements alike."""
    kept = tuple(offering for offering in instance_type.offerings if offering.zone in zones)
    ids = frozenset(offering.zone_id for offering in kept)
    allowed = {ZONE: zones, ZONE_ID: ids}
    requirements = {
        key: tuple(value for value in values if key not in allowed or value in allowed[key])
        for key, values in instance_type.requirements.items()
    }
    return replace(instance_type, offerings=kept, requirements=requirements)


def _patched(instance_type: InstanceType, patch: PatchWire) -> InstanceType:
    changed = (
        _changed(offering, patch.set) if patch.match(instance_type.name, offering) else offering
        for offering in instance_type.offerings
    )
    return replace(instance_type, offerings=tuple(changed))


def _changed(offering: Offering, change: ChangeWire) -> Offering:
    price = offering.price if change.price is None else change.price
    return replace(
        offering,
        available=offering.available if change.available is None else change.available,
        price=price if change.price_factor is None else price * change.price_factor,
    )


def _reserved(instance_type: InstanceType, wire: ReservationWire) -> InstanceType:
    zone_ids = [sold.zone_id for sold in instance_type.offerings if sold.zone == wire.zone and sold.zone_id]
    offering = Offering(
        wire.zone,
        RESERVED,
        wire.price,
        wire.available,
        zone_ids[0] if zone_ids else "",
        wire.id,
        DEFAULT_RESERVATION,
        wire.capacity,
    )
    requirements = dict(instance_type.requirements)
    for key, value in ((CAPACITY_TYPE, RESERVED), (RESERVATION_ID, wire.id), (RESERVATION_TYPE, DEFAULT_RESERVATION)):
        requirements[key] = _with(requirements.get(key, ()), value)
    return replace(instance_type, offerings=(*instance_type.offerings, offering), requirements=requirements)


def _with(values: Iterable[str], value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*values, value]))
