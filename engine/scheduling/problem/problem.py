"""The question that the planner answers. The decider, `kerf plan`, tests and benchmarks all ask it in this form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS, Requirements
from kerf.engine.model.kubernetes.devices import DeviceFacts
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pods import Expression, HostPort, NodeTerm, PodShape, Resources, Taint
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.matching.resources import added, total

ShapeKey = tuple[str, str]
"""The namespace of a pod and the digest of its shape. Pods with equal keys are alike to every rule about pods."""


class Beside(Struct, frozen=True):
    """Where a pod has to run, and why. `domains`: the values of each topology key. `nodes` (by name): where the
    `budgets` (namespace/name) keep the pods that it has to be with."""

    domains: tuple[Expression, ...]
    nodes: tuple[str, ...]
    budgets: tuple[str, ...]

    @property
    def where(self) -> list[str]:
        """The domains, each as key=value."""
        return [f"{domain.key}={value}" for domain in self.domains for value in domain.values]

    def shape(self, shape: PodShape) -> PodShape:
        """The shape of a pod that may run only there."""
        terms = shape.required_terms or (NodeTerm(),)
        return replace(
            shape, required_terms=tuple(replace(term, expressions=(*term.expressions, *self.domains)) for term in terms)
        )


class PendingPod(Struct, frozen=True):
    """A pod that needs a place.

    * `uid`: what results name.
    * `shape`: a digest into `Problem.shapes`.
    * `created`: ms since the epoch. `arrival`: orders pods created in the same second; 0 if unknown.
    * `target`: the claim, or the unmanaged node, that an earlier plan put it on; "" for none.
    * `virtual`: it stands for the room of a CapacityBuffer (S-179).
    * `device_claims`: its ResourceClaims as namespace/name (S-195).
    * `accepted`: it runs already, on a node that goes (S-46), so it is not refused for what it asks (S-42); nor
      is a pod that has to be `beside` others, for what this adds.
    * `ahead`: pods with a higher number are packed first, whatever their size (see `optimizer.first_plan`).
    * `of_new_nodes`: what it asks of nodes that are yet to be launched, besides its shape: to be of no NodePool, type,
      zone or capacity type that would keep more pods of its group pending (see `optimizer.first_plan`).
    * `beside`: why its shape asks for more than the pod itself.
    """

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
    arrival: int = 0
    of_new_nodes: Requirements = NO_REQUIREMENTS
    beside: Beside | None = None

    @property
    def shape_key(self) -> ShapeKey:
        """Equal for pods that are alike."""
        return self.namespace, self.shape


def by_name(pod: PendingPod) -> tuple[str, str, str]:
    """The order in which plans list pods."""
    return pod.namespace, pod.name, pod.uid


class BoundPod(Struct, frozen=True):
    """A pod on a node that is not one of this pass. `node`: a `NodeInput.name`. Pods that have ended are left out.
    `terminating`: it still repels other pods (anti-affinity), but attracts none and counts for no spread (S-119,
    S-131)."""

    uid: str
    namespace: str
    shape: str
    node: str
    terminating: bool = False
    name: str = ""

    @property
    def shape_key(self) -> ShapeKey:
        """Equal for pods that are alike."""
        return self.namespace, self.shape


class PoolInput(Struct, frozen=True):
    """A NodePool. `catalogue`: a digest into `Problem.catalogues`; "" for none. `usage`: the capacity of its active
    nodes, and their number as `nodes` (S-68). `withheld`: what nothing is launched for, because launches did not give
    it. `unavailable`: as in `Problem`, for this NodePool alone."""

    pool: NodePool
    catalogue: str
    usage: Resources = {}
    withheld: tuple[RequirementSpec, ...] = ()
    unavailable: frozenset[tuple[str, str, str]] = frozenset()


_Compiled = TypeVar("_Compiled")
MAX_COMPILED_PER_NODE = 8
"""How many things compiled from one node are kept with it."""


class NodeInput(Struct, frozen=True, dict=True):
    """A node that exists or is on its way and is not marked for deletion (S-71).

    * `name`: as in S-71. `claim`: the name of its NodeClaim; "" if unmanaged.
    * `taints`: those that pods must tolerate (S-72).
    * `available`: allocatable less the requests of all bound pods (S-74). `bound_daemons`: the part of these requests
      that belongs to DaemonSet pods.
    * `assumed`: what kube-scheduler's scores add to the requests of the other bound pods.
    * `total`: allocatable CPU and memory; {} means those of its instance type.
    * `requirements`: what is known of the labels of a claim that is not launched yet; empty once there is an instance.
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

    def with_pods(self, shapes: Sequence[PodShape]) -> NodeInput:
        """The node once pods of these shapes are bound to it; without any, itself, with what was compiled of it."""
        if not shapes:
            return self
        used = total({**shape.requests, "pods": 1} for shape in shapes)
        ports = tuple(port for shape in shapes for port in shape.host_ports)
        return replace(self, available=added(self.available, used, -1), host_ports=(*self.host_ports, *ports))

    @cached_property
    def _compiled(self) -> dict[Hashable, Any]:
        return {}

    def compiled(self, what: Hashable, make: Callable[[], _Compiled]) -> _Compiled:
        """Something made of this node, made only once: many problems share their nodes. `what`: everything else that it
        depends on. Only a few are kept, because a node may stay for months while catalogues change with each price."""
        known = self._compiled
        compiled: _Compiled | None = known.get(what)
        if compiled is None:
            if len(known) >= MAX_COMPILED_PER_NODE:
                known.clear()
            compiled = known[what] = make()
        return compiled


class Problem(Struct, frozen=True, dict=True):
    """One provisioning question.

    * `daemons`: the digests of DaemonSet shapes.
    * `unavailable`: offerings known to lack capacity, as (capacity type, instance type, zone); "" matches any type or
      zone.
    * `leaving`: nodes that take no pods, such as those marked for deletion; the pods that stay on them still count
      (S-131).
    * `volumes`, `devices`: None if nothing is known of them; then pods that ask for some get no place.
    """

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
    first_pool: str = ""  # of NodePools of equal weight the one that is tried first; "": the last by name (S-63)

    @cached_property
    def pod_of(self) -> dict[str, PendingPod]:
        """Each pod by its uid."""
        return {pod.uid: pod for pod in self.pods}

    @cached_property
    def pods_of_kind(self) -> dict[ShapeKey, list[PendingPod]]:
        """The pods that are alike, by their shape key."""
        kinds: dict[ShapeKey, list[PendingPod]] = {}
        for pod in self.pods:
            kinds.setdefault(pod.shape_key, []).append(pod)
        return kinds

    @cached_property
    def pool_of(self) -> dict[str, PoolInput]:
        """Each NodePool by its name."""
        return {pool_input.pool.name: pool_input for pool_input in self.pools}

    def unavailable_to(self, pool: PoolInput) -> frozenset[tuple[str, str, str]]:
        """The offerings known to lack capacity for a NodePool."""
        return self.unavailable | pool.unavailable if pool.unavailable else self.unavailable
