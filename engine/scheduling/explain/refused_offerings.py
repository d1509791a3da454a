"""What the cloud refused lately of what would do, and when that is asked for again: the reasons of a plan and of a
disruption pass say only that there is no place, or nothing cheaper."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import ZONE
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.scheduling.explain.type_filters import large_enough
from kerf.engine.scheduling.launchable.compiled_catalogue import (
    CompiledCatalogue,
    OfferingSlot,
    admitted_slots,
    bits,
    compiled_catalogue,
)
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.launchable.templates import Template, available_types
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.nodeclaims.unavailable import refused_offerings
from kerf.engine.state.pods.on_node import pods_on_node
from kerf.engine.state.state import State

_ABOUT_OFFERINGS = (
    SchedulingCode.NO_INSTANCE_TYPES,
    SchedulingCode.TOPOLOGY,
    SchedulingCode.TYPES_COMBINED,
    SchedulingCode.TYPES_OFFERINGS,
    SchedulingCode.VOLUME_TOPOLOGY,
)


class RefusedZones(Struct, frozen=True):
    """The zones in which all that would do was refused, and when the first of it is asked for again (ms since the
    epoch)."""

    zones: tuple[str, ...]
    again: int


def refused_zones(state: State, now: int, reason: Reason, shape: str) -> RefusedZones | None:
    """What was refused of the NodePool that a reason names, for a pod of this shape; None where refusals are not why
    the pod has no place. Of a spread or affinity over zones, and of volumes, only the zones count that they
    need."""
    if reason.code == SchedulingCode.IN_DOUBT:
        named = reason.params.get("zones")
        again = state.facts.retry_at
        return RefusedZones(tuple(named) if isinstance(named, list) else (), again) if again > now else None
    if reason.code not in _ABOUT_OFFERINGS or reason.params.get("key", ZONE) != ZONE:
        return None
    pool = state.facts.pools.get(str(reason.params.get("node_pool", "")))
    refused = refused_offerings(state.facts, pool.node_class.key, now) if pool is not None else {}
    offered = _Offered.of(state, pool, state.indexes.blobs.shape(shape)) if pool is not None and refused else None
    if offered is None:
        return None
    zones = offered.zones(frozenset()) - offered.zones(frozenset(refused))
    if reason.code == SchedulingCode.TOPOLOGY:
        zones &= _needed(reason, zones)
    elif reason.code == SchedulingCode.VOLUME_TOPOLOGY:
        zones &= _of_volumes(reason)
    times = [until for (_, _, zone), until in refused.items() if not zone or zone in zones]
    return RefusedZones(tuple(sorted(zones)), min(times)) if zones and times else None


def replaced_again_at(state: State, now: int, claim: NodeClaim) -> int:
    """When a cheaper offering of its NodePool that was refused may replace a claim's node again (ms since the epoch);
    0 where none was refused that is large enough for the node's pods."""
    pool = state.facts.pools.get(claim.node_pool)
    refused = refused_offerings(state.facts, claim.node_class.key, now, in_doubt=True) if pool is not None else {}
    room = PodShape(requests=pods_on_node(state, claim.node).used) if claim.node and refused else None
    offered = _Offered.of(state, pool, room) if pool is not None and room is not None else None
    if offered is None:
        return 0
    return min((until for key, until in refused.items() if offered.costs_less(key, claim.price)), default=0)


class _Offered(Struct, frozen=True):
    """The offerings of a NodePool that would do: these types, in these slots of its catalogue."""

    catalogue: CompiledCatalogue
    types: int
    slots: tuple[int, ...]

    @classmethod
    def of(cls, state: State, pool: NodePool, pod: PodShape) -> _Offered | None:
        digest = PoolCatalogues(state).of(pool.name)
        if not digest:
            return None
        catalogue = compiled_catalogue(digest, state.indexes.blobs.catalogue(digest))
        template = Template(pool, {}, catalogue, frozenset(), (), strict=False)
        wanted = template.base.requirements.merged(requirements_of(pod, preferences=False))
        demands = [slot.requirements() for slot in catalogue.slots]
        return cls(
            catalogue, large_enough(template, wanted, pod.requests), admitted_slots(catalogue.slots, demands, wanted)
        )

    def zones(self, unavailable: frozenset[tuple[str, str, str]]) -> frozenset[str]:
        """The zones in which something is on offer."""
        left = available_types(self.catalogue, unavailable)
        return frozenset(self.catalogue.slots[slot].zone for slot in self.slots if left[slot] & self.types)

    def costs_less(self, offering: tuple[str, str, str], price: float) -> bool:
        """Whether an offering (capacity type, instance type, zone; "" matches any) costs less."""
        kind, name, zone = offering
        number = self.catalogue.numbers.get(name, -1)
        types = self.types & (1 << number if number >= 0 else 0) if name else self.types
        slots = (self.catalogue.slots[slot] for slot in self.slots)
        return any(
            _has_cheaper(slot, types, price)
            for slot in slots
            if kind in ("", slot.capacity_type) and zone in ("", slot.zone)
        )


def _has_cheaper(slot: OfferingSlot, types: int, price: float) -> bool:
    return any(slot.prices[number] < price for number in bits(slot.types & types))


def _needed(reason: Reason, zones: frozenset[str]) -> frozenset[str]:
    """Which of these zones the rule would allow, by how many pods it counts in each."""
    domains = reason.params.get("domains")
    named = [domain.rpartition("=") for domain in domains if "=" in domain] if isinstance(domains, list) else []
    counts = {zone: int(pods) for zone, _, pods in named}
    if reason.params.get("rule") == "affinity":
        return frozenset(zone for zone in zones if counts.get(zone, 0))
    most = min(counts.values(), default=0) if reason.params.get("rule") == "spread" else 0
    return frozenset(zone for zone in zones if counts.get(zone, 0) <= most)


def _of_volumes(reason: Reason) -> frozenset[str]:
    """The zones that the volumes allow, of the requirements that the reason names."""
    allowed = reason.params.get("allowed")
    texts = (part for text in allowed for part in text.split(", ")) if isinstance(allowed, list) else ()
    listed = (text.removeprefix(f"{ZONE} In [").removesuffix("]") for text in texts if text.startswith(f"{ZONE} In ["))
    return frozenset(zone for names in listed for zone in names.split())
