"""What the planner is asked, and what it answers. Decider, `kerf plan`, tests and benchmarks all ask this way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.kubernetes.devices import DeviceFacts
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Resources, Taint
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.model.settings import Settings


class PendingPod(Struct, frozen=True):
    """A pod that wants a place: `uid` is what results name; `shape` is a digest into `Problem.shapes`; `target` is the
    claim, or the unmanaged node, that an earlier plan put it on, "" for none; `virtual`: it stands for the room of a
    CapacityBuffer (S-179); `device_claims`: its ResourceClaims as namespace/name (S-195); `accepted`: it is not refused
    for what it asks (S-42), for it runs already, on a node that goes (S-46); `ahead`: pods of a higher number are
    packed before others, whatever their size (see `optimizer.first_plan`); `turn`: where it comes among those that
    were created in the same second, 0 where nobody knows."""

    uid: str
    namespace: str
    name: str
    shape: str
    created: int = 0
    target: str = ""
    virtual: bool = False
    device_claims: tuple[str, ...] = ()
    accepted: bool = False
    ahead: int = 0
    turn: int = 0


class BoundPod(Struct, frozen=True):
    """A pod that is on a node and not one of this pass; `node` is a `NodeInput.name`. Terminal pods are left out.
    `terminating`: it still keeps others away, but no longer attracts them or counts for spreads (S-119, S-131)."""

    uid: str
    namespace: str
    shape: str
    node: str
    terminating: bool = False
    name: str = ""


class PoolInput(Struct, frozen=True):
    """A NodePool, the digest of its catalogue (into `Problem.catalogues`; "" for none) and what its active nodes use
    (S-68: the sum of their capacity, with `nodes` counted)."""

    pool: NodePool
    catalogue: str
    usage: Resources = {}


_Compiled = TypeVar("_Compiled")
MAX_COMPILED_PER_NODE = 8
"""How many things compiled from one node are kept with it."""


class NodeInput(Struct, frozen=True, dict=True):
    """A node that exists or is on its way and is not marked for deletion (S-71).

    `name` as of S-71; `claim` is its NodeClaim's name ("" if unmanaged). `taints` are those that count (S-72);
    `available` is allocatable less the requests of all bound pods (S-74); `bound_daemons` the part of those requests
    that belongs to DaemonSet pods; `assumed` is what kube-scheduler's scores take the other bound pods for beyond what
    they request, `total` the allocatable CPU and memory themselves ({}: what its type has). `requirements` narrows a
    claim that is not launched yet, whose labels are not all known; it is empty once there is an instance.
    """

    name: str
    claim: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    available: Resources
    initialized: bool = True
    bound_daemons: Resources = {}
    host_ports: tuple[HostPort, ...] = ()
    requirements: tuple[RequirementSpec, ...] = ()
    assumed: Resources = {}
    total: Resources = {}

    @cached_property
    def _compiled(self) -> dict[Hashable, Any]:
        return {}

    def compiled(self, what: Hashable, make: Callable[[], _Compiled]) -> _Compiled:
        """What is made of it once, for many problems are about the same nodes. `what`: all that it depends on besides.
        Some are kept, not all: a node may stay as it is for months, and catalogues change with each price."""
        known = self._compiled
        if what not in known:
            if len(known) >= MAX_COMPILED_PER_NODE:
                known.clear()
            known[what] = make()
        compiled: _Compiled = known[what]
        return compiled


class LeftOut(Struct, frozen=True):
    """NodePools, and offerings in the form of `Problem.unavailable`, that are there and that a question leaves out of
    itself, since with them more pods would be pending. Only reasons tell of them."""

    pools: tuple[PoolInput, ...]
    offerings: frozenset[tuple[str, str, str]]


class Problem(Struct, frozen=True):
    """One provisioning question. `daemons` are the digests of DaemonSet shapes; `unavailable` holds the offerings
    known to lack capacity as (capacity type, instance type, zone); "" matches any type or zone. `leaving` are nodes
    that are no places, as those marked for deletion: the pods that stay on them still count (S-131). `volumes`: None
    if nothing is known of volumes; then pods that have some are left over; so with `devices`."""

    pods: tuple[PendingPod, ...]
    shapes: Mapping[str, PodShape]
    pools: tuple[PoolInput, ...]
    catalogues: Mapping[str, Catalogue]
    nodes: tuple[NodeInput, ...] = ()
    daemons: tuple[str, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    unavailable: frozenset[tuple[str, str, str]] = frozenset()
    settings: Settings = Settings()
    bound: tuple[BoundPod, ...] = ()
    leaving: tuple[NodeInput, ...] = ()
    volumes: VolumeFacts | None = None
    devices: DeviceFacts | None = None
    careful: bool = False  # pods that spreads count settle where their nodes will be at once (see `Plan.uneven`)
    variant: int = 0  # which of equally ranked domains are taken: 0 the cheapest, else as it comes (see `optimizer`)
    left_out: LeftOut | None = None
