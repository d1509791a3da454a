"""NodeOverlays (S-183…S-188): prices and resources that users know better than the cloud, put into the catalogues."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodeoverlays import FIXED_RESOURCES, NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    RESERVATION_ID,
    RESERVATION_TYPE,
    RESERVED,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from kerf.engine.scheduling.matching.requirements import Requirement, Requirements
from kerf.engine.scheduling.pods.validation import requirement_problems

MAX_CACHED_EVALUATIONS = 4
"""How many evaluations are remembered."""


class OverlayCondition(StrEnum):
    """Reasons of an overlay's condition ValidationSucceeded. The condition is True for the first one alone."""

    SUCCEEDED = "ValidationSucceeded"
    INVALID = "RuntimeValidation"
    CONFLICT = "Conflict"


class OverlayEvaluation(Struct, frozen=True):
    """`catalogues`: by NodePool, only those that an overlay changes. `conditions`: by overlay."""

    catalogues: Mapping[str, Catalogue]
    conditions: Mapping[str, OverlayCondition]


class _OverlaidType:
    """One type in one NodePool while overlays are applied. `touched`: the weight of the overlay that last set the price
    of an offering (by its number) or a resource (by its name)."""

    __slots__ = ("capacity", "instance_type", "labels", "offers", "prices", "sold", "touched")

    def __init__(self, instance_type: InstanceType, pool: Sequence[Requirement]) -> None:
        self.instance_type = instance_type
        self.labels = Requirements([*_type_labels(instance_type), *pool])
        self.offers = tuple(_offering_labels(offering) for offering in instance_type.offerings)
        self.prices: dict[int, float] = {}
        self.sold: set[int] = set()  # offerings whose price an overlay of types alone sets
        self.capacity: Resources = {}
        self.touched: dict[int | str, int] = {}

    def matched(self, requirements: Requirements) -> list[int]:
        """The numbers of the offerings that an overlay is about (S-184)."""
        if not self.labels.compatible(requirements):
            return []
        return [number for number, offer in enumerate(self.offers) if requirements.compatible(offer, WELL_KNOWN)]

    def made(self, shifted: Sequence[str]) -> InstanceType:
        """The type as the overlays leave it; `shifted`: the zones that nothing is launched into."""
        offerings = tuple(
            replace(offering, price=self.prices[number], available=offering.available or self._sells(number, shifted))
            if number in self.prices
            else offering
            for number, offering in enumerate(self.instance_type.offerings)
        )
        changed = (*(("price",) if self.prices else ()), *(("capacity",) if self.capacity else ()))
        capacity = {**self.instance_type.capacity, **self.capacity}
        return replace(self.instance_type, offerings=offerings, capacity=capacity, overlaid=changed)

    def _sells(self, number: int, shifted: Sequence[str]) -> bool:
        """Whether an offering is unavailable only because the cloud names no price for it, and an overlay that speaks
        of types alone does (A-208)."""
        offering = self.instance_type.offerings[number]
        unpriced = offering.price == 0 and offering.capacity_type != RESERVED and offering.zone_id not in shifted
        return unpriced and number in self.sold


def evaluate_overlays(
    overlays: Iterable[NodeOverlay], pools: Sequence[tuple[NodePool, Catalogue]]
) -> OverlayEvaluation:
    """Apply the overlays, the heaviest first (S-183…S-187). An overlay that is invalid or in conflict is applied
    nowhere."""
    by_pool = {
        pool.name: [_OverlaidType(instance_type, _pool_labels(pool)) for instance_type in catalogue.types]
        for pool, catalogue in pools
    }
    sources = {pool.name: catalogue for pool, catalogue in pools}
    conditions: dict[str, OverlayCondition] = {}
    by_name = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    for overlay in sorted(by_name, key=lambda each: -each.weight):
        conditions[overlay.name] = _apply(
            overlay, [instance_type for types in by_pool.values() for instance_type in types]
        )
    changed = {
        name: replace(sources[name], types=tuple(instance_type.made(sources[name].shifted) for instance_type in types))
        for name, types in by_pool.items()
        if any(instance_type.prices or instance_type.capacity for instance_type in types)
    }
    return OverlayEvaluation(changed, conditions)


