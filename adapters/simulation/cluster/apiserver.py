"""The objects of the virtual cluster, as an API server holds them. They change only here.

Each change becomes one observation, in order. Writing an equal object produces nothing. Controllers listen to changes:
a listener only notes what it has to look at, and does its work later, on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.admission import with_priority
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, PodShape, is_terminal
from kerf.engine.model.kubernetes.priority_classes import PriorityClass
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.entry_types import blob_of
from kerf.engine.record.observations import ObjectGone, Observation

Object = Struct
"""A struct of one of the kinds that are held here."""

HELD = tuple(kind for kind in WATCHED if kind.facts)
"""What the engine watches, but for NodeClaims. Workloads are told of only where the settings ask for them."""
KIND_OF: dict[type[Struct], str] = {kind.struct: kind.name for kind in HELD}
"""Lower-case singulars (see ObjectGone), in the order in which a first list should be told."""
_KEY_OF: dict[type[Struct], Callable[[Struct], str]] = {kind.struct: attrgetter(kind.key) for kind in HELD}

DEFAULT_GRACE = 30
"""Seconds, when a pod names none (the API's default)."""


def key_of(item: Object) -> str:
    """Return the key by which the tables and ObjectGone know an object."""
    return _KEY_OF[type(item)](item)


class Change(Struct, frozen=True):
    """One change. `old` is None for a new object, `new` is None for one that is gone."""

    kind: str
    key: str
    old: Object | None
    new: Object | None


class ApiServer:
    """Tables by kind, and the indexes of pods that every controller needs."""

    def __init__(self, clock: Clock) -> None:
        self._tables: dict[str, dict[str, Any]] = {kind.name: {} for kind in HELD}
        self.pods: dict[str, Pod] = self._tables["pod"]
        self.nodes: dict[str, Node] = self._tables["node"]
        self.pools: dict[str, NodePool] = self._tables["nodepool"]
        self.daemon_sets: dict[str, DaemonSet] = self._tables["daemonset"]
        self.budgets: dict[str, PodDisruptionBudget] = self._tables["pdb"]
        self.namespaces: dict[str, Namespace] = self._tables["namespace"]
        self.claims: dict[str, VolumeClaim] = self._tables["pvc"]
        self.volumes: dict[str, Volume] = self._tables["pv"]
        self.storage_classes: dict[str, StorageClass] = self._tables["storageclass"]
        self.csi_nodes: dict[str, CSINode] = self._tables["csinode"]
        self.attachments: dict[str, VolumeAttachment] = self._tables["volumeattachment"]
        self.services: dict[str, Service] = self._tables["service"]
        self.workloads: dict[str, Workload] = self._tables["workload"]
        self.device_classes: dict[str, DeviceClass] = self._tables["deviceclass"]
        self.resource_slices: dict[str, ResourceSlice] = self._tables["resourceslice"]
        self.resource_claims: dict[str, ResourceClaim] = self._tables["resourceclaim"]
        self.claim_templates: dict[str, ResourceClaimTemplate] = {}  # nobody watches these two
        self.priorities: dict[str, PriorityClass] = {}
        self.gated: dict[str, tuple[str, ...]] = {}
        """Pod uid → its scheduling gates: no scheduler looks at these pods, and watches do not show the gates."""
        self.shapes: dict[str, PodShape] = {}
        self._clock = clock
        self._blobs: dict[str, dict[str, Struct]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._of_owner: dict[str, dict[str, None]] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._unseen: list[Observation] = []

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def date(self) -> int:
        """Return the time of the header Date: in ms since the epoch, in whole seconds."""
        return self._clock.now // 1000 * 1000

    def table(self, kind: str) -> dict[str, Object]:
        return self._tables[kind]

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        uid = self._names.get((namespace, name))
        return None if uid is None else self.pods[uid]

    def pods_on(self, node: str) -> list[Pod]:
        """Return the pods bound to a node (which need not exist), in the order of binding."""
        return [self.pods[uid] for uid in self._on_node.get(node, ())]

    def pods_of(self, owner: str) -> list[Pod]:
        """Return the pods of a controller, by its uid, oldest first."""
        return [self.pods[uid] for uid in self._of_owner.get(owner, ())]

    def shape(self, pod: Pod) -> PodShape:
        return self.shapes[pod.shape]

    def listing(self, kind: str) -> list[Observation]:
        """Return all objects of a kind by key: the answer to a list request."""
        table = self._tables[kind]
        return [self._observation(table[key]) for key in sorted(table)]

    def drain(self) -> list[Observation]:
        """Return what has changed since the last call, in order."""
        unseen, self._unseen = self._unseen, []
        return unseen

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────

    def listen(self, listener: Callable[[Change], None]) -> None:
        self._listeners.append(listener)

    def keep_shape(self, shape: PodShape) -> str:
        """Store a shape and return its digest."""
        digest, _ = content(shape)
        self.shapes.setdefault(digest, shape)
        self._blobs.setdefault(digest, {digest: shape})
        return digest

    def admit(self, shape: PodShape) -> str:
        """Return the digest of a new pod's shape as admission completes it: with the priority of its class, and with a
        grace period, without which no deadline would ever force the pod off its node (L-203)."""
        grace = DEFAULT_GRACE if shape.grace is None else shape.grace
        return self.keep_shape(replace(with_priority(shape, self.priorities), grace=grace))

    def put(self, item: Object) -> None:
        """Create or replace an object."""
        kind, key = KIND_OF[type(item)], key_of(item)
        old = self._tables[kind].get(key)
        if old == item:
            return
        self._tables[kind][key] = item
        self._changed(Change(kind=kind, key=key, old=old, new=item), self._observation(item))

    def remove(self, item: Object) -> None:
        """Remove an object. One that is not there is left alone."""
        kind, key = KIND_OF[type(item)], key_of(item)
        old = self._tables[kind].pop(key, None)
        if old is not None:
            gone = Observation(ObjectGone(kind=kind, key=key))
            self._changed(Change(kind=kind, key=key, old=old, new=None), gone)

    def delete_pod(self, pod: Pod, grace: int | None = None) -> None:
        """Do as the API's DELETE of a pod.

        `grace` in seconds overrides the pod's own; it can shorten a running one, never lengthen it. A pod that is not
        bound, or has ended, goes at once, since no kubelet has to end it. `deletionTimestamp` is when the grace period
        ends.
        """
        own = self.shape(pod).grace
        seconds = grace if grace is not None else DEFAULT_GRACE if own is None else own
        if seconds == 0 or not pod.node or is_terminal(pod):
            self.remove(pod)
            return
        ends = self._clock.now + seconds * 1000
        if not pod.deleting or ends < pod.deleting:
            self.put(replace(pod, deleting=ends))

    def delete_pods(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if not pod.deleting:
                self.delete_pod(pod)

    # ── bookkeeping ─────────────────────────────────────────────────────────────────────────────────────────

    def _observation(self, item: Object) -> Observation:
        digest = blob_of(item)
        return Observation(item, self._blobs[digest]) if digest else Observation(item)

    def _changed(self, change: Change, observation: Observation) -> None:
        if change.kind == "pod":
            self._reindex(change.old, change.new)
        self._unseen.append(observation)
        for listener in self._listeners:
            listener(change)

    def _reindex(self, old: Object | None, new: Object | None) -> None:
        if isinstance(old, Pod) and not (isinstance(new, Pod) and new.node == old.node):
            self._on_node.get(old.node, {}).pop(old.uid, None)
        if isinstance(new, Pod):
            self._names[new.namespace, new.name] = new.uid
            if new.node:
                self._on_node.setdefault(new.node, {})[new.uid] = None
            if new.owner is not None:
                self._of_owner.setdefault(new.owner.uid, {})[new.uid] = None
        elif isinstance(old, Pod):
            self.gated.pop(old.uid, None)
            if self._names.get((old.namespace, old.name)) == old.uid:
                del self._names[old.namespace, old.name]
            if old.owner is not None:
                self._of_owner.get(old.owner.uid, {}).pop(old.uid, None)
