"""NodeOverlays (S-183…S-188): prices and resources that users know better than the cloud, put into the catalogues.

NodePools of one catalogue that no overlay tells apart have one result. Of catalogues, types and offerings only what an
overlay changes is made anew, and what comes out the same is one object: clusters have many NodePools, and EC2 has many
types.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodeoverlays import FIXED_RESOURCES, NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import INSTANCE_TYPE, NODEPOOL, RESERVED
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.launchable.overlay_targets import OverlayTargets
from kerf.engine.scheduling.pods.validation import requirement_problems

MAX_CACHED_EVALUATIONS = 4
"""How many evaluations are remembered."""

_What = int | str
"""What an overlay sets: the price of a kind of offering (its number), or a resource (its name)."""
_Applied = tuple[str, _What, int]
"""What an overlay does (see `_effect`), to what, and the types for which it does."""


class OverlayCondition(StrEnum):
    """Reasons of an overlay's condition ValidationSucceeded. The condition is True for the first one alone."""

    SUCCEEDED = "ValidationSucceeded"
    INVALID = "RuntimeValidation"
    CONFLICT = "Conflict"


class _Overlaid:
    """One catalogue, for NodePools that no overlay tells apart, while overlays are applied. `labels`: those of the
    NodePools that an overlay speaks of. `applied`: what overlays set, in order."""

    __slots__ = ("_settled", "_touched", "applied", "catalogue", "labels", "targets")

    def __init__(self, catalogue: Catalogue, targets: OverlayTargets, labels: Requirements) -> None:
        self.catalogue, self.targets, self.labels = catalogue, targets, labels
        self.applied: list[_Applied] = []
        self._settled: dict[_What, int] = {}  # the types for which it is set
        self._touched: dict[tuple[int, _What], int] = {}  # by weight, the types that an overlay would set it for

    def touches(self, overlay: NodeOverlay, requirements: Requirements) -> dict[_What, int]:
        """What an overlay is about here, with the types (S-184)."""
        offers = self.targets.matched(requirements, self.labels)
        touches: dict[_What, int] = dict(offers.items()) if overlay.prices else {}
        if offers and overlay.capacity:
            types = 0
            for sellers in offers.values():
                types |= sellers
            touches |= dict.fromkeys(overlay.capacity, types)
        return touches

    def conflicting(self, weight: int, touches: Mapping[_What, int]) -> bool:
        """Whether an overlay of the same weight was about some of it (S-187)."""
        return any(self._touched.get((weight, what), 0) & types for what, types in touches.items())

    def apply(self, effect: str, weight: int, touches: Mapping[_What, int]) -> None:
        """Set what no overlay has set before (S-185, S-186)."""
        for what, types in touches.items():
            self._touched[weight, what] = self._touched.get((weight, what), 0) | types
            settled = self._settled.get(what, 0)
            if types & ~settled:
                self.applied.append((effect, what, types & ~settled))
                self._settled[what] = settled | types


