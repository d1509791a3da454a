"""The cluster as disruption sees it: nodes with their pods, NodePools, and the problem that the planner gets when some
nodes are gone (D-4…D-8, D-87…D-93).

Deciders build it from the state, `kerf disrupt` from a scenario. A cluster is a value: moves make a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.devices import DeviceFacts, devices_without
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources, Taint, Toleration, is_reschedulable, is_terminal
from kerf.engine.model.labels import NODEPOOL
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.problem.beside_held_pods import beside_held_pods
from kerf.engine.scheduling.problem.departing_pods import MIN_LEAD
from kerf.engine.scheduling.problem.problem import Beside, BoundPod, NodeInput, PendingPod, PoolInput, Problem
from kerf.engine.scheduling.topology.topology import first_pods

NO_LIMIT = 1 << 62
"""Simulations have no limit of steps (S-60), and no optimizer effort: one search does not run inside another."""
SETTLING = Taint("kerf.sh/settling", "NoSchedule")
"""The taint of nodes under consolidateAfter, in simulations only (D-93)."""
SETTLING_TOLERATED = Toleration(key=SETTLING.key, operator="Exists", effect=SETTLING.effect)


class ClusterNode(Struct, frozen=True, dict=True):
    """A node (D-4). `place` is what the planner sees of it, `pods` are all pods bound to it.

    Times are milliseconds since the epoch, 0 when absent; `created`, `expire_after` and `grace_period` are the
    NodeClaim's. `tracked`: pods may be placed on it at all (S-71). `marked`: it is on its way out (D-7). `nominated`:
    pods are expected on it (D-8). `queued`: a command that takes it is being carried out. `buffers`: how many virtual
    pods it holds room for (D-9). `held_until`: a command for it failed, and it is not considered before this time.
    `departing`: of a node on its way out, those pods (uids) that provisioning plans for now; None if that is not known.
    `unused`: pods that it was launched for still run where they ran before, and no other has come.
    """

    place: NodeInput
    pods: tuple[Pod, ...] = ()
    managed: bool = True
    has_node: bool = True
    annotations: dict[str, str] = {}
    capacity: Resources = {}
    created: int = 0
    expire_after: int | None = None
    grace_period: int | None = None
    tracked: bool = True
    marked: bool = False
    terminating: bool = False
    nominated: bool = False
    queued: bool = False
    ready: bool = True
    consolidatable: bool = False
    drifted_since: int = 0
    initialized_since: int = 0
    last_pod_event: int = 0
    buffers: int = 0
    held_until: int = 0
    departing: frozenset[str] | None = None
    unused: bool = False

    @cached_property
    def name(self) -> str:
        return self.place.name

    @cached_property
    def bound(self) -> tuple[BoundPod, ...]:
        """The pods that count here."""
        return tuple(
            BoundPod(pod.uid, pod.namespace, pod.shape, self.name, bool(pod.deleting), pod.name)
            for pod in self.pods
            if not is_terminal(pod)
        )

    @cached_property
    def first_of_kinds(self) -> tuple[BoundPod, ...]:
        """The first of the pods that count here, of each namespace and shape."""
        return tuple(first_pods(((pod.namespace, pod.shape), pod) for pod in self.bound).values())

    @cached_property
    def shapes(self) -> frozenset[str]:
        """The shapes of all its pods."""
        return frozenset([pod.shape for pod in self.pods])

    @cached_property
    def reschedulable(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if is_reschedulable(pod))

    @cached_property
    def kept(self) -> bool:
        """Whether it goes only later, because of pods that may not leave yet."""
        return self.departing is not None and any(pod.uid not in self.departing for pod in self.reschedulable)

    @cached_property
    def shielded(self) -> tuple[Pod, ...]:
        """The pods that ask not to be disrupted."""
        return tuple(pod for pod in self.pods if pod.do_not_disrupt)

    @cached_property
    def priced(self) -> list[tuple[InstanceType, float]]:
        """What `node_price` found latest, and the type that it was asked about; empty before that."""
        return []

    @property
    def labels(self) -> dict[str, str]:
        return self.place.labels

    @property
    def initialized(self) -> bool:
        return self.place.initialized

    @cached_property
    def node_pool(self) -> str:
        return self.place.labels.get(NODEPOOL, "")


class Cluster(Struct, frozen=True, dict=True):
    """Everything that a disruption pass looks at.

    `base` is the planner's problem as it stands. Shapes, NodePools, catalogues, DaemonSets and settings are taken from
    it; pods and nodes are set anew for each simulation (`what_if`). `pending` are provisionable pods; `virtual` are
    those of them (uids) that stand for the room of CapacityBuffers. `spot_to_spot` is the feature gate (D-102); `now`
    is in milliseconds.

    `promised`: the claim, or the unmanaged node, that a pod (by uid) was promised. If it has to move, it goes there as
    long as it fits.

    `live`: the controller asks, by kerf's own rules where these differ from Karpenter's on purpose. A node on which
    pods run is never empty (D-35), and pods that have no place anyway hold up no move of others (D-96).
    """

    now: int
    nodes: tuple[ClusterNode, ...]
    base: Problem
    pending: tuple[Pod, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    spot_to_spot: bool = False
    live: bool = False
    virtual: frozenset[str] = frozenset()
    promised: Mapping[str, str] = {}

    @property
    def shapes(self) -> Mapping[str, PodShape]:
        return self.base.shapes

    @property
    def pools(self) -> tuple[PoolInput, ...]:
        return self.base.pools

    @cached_property
    def pods_seek_pods(self) -> bool:
        """Whether a shape has affinity or anti-affinity."""
        return any(shape.affinity or shape.anti_affinity for shape in self.shapes.values())

    @cached_property
    def eviction_rules(self) -> EvictionRules:
        return EvictionRules(self.shapes, self.pod_disruption_budgets, self.now)

    def moving(self, node: ClusterNode) -> tuple[Pod, ...]:
        """The pods of a node that find another place when it goes (D-10, D-88). In the controller that is no pod whose
        budget asks for all of them, unless the node's deadline comes soon: provisioning plans for it later (S-49)."""
        rules = self.eviction_rules
        if not rules.pod_disruption_budgets and not node.shielded:
            return node.reschedulable
        moving = tuple(filter(rules.moves, node.reschedulable))
        if not self.live or (node.grace_period is not None and node.grace_period <= MIN_LEAD):
            return moving
        return tuple(pod for pod in moving if not rules.never_letting_go(pod))

    @cached_property
    def displaced(self) -> tuple[Pod, ...]:
        """The pods of nodes on their way out that need another node, whatever else goes (D-88, D-89)."""
        return tuple(moving_pods(self, frozenset())[1])

    def pool(self, name: str) -> NodePool | None:
        return self._pools.get(name)

    @cached_property
    def _pools(self) -> dict[str, NodePool]:
        return {pool_input.pool.name: pool_input.pool for pool_input in reversed(self.pools)}

    def catalogue(self, name: str) -> Catalogue | None:
        """The instance types of a NodePool; None if it has none (D-29)."""
        digest = next((pool_input.catalogue for pool_input in self.pools if pool_input.pool.name == name), "")
        found = self.base.catalogues[digest] if digest else None
        return found if found is not None and found.types else None

    def types(self) -> Mapping[str, Mapping[str, InstanceType]]:
        """The instance types of each NodePool that has any (D-29), by name."""
        return self._types

    @cached_property
    def _types(self) -> dict[str, Mapping[str, InstanceType]]:
        named = {digest: compiled_catalogue(digest, made).by_name for digest, made in self.base.catalogues.items()}
        return {
            pool_input.pool.name: named[pool_input.catalogue]
            for pool_input in self.pools
            if pool_input.catalogue and named[pool_input.catalogue]
        }

    def settling(self, node: ClusterNode) -> bool:
        """Whether the node is under consolidateAfter (D-56), so that it is no destination (D-93)."""
        pool = self.pool(node.node_pool)
        if pool is None or pool.replicas is not None or not pool.ready or pool.deleting:
            return False
        if not node.managed or not node.initialized or not pool.consolidate_after:
            return False
        return self.now - (node.last_pod_event or node.initialized_since) < pool.consolidate_after


