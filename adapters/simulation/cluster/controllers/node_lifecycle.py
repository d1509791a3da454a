"""The node controllers of the virtual cluster.

A node whose kubelet is silent becomes not ready, and its pods are evicted. The Node of an ended instance is removed.
Pods of a removed Node are deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.kubelet import Kubelets
from kerf.adapters.simulation.cluster.node_changes import (
    UNREACHABLE,
    with_condition,
    with_ready,
    with_taints,
    without_taints,
)
from kerf.adapters.simulation.scheduler.filters import tolerates
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, owned_by

CLOUD_CONTROLLER = "cloud-node-lifecycle-controller"


class NodeLifecycle:
    """Watches Nodes. `delete` removes a Node as the API does, with its finalizer: (node name, who asks)."""

    def __init__(
        self,
        api: ApiServer,
        clock: Clock,
        kubelets: Kubelets,
        timing: Timing,
        delete: Callable[[str, str], None],
    ) -> None:
        self._api, self._clock, self._kubelets, self._timing = api, clock, kubelets, timing
        self._delete = delete
        api.listen(self._changed)

    def instance_ended(self, instance: str) -> None:
        """Remove the Node of an instance that the cloud has ended, for whatever reason."""
        name = self._kubelets.stop(instance)
        if name:
            self._lose(name, removed=True)

    def silence(self, name: str, duration: int | None) -> None:
        """Let the kubelet of a node stop answering, for `duration` milliseconds or for good."""
        self._kubelets.silence(name)
        self._lose(name, removed=False)
        if duration is not None:
            self._clock.after(duration, "kubelet recovers", lambda: self.recover(name))

    def recover(self, name: str) -> None:
        self._kubelets.recover(name)
        node = self._api.nodes.get(name)
        if node is not None and self._kubelets.answers(name):
            back = with_ready(node, True, self._clock.now)
            self._api.put(without_taints(back, lambda taint: any(taint.same(u) for u in UNREACHABLE)))

    def report(self, name: str, condition: str, status: str, duration: int | None) -> None:
        """Set a condition of a node, as an agent does. If `duration` (ms) is given, it is True again afterwards."""
        node = self._api.nodes.get(name)
        if node is not None:
            self._api.put(with_condition(node, condition, status, self._clock.now))
        if duration is not None:
            self._clock.after(duration, "node recovers", lambda: self.report(name, condition, "True", None))

    # ── silence, step by step ───────────────────────────────────────────────────────────────────────────────

    def _lose(self, name: str, *, removed: bool) -> None:
        node = self._api.nodes.get(name)
        if node is not None:
            step = partial(self._unreachable, name, node.uid, removed)
            self._clock.after(self._timing.unreachable, "node becomes unreachable", step)

    def _unreachable(self, name: str, uid: str, removed: bool) -> None:
        node = self._still_lost(name, uid)
        if node is None:
            return
        self._api.put(with_taints(with_ready(node, False, self._clock.now), UNREACHABLE))
        self._api_pods_not_ready(name)
        evict = partial(self._evict, name, uid)
        self._clock.after(self._timing.taint_eviction, "pods leave an unreachable node", evict)
        if removed:
            forget = partial(self._forget, name, uid)
            self._clock.after(self._timing.node_removal, "node of an ended instance goes", forget)

    def _api_pods_not_ready(self, name: str) -> None:
        for pod in self._api.pods_on(name):
            self._api.put(replace(pod, ready=False))

    def _evict(self, name: str, uid: str) -> None:
        """Evict pods by taint: those of DaemonSets stay, others go after 300 s unless they say otherwise."""
        if self._still_lost(name, uid) is None:
            return
        for pod in self._api.pods_on(name):
            stays = owned_by(pod, DAEMONSET) or tolerates(self._api.shape(pod).tolerations, UNREACHABLE[1])
            if not pod.deleting and not stays:
                self._api.delete_pod(pod)

    def _forget(self, name: str, uid: str) -> None:
        if self._still_lost(name, uid) is not None:
            self._delete(name, CLOUD_CONTROLLER)

    def _still_lost(self, name: str, uid: str) -> Node | None:
        node = self._api.nodes.get(name)
        return node if node is not None and node.uid == uid and not self._kubelets.answers(name) else None

    # ── pods of removed nodes ───────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if change.kind == "node" and change.new is None:
            self._clock.after(self._timing.pod_gc, "pods of a removed node go", lambda: self._collect(change.key))

    def _collect(self, name: str) -> None:
        if name not in self._api.nodes:
            for pod in self._api.pods_on(name):
                self._api.remove(pod)