class _Evaluation:
    """The overlays, the heaviest first (S-183), and what comes of them. An overlay that is invalid or in conflict is
    applied nowhere. `by_pool`: only those that an overlay changes."""

    def __init__(self, overlays: Iterable[NodeOverlay], pools: Iterable[tuple[NodePool, Catalogue]]) -> None:
        by_name = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
        heaviest_first = sorted(by_name, key=lambda overlay: -overlay.weight)
        valid = [(each, Requirements.of_specs(each.requirements)) for each in heaviest_first if not _invalid(each)]
        by_pool = _told_apart(pools, frozenset(each.key for _, asked in valid for each in asked))
        apart = list({id(overlaid): overlaid for overlaid in by_pool.values()}.values())
        self._by_effect: dict[str, NodeOverlay] = {}
        self.conditions = {overlay.name: OverlayCondition.INVALID for overlay in heaviest_first}
        for overlay, asked in valid:
            self.conditions[overlay.name] = self._apply(overlay, asked, apart)
        self.by_pool = {name: overlaid for name, overlaid in by_pool.items() if overlaid.applied}
        self._types: dict[tuple[int, int, tuple[tuple[str, _What], ...]], InstanceType] = {}

    def _apply(self, overlay: NodeOverlay, requirements: Requirements, apart: Sequence[_Overlaid]) -> OverlayCondition:
        """Apply one overlay. Each offering's price (S-185) and each resource of a type (S-186) is set once, by the
        first overlay."""
        touches = [(overlaid, overlaid.touches(overlay, requirements)) for overlaid in apart]
        if any(overlaid.conflicting(overlay.weight, touched) for overlaid, touched in touches):
            return OverlayCondition.CONFLICT  # S-187
        effect = _effect(overlay)
        self._by_effect.setdefault(effect, overlay)
        for overlaid, touched in touches:
            overlaid.apply(effect, overlay.weight, touched)
        return OverlayCondition.SUCCEEDED

    def made(self, overlaid: _Overlaid) -> Catalogue:
        """A catalogue as the overlays leave it. A type for which the same was set before is the same object."""
        by_type: dict[int, list[tuple[str, _What]]] = {}
        for effect, what, types in overlaid.applied:
            change = effect, what
            for changed in bits(types):
                by_type.setdefault(changed, []).append(change)
        types_made = list(overlaid.catalogue.types)
        for changed, changes in by_type.items():
            key = id(overlaid.targets), changed, tuple(changes)
            made = self._types.get(key)
            if made is None:
                by_what = {what: self._by_effect[effect] for effect, what in changes}
                made = self._types[key] = _made(
                    types_made[changed], overlaid.targets.kinds[changed], by_what, overlaid.catalogue.shifted
                )
            types_made[changed] = made
        return replace(overlaid.catalogue, types=tuple(types_made))


def _told_apart(pools: Iterable[tuple[NodePool, Catalogue]], keys: frozenset[str]) -> dict[str, _Overlaid]:
    """By NodePool. Those of one catalogue, and with the same labels of these keys, share one object."""
    by_pool: dict[str, _Overlaid] = {}
    targets: dict[int, OverlayTargets] = {}
    shared: dict[tuple[int, Requirements], _Overlaid] = {}
    for pool, catalogue in pools:
        labels = Requirements(label for label in _pool_labels(pool) if label.key in keys)
        same = id(catalogue), labels
        if same not in shared:
            if id(catalogue) not in targets:
                targets[id(catalogue)] = OverlayTargets(catalogue.types)
            shared[same] = _Overlaid(catalogue, targets[id(catalogue)], labels)
        by_pool[pool.name] = shared[same]
    return by_pool


def _made(
    instance_type: InstanceType, kinds: Sequence[int], by_what: Mapping[_What, NodeOverlay], shifted: Sequence[str]
) -> InstanceType:
    """A type as the overlays leave it; `kinds`: those of its offerings, `shifted`: the zones that nothing is launched
    into."""
    offerings, capacity = instance_type.offerings, instance_type.capacity
    resources = {what: overlay.capacity[what] for what, overlay in by_what.items() if isinstance(what, str)}
    priced = len(by_what) > len(resources)
    if priced:
        offerings = tuple([
            _priced(offering, by_what[kind], shifted) if kind in by_what else offering
            for kind, offering in zip(kinds, offerings, strict=True)
        ])  # fmt: skip
    if resources:
        capacity = {**capacity, **resources}
    changed = (*(("price",) if priced else ()), *(("capacity",) if resources else ()))
    return replace(instance_type, offerings=offerings, capacity=capacity, overlaid=changed)


def _priced(offering: Offering, overlay: NodeOverlay, shifted: Sequence[str]) -> Offering:
    """An offering at an overlay's price. If it is unavailable only because the cloud names no price for it, an overlay
    that speaks of types alone sells it (A-208)."""
    unpriced = offering.price == 0 and offering.capacity_type != RESERVED and offering.zone_id not in shifted
    available = offering.available or (unpriced and _sells(overlay))
    return replace(offering, price=overlay.priced(offering.price), available=available)


