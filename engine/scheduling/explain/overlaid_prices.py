"""Which NodeOverlay a price is from, and what the cloud asks."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.scheduling.launchable.node_overlays import OverlayCondition, matched_offerings, overlay_conditions
from kerf.engine.state.state import State

SAME = 1e-6
"""Prices that differ by no more (USD per hour) are one."""


class OverlaidPrice(Struct, frozen=True):
    """The NodeOverlay that gave a node its price, and what the cloud asks for such a one, in USD per hour."""

    overlay: str
    listed: float


class OverlaidPrices:
    """Finds the overlays behind prices, as of a state, but those that are applied nowhere (S-183, S-187)."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._overlays = _applied(state)
        self._types: dict[str, dict[str, InstanceType]] = {}  # by digest, then by name
        self._found: dict[tuple[str, str, str, str], tuple[NodeOverlay, float] | None] = {}

    def of(self, claim: NodeClaim) -> OverlaidPrice | None:
        """The overlay that gave a launched claim the price that it has; None where it is the cloud's."""
        if not (self._overlays and claim.launched):
            return None
        what = (claim.node_pool, claim.instance_type, claim.zone, claim.capacity_type)
        if what not in self._found:
            self._found[what] = self._overlay(*what)
        found = self._found[what]
        if found is None or abs(found[0].priced(found[1]) - claim.price) > SAME or abs(found[1] - claim.price) <= SAME:
            return None
        return OverlaidPrice(found[0].name, found[1])

    def _overlay(self, node_pool: str, name: str, zone: str, capacity_type: str) -> tuple[NodeOverlay, float] | None:
        """The heaviest overlay that prices an offering, and the price that it changes."""
        pool, kind = self._state.facts.pools.get(node_pool), self._type(node_pool, name)
        if pool is None or kind is None:
            return None
        for overlay in self._overlays:
            for number in matched_offerings(overlay, pool, kind):
                offering = kind.offerings[number]
                if (offering.zone, offering.capacity_type) == (zone, capacity_type):
                    return overlay, offering.price
        return None

    def _type(self, node_pool: str, name: str) -> InstanceType | None:
        facts, blobs = self._state.facts, self._state.indexes.blobs
        pool = facts.pools.get(node_pool)
        digest = facts.catalogues.get(pool.node_class.key, "") if pool is not None else ""
        if digest and digest not in self._types:
            self._types[digest] = {kind.name: kind for kind in blobs.catalogue(digest).types}
        return self._types.get(digest, {}).get(name)


def _applied(state: State) -> list[NodeOverlay]:
    """The overlays that change prices, the heaviest first, and of equally heavy ones the last by name."""
    facts, blobs = state.facts, state.indexes.blobs
    if not (facts.settings.node_overlays and facts.overlays):
        return []
    digests = [(pool, facts.catalogues.get(pool.node_class.key, "")) for _, pool in sorted(facts.pools.items())]
    pools = [(pool, blobs.catalogue(digest)) for pool, digest in digests if digest]
    conditions = overlay_conditions(facts.overlays.values(), pools)
    applied = [o for name, o in facts.overlays.items() if conditions[name] is OverlayCondition.SUCCEEDED and o.prices]
    return sorted(sorted(applied, key=lambda overlay: overlay.name, reverse=True), key=lambda overlay: -overlay.weight)
