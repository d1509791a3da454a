"""Which catalogue each NodePool buys from now: that of its NodeClass, with NodeOverlays applied (S-188)."""

from __future__ import annotations

from collections.abc import Container

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.scheduling.launchable.node_overlays import overlaid_catalogues
from kerf.engine.scheduling.launchable.remaining_reservations import catalogue_with_reservations
from kerf.engine.state.state import State


def catalogue_of_launch(state: State, node_pool: str, node_class: str) -> str:
    """The digest of the catalogue that a claim without pods is launched from: that of its NodeClass
    (`group/kind/name`), with NodeOverlays applied if it is of a NodePool (A-218)."""
    facts = state.facts
    pool = facts.pools.get(node_pool)
    if pool is None or pool.node_class.key != node_class or not (facts.settings.node_overlays and facts.overlays):
        return catalogue_with_reservations(state, node_class)
    return PoolCatalogues(state).of(node_pool)


def without(resources: Resources, names: Container[str]) -> Resources:
    """The resources but those of some names."""
    return {name: amount for name, amount in resources.items() if name not in names}


class PoolCatalogues:
    """The digest of each NodePool's catalogue. The state's blobs hold the catalogues."""

    def __init__(self, state: State) -> None:
        self._state, self._facts, self._blobs = state, state.facts, state.indexes.blobs
        self._by_pool = {name: self._of_class(pool.node_class.key) for name, pool in self._facts.pools.items()}
        if self._facts.settings.node_overlays and self._facts.overlays:
            self._overlay()

    def _of_class(self, key: str) -> str:
        return catalogue_with_reservations(self._state, key)

    def _overlay(self) -> None:
        facts, blobs = self._facts, self._blobs
        pools = [(facts.pools[name], digest) for name, digest in sorted(self._by_pool.items()) if digest]
        overlays = [facts.overlays[name] for name in sorted(facts.overlays)]
        changed = overlaid_catalogues(overlays, [(pool, digest, blobs.catalogue(digest)) for pool, digest in pools])
        for name, (digest, catalogue) in changed.items():
            blobs.offer(digest, catalogue)
            self._by_pool[name] = digest

    def of(self, pool: str) -> str:
        """The digest of a NodePool's catalogue, "" if it has none."""
        return self._by_pool.get(pool, "")

    def over_types(self, claim: NodeClaim, *, largest: bool) -> Resources:
        """For each resource, the largest capacity or the smallest allocatable of the types that a claim can still
        become."""
        digest = self.of_claim(claim)
        if not digest:
            return {}
        found = self._blobs.over_types(digest, claim.instance_types, largest=largest)
        lacks = self.not_asked_for(claim)
        return without(found, lacks) if lacks else found

    def not_asked_for(self, claim: NodeClaim) -> tuple[str, ...]:
        """The resources that its types have, and its node does not, because it was launched without asking for them
        (A-315)."""
        digest = self.of_claim(claim)
        on_request = self._blobs.catalogue(digest).on_request if digest else ()
        return tuple(name for name in on_request if not claim.requests.get(name))

    def of_claim(self, claim: NodeClaim) -> str:
        """The digest of a claim's catalogue, also if its NodePool is gone."""
        return self.of(claim.node_pool) or self._of_class(claim.node_class.key)