def _effect(overlay: NodeOverlay) -> str:
    """The digest of what an overlay does where it is applied, whatever its name and what it is about."""
    does = NodeOverlay("", price=overlay.price, adjustment=overlay.adjustment, capacity=overlay.capacity)
    return f"{content(does)[0]} {_sells(overlay)}"


def _sells(overlay: NodeOverlay) -> bool:
    named = [(requirement.key, requirement.operator) for requirement in overlay.requirements]
    return overlay.price is not None and named == [(INSTANCE_TYPE, "In")]


def overlay_conditions(
    overlays: Iterable[NodeOverlay], pools: Iterable[tuple[NodePool, Catalogue]]
) -> dict[str, OverlayCondition]:
    """What becomes of each overlay."""
    return _Evaluation(overlays, pools).conditions


def matched_offerings(overlay: NodeOverlay, pool: NodePool, instance_type: InstanceType) -> list[int]:
    """The numbers of the type's offerings that an overlay is about in a NodePool (S-184)."""
    targets = OverlayTargets([instance_type])
    matched = targets.matched(Requirements.of_specs(overlay.requirements), _pool_labels(pool))
    return [number for number, kind in enumerate(targets.kinds[0]) if kind in matched]


def _invalid(overlay: NodeOverlay) -> bool:
    """Whether an overlay fails the validation at run time (S-183)."""
    return (
        any(requirement_problems(requirement) for requirement in overlay.requirements)
        or any(requirement.operator == "NotIn" and not requirement.values for requirement in overlay.requirements)
        or any(name in FIXED_RESOURCES for name in overlay.capacity)
    )


def _pool_labels(pool: NodePool) -> Requirements:
    return Requirements.of_labels({**pool.labels, NODEPOOL: pool.name})


# ── for the planner ────────────────────────────────────────────────────────────────────────────────────────────────

_MadeOf = tuple[str, tuple[_Applied, ...]]
"""What a catalogue was made of: the digest of the one before, and what overlays do to it."""
_Digested = tuple[str, Catalogue]
"""A catalogue after its digest."""

_cache: OrderedDict[tuple[object, ...], tuple[dict[str, _Digested], dict[_MadeOf, _Digested]]] = OrderedDict()


def overlaid_catalogues(
    overlays: Sequence[NodeOverlay], pools: Sequence[tuple[NodePool, str, Catalogue]]
) -> dict[str, _Digested]:
    """For each NodePool whose catalogue an overlay changes: the changed catalogue and its digest. Catalogues are given
    by digest. A bounded cache changes no result."""
    key = (
        tuple(content(overlay)[0] for overlay in overlays),
        tuple((pool.name, tuple(sorted(pool.labels.items())), digest) for pool, digest, _ in pools),
    )
    if key not in _cache:
        _cache[key] = _digested(overlays, pools)
        while len(_cache) > MAX_CACHED_EVALUATIONS:
            _cache.popitem(last=False)
    return _cache[key][0]


def _digested(
    overlays: Sequence[NodeOverlay], pools: Sequence[tuple[NodePool, str, Catalogue]]
) -> tuple[dict[str, _Digested], dict[_MadeOf, _Digested]]:
    """The changed catalogues by NodePool, and by what they were made of. Those that an evaluation remembered has are
    not made again: most changes of overlays, NodePools and prices leave many as they are."""
    known = {made_of: made for _, others in _cache.values() for made_of, made in others.items()}
    evaluation = _Evaluation(overlays, [(pool, catalogue) for pool, _, catalogue in pools])
    sources = {pool.name: digest for pool, digest, _ in pools}
    by_pool: dict[str, _Digested] = {}
    by_origin: dict[_MadeOf, _Digested] = {}
    for name, overlaid in evaluation.by_pool.items():
        made_of = sources[name], tuple(overlaid.applied)
        made = by_origin.get(made_of) or known.get(made_of)
        if made is None:
            catalogue = evaluation.made(overlaid)
            made = content(catalogue)[0], catalogue
        by_pool[name] = by_origin[made_of] = made
    return by_pool, by_origin
