"""Whether the drivers of a new node have published its devices (L-175).

A node that was initialized before would seem to have no devices, and its pods would get another node.
"""

from __future__ import annotations

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.kubernetes.devices import ResourceSlice
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.labels import DRA_DRIVERS
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.state.objects.devices import own_slices
from kerf.engine.state.state import State


def drivers_missing(claim: NodeClaim, node: Node, state: State) -> Reason | None:
    """The first awaited driver that has no complete pool among the node's slices; None if there is none."""
    if state.facts.settings.ignore_dra_requests:
        return None
    awaited = _awaited_drivers(claim, state)
    slices = own_slices(state, node.name) if awaited else []
    for driver in awaited:
        if not _has_complete_pool([resource_slice for resource_slice in slices if resource_slice.driver == driver]):
            return Reason.of(LifecycleCode.DRA_DRIVER_POOLS_NOT_PUBLISHED, driver=driver, node=node.name)
    return None


def _awaited_drivers(claim: NodeClaim, state: State) -> list[str]:
    """The drivers that are awaited: those that the claim was launched for (S-160), and all of its instance type if pods
    that ask for devices wait for it. A driver that the launched type does not have is not awaited."""
    asked = {name for name in claim.annotations.get(DRA_DRIVERS, "").split(",") if name}
    waiting = state.indexes.waiting_for.get(claim.name, ())
    expected = any(state.indexes.blobs.shape(state.facts.pods[uid].shape).resource_claims for uid in waiting)
    if not asked and not expected:
        return []
    digest = PoolCatalogues(state).of_claim(claim)
    found = state.indexes.blobs.instance_type(digest, claim.instance_type) if digest else None
    if found is None:
        return sorted(asked)
    there = {resource_slice.driver for resource_slice in found.slices}
    return sorted(there if expected else asked & there)


def _has_complete_pool(slices: list[ResourceSlice]) -> bool:
    """Whether at least one pool is complete: it has as many slices of its latest generation as it says."""
    pools: dict[str, list[ResourceSlice]] = {}
    for resource_slice in slices:
        pools.setdefault(resource_slice.pool, []).append(resource_slice)
    for pool in pools.values():
        latest = max(published.generation for published in pool)
        current = [published for published in pool if published.generation == latest]
        if all(published.count == len(current) for published in current):
            return True
    return False
