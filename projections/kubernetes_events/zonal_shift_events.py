"""Tell NodePools that zones of theirs are shifted, and that they are no more (A-376, L-463)."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model import labels
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent, ObjectReference

ACTIVE, CLEARED = "ZonalShiftActive", "ZonalShiftCleared"


class ZonalShiftEvents:
    """Remembers the shifted zones of each NodeClass: zone id → zone, by `group/kind/name`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._shifted = {key: self._now(key) for key in state.facts.catalogues}

    def catalogue_changed(self, node_class: str) -> list[KubernetesEvent]:
        """Return what is new of the zones of a NodeClass, for each of its NodePools that allows them."""
        before, now = self._shifted.get(node_class, {}), self._now(node_class)
        self._shifted[node_class] = now
        if before == now:
            return []
        news = [(ACTIVE, id, zone) for id, zone in sorted(now.items()) if id not in before]
        news += [(CLEARED, id, zone) for id, zone in sorted(before.items()) if id not in now]
        pools = [pool for pool in self._state.facts.pools.values() if pool.node_class.key == node_class]
        return [_told(pool, *new) for pool in pools for new in news if _allows(pool, *new[1:])]

    def _now(self, node_class: str) -> dict[str, str]:
        digest = self._state.facts.catalogues.get(node_class, "")
        return _shifted(self._state.indexes.blobs.catalogue(digest)) if digest else {}


def _shifted(catalogue: Catalogue) -> dict[str, str]:
    """The shifted zones that the catalogue has offerings in."""
    offers = (offer for kind in catalogue.types for offer in kind.offerings) if catalogue.shifted else ()
    return {offer.zone_id: offer.zone for offer in offers if offer.zone_id in catalogue.shifted}


def _allows(pool: NodePool, zone_id: str, zone: str) -> bool:
    """Whether the NodePool's requirements let nodes be in the zone."""
    asked: Requirements = Requirements.of_specs(pool.requirements)
    place: Mapping[str, str] = {labels.ZONE: zone, labels.ZONE_ID: zone_id}
    return all(asked.get(key).has(value) for key, value in place.items())


def _told(pool: NodePool, reason: str, zone_id: str, zone: str) -> KubernetesEvent:
    about = ObjectReference("karpenter.sh/v1", "NodePool", pool.name, "", pool.uid)
    where = f"zone {zone} ({zone_id})"
    text = (
        f"Zonal shift away from {where}: nothing is launched there"
        if reason == ACTIVE
        else f"Zonal shift away from {where} is over"
    )
    return KubernetesEvent(about, WARNING if reason == ACTIVE else NORMAL, reason, text, (pool.name, zone_id))