def moving_pods(cluster: Cluster, leaving: frozenset[str]) -> tuple[list[Pod], list[Pod]]:
    """The pods that need another node: those of the nodes that are to go, and those of nodes already marked (D-88). Of
    the latter, pods that may leave only later need none yet (D-89)."""
    going = [pod for node in cluster.nodes if node.name in leaving for pod in cluster.moving(node)]
    gone: list[Pod] = []
    for node in cluster.nodes:
        if node.marked and node.name not in leaving:
            departing = node.departing
            gone += cluster.moving(node) if departing is None else [pod for pod in node.pods if pod.uid in departing]
    return going, gone


def _beside_held(cluster: Cluster, leaving: frozenset[str]) -> dict[str, Beside]:
    """The pods (uids) that can run only beside others, which PodDisruptionBudgets keep for now on these nodes or on
    nodes on their way out (D-88)."""
    if not cluster.live or not cluster.pod_disruption_budgets or not cluster.pods_seek_pods:
        return {}
    going, gone = moving_pods(cluster, leaving)
    leaves = (node for node in cluster.nodes if node.marked or node.name in leaving)
    places = {pod.uid: node.place for node in leaves for pod in node.pods}
    pods = [*going, *cluster.pending, *gone]
    moved = frozenset(pod.uid for pod in pods)
    staying = (pod for node in cluster.nodes for pod in node.bound if pod.uid not in moved)  # seldom looked at
    return beside_held_pods(pods, places, staying, cluster.eviction_rules, cluster.base.namespaces)


