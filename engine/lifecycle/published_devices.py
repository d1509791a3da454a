"""Whether a new node's drivers have published its devices (L-175): before that it would be initialized without any, and
the pods that it was launched for would get another node."""

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
    """The first driver without a complete pool among the node's own slices; None if there is none, or nobody asks."""
    if state.facts.settings.ignore_dra_requests:
        return None
    wanted = _wanted(claim, state)
    slices = own_slices(state, node.name) if wanted else []
    for driver in wanted:
        if not _published([resource_slice for resource_slice in slices if resource_slice.driver == driver]):
            return Reason.of(LifecycleCode.DRA_DRIVER_POOLS_NOT_PUBLISHED, driver=driver, node=node.name)
    return None


def _wanted(claim: NodeClaim, state: State) -> list[str]:
    """The drivers that the claim was launched for (S-160), and if pods wait for it that ask for devices, all that its
    instance type has. One that the type has not, because another type was launched, is not waited for."""
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


def _published(slices: list[ResourceSlice]) -> bool:
    """At least one pool has as many slices of its highest generation as it says."""
    pools: dict[str, list[ResourceSlice]] = {}
    for resource_slice in slices:
        pools.setdefault(resource_slice.pool, []).append(resource_slice)
    for found in pools.values():
        latest = max(each.generation for each in found)
        current = [each for each in found if each.generation == latest]
        if all(each.count == len(current) for each in current):
            return True
    return False
