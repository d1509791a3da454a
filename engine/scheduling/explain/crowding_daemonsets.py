"""Which DaemonSets leave pods no type that is large enough: the plan's reason says only that there is none."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.type_filters import large_enough
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.daemons import daemon_of_shape
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.launchable.templates import Template
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.objects.daemonsets import daemon_shape
from kerf.engine.state.state import State


class CrowdingDaemonSets(Struct, frozen=True):
    """`types`: how many would be large enough without them. `requests` by namespace/name."""

    types: int
    requests: dict[str, Resources]


def crowding_behind(state: State, reason: Reason, shape: str) -> CrowdingDaemonSets | None:
    """The DaemonSets without which some type would be large enough for a pod of this shape, where the reason is that
    none is."""
    if reason.code not in (SchedulingCode.TYPES_RESOURCES, SchedulingCode.TYPES_COMBINED):
        return None
    named = reason.params.get("resources")
    short = tuple(named) if isinstance(named, list) else ()
    return crowding_daemonsets(state, str(reason.params.get("node_pool", "")), shape, short)


def crowding_daemonsets(
    state: State, node_pool: str, shape: str, short: tuple[str, ...] = ()
) -> CrowdingDaemonSets | None:
    """The DaemonSets on those types of a NodePool that would hold a pod of this shape without them; None where there
    are none. Of what they ask for only `short` resources count, if any are named."""
    pool, blobs = state.facts.pools.get(node_pool), state.indexes.blobs
    digest = PoolCatalogues(state).of(node_pool)
    if pool is None or not digest:
        return None
    template = Template(pool, {}, compiled_catalogue(digest, blobs.catalogue(digest)), frozenset(), (), strict=False)
    pod = blobs.shape(shape)
    wanted = template.base.requirements.merged(requirements_of(pod, preferences=False))
    types = large_enough(template, wanted, pod.requests)
    found = {}
    for daemonset in state.facts.daemonsets.values():
        daemon = daemon_of_shape(blobs.shape(daemon_shape(state, daemonset)))
        requests = {
            name: amount
            for name, amount in sorted(daemon.requests.items())
            if amount and name != "pods" and (not short or name in short)
        }
        if requests and daemon.types(pool.taints, template.base.requirements, template.catalogue, types):
            found[f"{daemonset.namespace}/{daemonset.name}"] = requests
    return CrowdingDaemonSets(types.bit_count(), dict(sorted(found.items()))) if types and found else None
