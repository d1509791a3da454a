"""What fills each node: its pods, and the share of the node that each asks for."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, Resources, is_terminal, owned_by
from kerf.engine.state.pods.on_node import pods_on_node
from kerf.engine.state.state import State
from kerf.projections.workload_names import workload_of

_SHARED = ("cpu", "memory")


class BoxPod(Struct, frozen=True):
    """A pod in its node's box. `share` is the larger of its shares of the node's CPU and memory, from 0 to 1. `daemon`
    says that it belongs to a DaemonSet, `leaving` that it is being deleted."""

    pod: str
    workload: str
    share: float
    daemon: bool = False
    leaving: bool = False


def boxes(state: State) -> dict[str, tuple[BoxPod, ...]]:
    """Return the pods of each Node by its name, the largest first. Pods that have ended are left out."""
    alike = _Alike(state)
    return {name: _pods(node, state, alike) for name, node in sorted(state.facts.nodes.items())}


class _Alike:
    """What pods have in common, and nodes: found once for all that are alike."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._shares: dict[tuple[int | None, ...], dict[str, float]] = {}
        self._owned: dict[tuple[str, str, str], tuple[str, bool]] = {}

    def shares(self, node: Node) -> dict[str, float]:
        """Return by the digest of what a pod asks for its share of a node, of all pods there."""
        room, shape_of = node.allocatable, self._state.indexes.blobs.shape
        shares = self._shares.setdefault(tuple(map(room.get, _SHARED)), {})
        for digest in pods_on_node(self._state, node.name).shapes - shares.keys():
            shares[digest] = _share(shape_of(digest).requests, room)
        return shares

    def owned(self, pod: Pod) -> tuple[str, bool]:
        """Return a pod's workload, and whether that is a DaemonSet."""
        owner = pod.owner
        if owner is None:
            return pod.key, False
        key = pod.namespace, owner.name, owner.kind
        found = self._owned.get(key)
        if found is None:
            found = self._owned[key] = workload_of(pod).key, owned_by(pod, DAEMONSET)
        return found


def _share(requests: Resources, room: Resources) -> float:
    shares = (requests.get(name, 0) / room[name] for name in _SHARED if room.get(name))
    return round(max(shares, default=0.0), 4)


def _pods(node: Node, state: State, alike: _Alike) -> tuple[BoxPod, ...]:
    shares, here = alike.shares(node), list[BoxPod]()
    for pod in pods_on_node(state, node.name).ordered:
        if not is_terminal(pod):
            workload, daemon = alike.owned(pod)
            here.append(BoxPod(pod.key, workload, shares[pod.shape], daemon, bool(pod.deleting)))
    return tuple(sorted(here, key=lambda box: (-box.share, box.pod)))
