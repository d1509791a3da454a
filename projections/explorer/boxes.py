"""What fills each node: its pods, and the share of the node that each asks for."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Resources, is_terminal, owned_by
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
    share_of = _Shares(state)
    return {name: _pods(node, state, share_of) for name, node in sorted(state.facts.nodes.items())}


class _Shares:
    """Shares of nodes by what a pod asks for. Many pods are alike, and so are many nodes."""

    def __init__(self, state: State) -> None:
        self._shape_of = state.indexes.blobs.shape
        self._known: dict[tuple[Any, ...], float] = {}

    def __call__(self, shape: str, room: Resources) -> float:
        key = (shape, *map(room.get, _SHARED))
        share = self._known.get(key)
        if share is None:
            requests = self._shape_of(shape).requests
            share = max((requests.get(name, 0) / room[name] for name in _SHARED if room.get(name)), default=0.0)
            share = self._known[key] = round(share, 4)
        return share


def _pods(node: Node, state: State, share_of: _Shares) -> tuple[BoxPod, ...]:
    here = [
        BoxPod(
            pod.key,
            workload_of(pod).key,
            share_of(pod.shape, node.allocatable),
            owned_by(pod, DAEMONSET),
            bool(pod.deleting),
        )
        for pod in pods_on_node(state, node.name).ordered
        if not is_terminal(pod)
    ]
    return tuple(sorted(here, key=lambda box: (-box.share, box.pod)))