def what_if(cluster: Cluster, leaving: frozenset[str], *, respect_settling: bool) -> Problem:
    """The planner's problem with these nodes gone (D-87…D-91). Preferences count as they do in a provisioning pass.

    With `respect_settling`, nodes under consolidateAfter take only pods that are pending or on nodes marked for
    deletion (D-93).
    """
    going, gone = moving_pods(cluster, leaving)
    stays = [node for node in cluster.nodes if node.tracked and not node.marked and node.name not in leaving]
    leaves = [node for node in cluster.nodes if not (node.tracked and not node.marked and node.name not in leaving)]
    settling = frozenset(node.name for node in stays if respect_settling and cluster.settling(node))
    shapes = dict(cluster.shapes)
    free = [*cluster.pending, *gone]
    devices = devices_without(cluster.base.devices, (pod.uid for node in leaves for pod in node.pods))
    unbarred = {pod.uid for pod in (*free, *filter(is_pending, going))} if settling else set()
    beside = _beside_held(cluster, leaving)
    pods = [
        pending_pod_of(
            pod,
            _shape_to_place(pod.shape, shapes, beside.get(pod.uid), pod.uid in unbarred),
            shapes,
            devices,
            cluster.promised.get(pod.uid, ""),
            beside.get(pod.uid),
        )
        for pod in (*going, *free)
    ]
    moved = frozenset(pod.uid for pod in pods)
    seen = positions_matter(cluster, [shapes[pod.shape] for pod in pods])
    return replace(
        cluster.base,
        pods=tuple(pods),
        shapes=shapes,
        pools=tuple(replace(pool_input, usage=_usage(stays, pool_input.pool.name)) for pool_input in cluster.pools),
        nodes=tuple(_tainted(node.place) if node.name in settling else node.place for node in stays),
        bound=tuple(bound(cluster.nodes, moved)) if seen else (),
        leaving=tuple(node.place for node in leaves),
        devices=devices,
        settings=replace(cluster.base.settings, effort=0, max_steps=NO_LIMIT),
    )


def is_pending(pod: Pod) -> bool:
    """Whether a pod is bound and not running yet. Like a pod without a node, it may go to settling nodes (S-78)."""
    return pod.phase == "Pending"


def pending_pod_of(
    pod: Pod,
    shape: str,
    shapes: Mapping[str, PodShape],
    devices: DeviceFacts | None,
    target: str = "",
    beside: Beside | None = None,
) -> PendingPod:
    claims = devices.claims_of(pod, shapes[shape]) if devices is not None else ()
    return PendingPod(
        pod.uid,
        pod.namespace,
        pod.name,
        shape,
        pod.created,
        target,
        device_claims=claims,
        accepted=bool(pod.node) or beside is not None,
        beside=beside,
    )


def _shape_to_place(digest: str, shapes: dict[str, PodShape], beside: Beside | None, unbarred: bool) -> str:
    """The shape of a pod in a simulation: it may run only `beside` others; `unbarred`: also on settling nodes."""
    if beside is None and not unbarred:
        return digest
    shape = shapes[digest] if beside is None else beside.shape(shapes[digest])
    made = replace(shape, tolerations=(*shape.tolerations, SETTLING_TOLERATED)) if unbarred else shape
    name = content(made)[0]
    shapes[name] = made
    return name


def _tainted(place: NodeInput) -> NodeInput:
    return place.compiled(SETTLING, lambda: replace(place, taints=(*place.taints, SETTLING)))


def _usage(nodes: Iterable[ClusterNode], pool: str) -> Resources:
    """What the nodes of a NodePool use of its limits (S-68, D-91)."""
    counted = [node.capacity for node in nodes if node.node_pool == pool]
    return {**total(counted), "nodes": len(counted)} if counted else {}


def positions_matter(cluster: Cluster, moving: Iterable[PodShape]) -> bool:
    """Whether it can matter to one of the moving pods where other pods are (S-119, S-131, S-159)."""
    volumes = cluster.base.volumes
    limited = volumes is not None and bool(volumes.limits)
    return any(shape.spread or (limited and shape.volumes) for shape in moving) or cluster.pods_seek_pods


def bound(nodes: Iterable[ClusterNode], moved: frozenset[str]) -> list[BoundPod]:
    """The pods that count where they are: all but these (uids)."""
    return [pod for node in nodes for pod in node.bound if pod.uid not in moved]
