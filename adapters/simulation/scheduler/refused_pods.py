"""What the scheduler remembers of pods that found no place, so that later passes ask few nodes again.

It is what queueing hints are in kube-scheduler. A node that refused a pod refuses it, and each equal one, until
something makes room there. Two things need more care. What is promised to a pod does not count against it, so each pod
asks its nominated node itself. And where a place depends on other pods, those anywhere may open it: then all nodes are
asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kerf.adapters.simulation.cluster.apiserver import Change
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, is_terminal


class Refusal(NamedTuple):
    """All nodes refused a pod. `nominated`: the node that it was nominated for; `moment`: of the latest easing before;
    `version`: of what its place depends on elsewhere."""

    nominated: str
    moment: int
    version: int


class RefusedPods:
    """Remembers pods that all nodes refused, and what may have opened a place since."""

    def __init__(self, shapes: Mapping[str, PodShape]) -> None:
        """`shapes`: those of all pods so far, by digest. More may come."""
        self._shapes = shapes
        self._moment = 0
        self._eased: dict[str, int] = {}  # node → the moment at which something made room there; the latest is last
        self._moves = self._departures = 0  # changes of where pods are; those of them by which a pod left
        self._by_kin: dict[tuple[str, str], Refusal] = {}  # by namespace and shape
        self._by_pod: dict[str, Refusal] = {}
        self._seeks: dict[str, bool] = {}
        self._shunned = (0, False)

    # ── what happens ────────────────────────────────────────────────────────────────────────────────────────

    def ease(self, node: str) -> None:
        """Note that something may have made room on a node."""
        self._moment += 1
        self._eased.pop(node, None)
        self._eased[node] = self._moment

    def changed(self, change: Change) -> None:
        """Note what may open places on other nodes: where pods are, what domains there are, labels of namespaces."""
        was: object
        now: object
        if change.kind == "pod":
            was, now = _place(change.old), _place(change.new)
            if change.new is None or now is not None:
                self._by_pod.pop(change.key, None)
        elif change.kind in ("node", "namespace"):
            was, now = _domains(change.old), _domains(change.new)
        else:
            return
        self._moves += was != now
        self._departures += was is not None and was != now

    # ── who was refused ─────────────────────────────────────────────────────────────────────────────────────

    def refused(self, pod: Pod, *, alone: bool) -> None:
        """Remember that all nodes refuse a pod. `alone`: others of its namespace and shape may be taken."""
        refusal = self._by_pod[pod.uid] = Refusal(pod.nominated, self._moment, self._version(pod.shape))
        if not alone:
            self._by_kin[pod.namespace, pod.shape] = refusal

    def open_to(self, pod: Pod, *, alone: bool) -> list[str] | None:
        """The nodes that may take a pod by now, be they there or not. None if any may."""
        own = self._by_pod.get(pod.uid)
        known = own if alone else self._by_kin.get((pod.namespace, pod.shape))
        version = self._version(pod.shape)
        if known is None or known.version != version:
            return None
        nodes = []
        for node in reversed(self._eased):
            if self._eased[node] <= known.moment:
                break
            nodes.append(node)
        if pod.nominated and (
            own is None
            or (own.nominated, own.version) != (pod.nominated, version)
            or self._eased.get(pod.nominated, 0) > own.moment
        ):
            nodes.append(pod.nominated)
        return nodes

    def _version(self, digest: str) -> int:
        """The version of what a place for such pods depends on beside the node: where pods are; where pods were, if
        pods may keep others off; or nothing."""
        if digest not in self._seeks:
            self._seeks[digest] = _seeks_pods(self._shapes[digest])
        if self._seeks[digest]:
            return self._moves
        if self._shunned[0] != len(self._shapes):
            self._shunned = len(self._shapes), any(shape.anti_affinity for shape in self._shapes.values())
        return self._departures if self._shunned[1] else 0


def _seeks_pods(shape: PodShape) -> bool:
    """Whether pods that come somewhere may open a place for such a pod."""
    return required_affinity(shape) or any(c.when_unsatisfiable == "DoNotSchedule" for c in shape.spread)


def required_affinity(shape: PodShape) -> bool:
    return any(not term.weight for term in shape.affinity)


def _place(pod: object) -> tuple[str, str, str, bool] | None:
    """Where rules about other pods see a pod, and as what."""
    if not isinstance(pod, Pod) or not pod.node or is_terminal(pod):
        return None
    return pod.node, pod.namespace, pod.shape, bool(pod.deleting)


def _domains(item: object) -> object:
    """What rules about other pods see of a node or namespace."""
    return (item.labels, item.taints) if isinstance(item, Node) else item
