"""How many pods of each node have to go elsewhere when it goes (M-14)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.kubernetes.pods import Pod, is_reschedulable


class MovablePods:
    """Knows the reschedulable pods of each node (D-10): those that are active, and of no DaemonSet or node."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._node_of: dict[str, str] = {}
        self._on_node: dict[str, int] = {}
        for pod in pods:
            self.see(pod)

    def see(self, pod: Pod) -> None:
        self.gone(pod.uid)
        if pod.node and is_reschedulable(pod):
            self._node_of[pod.uid] = pod.node
            self._on_node[pod.node] = self._on_node.get(pod.node, 0) + 1

    def gone(self, uid: str) -> None:
        node = self._node_of.pop(uid, "")
        if node:
            self._on_node[node] -= 1
            if not self._on_node[node]:
                del self._on_node[node]

    def count(self, node: str) -> int:
        return self._on_node.get(node, 0)