def _apply(overlay: NodeOverlay, types: Sequence[_OverlaidType]) -> OverlayCondition:
    """Apply one overlay. Each offering's price (S-185) and each resource of a type (S-186) is set once, by the first
    overlay."""
    if _invalid(overlay):
        return OverlayCondition.INVALID
    requirements = Requirements.of_specs(overlay.requirements)
    matched = [(instance_type, numbers) for instance_type in types if (numbers := instance_type.matched(requirements))]
    touches: list[tuple[_OverlaidType, list[int | str]]] = [
        (overlaid, [*(numbers if overlay.prices else ()), *overlay.capacity]) for overlaid, numbers in matched
    ]
    if any(overlaid.touched.get(what) == overlay.weight for overlaid, all_of in touches for what in all_of):
        return OverlayCondition.CONFLICT  # S-187
    sells = overlay.price is not None and [(r.key, r.operator) for r in overlay.requirements] == [(INSTANCE_TYPE, "In")]
    for overlaid, all_of in touches:
        for what in all_of:
            overlaid.touched[what] = overlay.weight
            if isinstance(what, int):
                if sells and what not in overlaid.prices:
                    overlaid.sold.add(what)
                overlaid.prices.setdefault(what, overlay.priced(overlaid.instance_type.offerings[what].price))
            else:
                overlaid.capacity.setdefault(what, overlay.capacity[what])
    return OverlayCondition.SUCCEEDED


def matched_offerings(overlay: NodeOverlay, pool: NodePool, instance_type: InstanceType) -> list[int]:
    """The numbers of the type's offerings that an overlay is about in a NodePool (S-184)."""
    return _OverlaidType(instance_type, _pool_labels(pool)).matched(Requirements.of_specs(overlay.requirements))


def _invalid(overlay: NodeOverlay) -> bool:
    """Whether an overlay fails the validation at run time (S-183)."""
    return (
        any(requirement_problems(requirement) for requirement in overlay.requirements)
        or any(requirement.operator == "NotIn" and not requirement.values for requirement in overlay.requirements)
        or any(name in FIXED_RESOURCES for name in overlay.capacity)
    )


def _pool_labels(pool: NodePool) -> tuple[Requirement, ...]:
    return tuple(Requirements.of_labels({**pool.labels, NODEPOOL: pool.name}))


def _type_labels(instance_type: InstanceType) -> list[Requirement]:
    """The labels of a type. What the type leaves to its offerings comes from these."""
    said = dict(instance_type.requirements)
    said.setdefault(INSTANCE_TYPE, (instance_type.name,))
    said.setdefault(ZONE, tuple(sorted({offering.zone for offering in instance_type.offerings})))
    said.setdefault(CAPACITY_TYPE, tuple(sorted({offering.capacity_type for offering in instance_type.offerings})))
    return [Requirement(key, False, frozenset(values)) for key, values in sorted(said.items())]


def _offering_labels(offering: Offering) -> Requirements:
    said = (
        (ZONE, offering.zone),
        (CAPACITY_TYPE, offering.capacity_type),
        (ZONE_ID, offering.zone_id),
        (RESERVATION_ID, offering.reservation_id),
        (RESERVATION_TYPE, offering.reservation_type),
    )
    return Requirements(Requirement(key, False, frozenset([value])) for key, value in said if value)


# ── for the planner ────────────────────────────────────────────────────────────────────────────────────────────────

_cache: OrderedDict[tuple[object, ...], dict[str, tuple[str, Catalogue]]] = OrderedDict()


def overlaid_catalogues(
    overlays: Sequence[NodeOverlay], pools: Sequence[tuple[NodePool, str, Catalogue]]
) -> dict[str, tuple[str, Catalogue]]:
    """For each NodePool whose catalogue an overlay changes: the changed catalogue and its digest. Catalogues are given
    by digest. A bounded cache changes no result."""
    key = (
        tuple(content(overlay)[0] for overlay in overlays),
        tuple((pool.name, tuple(sorted(pool.labels.items())), digest) for pool, digest, _ in pools),
    )
    by_pool = _cache.get(key)
    if by_pool is None:
        catalogues = evaluate_overlays(overlays, [(pool, catalogue) for pool, _, catalogue in pools]).catalogues
        by_pool = _cache[key] = {name: (content(catalogue)[0], catalogue) for name, catalogue in catalogues.items()}
        while len(_cache) > MAX_CACHED_EVALUATIONS:
            _cache.popitem(last=False)
    return by_pool
