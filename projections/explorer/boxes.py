"""What fills each node: its pods, and the share of the node that each asks for."""

from __future__ import annotations

from msgspec import Struct

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
    return {name: _pods(name, state) for name in sorted(state.facts.nodes)}


def _pods(node: str, state: State) -> tuple[BoxPod, ...]:
    room = state.facts.nodes[node].allocatable
    here = (pod for pod in pods_on_node(state, node).ordered if not is_terminal(pod))
    return tuple(sorted((_box_pod(pod, room, state) for pod in here), key=lambda box: (-box.share, box.pod)))


def _box_pod(pod: Pod, room: Resources, state: State) -> BoxPod:
    requests = state.indexes.blobs.shape(pod.shape).requests
    share = max((requests.get(name, 0) / room[name] for name in _SHARED if room.get(name)), default=0.0)
    return BoxPod(pod.key, workload_of(pod).key, round(share, 4), owned_by(pod, DAEMONSET), bool(pod.deleting))
