"""Fold the life of each pod: when it waited, where it ran, when it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod, PodShape, is_provisionable, is_terminal
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.tables.rows import PodRow
from kerf.projections.workload_names import workload_of


class _Life(Struct):
    pod: Pod
    node: str = ""
    waiting: int = 0
    bound: int = 0
    started: int = 0
    ended: int = 0


class PodsFold:
    """Folds pods. `shape` gives the PodShape of a digest."""

    def __init__(self, shape: Callable[[str], PodShape]) -> None:
        self._shape = shape
        self._pods: dict[str, _Life] = {}

    def apply(self, entry: Entry) -> None:
        pod = entry.payload
        if isinstance(pod, Pod):
            life = self._pods.setdefault(pod.uid, _Life(pod))
            life.pod, life.node = pod, pod.node or life.node
            life.waiting = life.waiting or (entry.at if is_provisionable(pod) else 0)
            life.bound = life.bound or (entry.at if pod.node else 0)
            life.started = life.started or pod.started
            life.ended = life.ended or (entry.at if is_terminal(pod) else 0)
        elif isinstance(pod, ObjectGone) and pod.kind == "pod" and pod.key in self._pods:
            life = self._pods[pod.key]
            life.ended = life.ended or entry.at

    def rows(self, until: int, claims: Mapping[str, str]) -> list[PodRow]:
        """Return all pods up to a time (ms since the epoch), in the order in which they were seen. `claims` are
        NodeClaims by the name of their Node."""
        return [self._row(life, until, claims) for life in self._pods.values()]

    def _row(self, life: _Life, until: int, claims: Mapping[str, str]) -> PodRow:
        pod, shape = life.pod, self._shape(life.pod.shape)
        cpu = shape.requests.get("cpu", 0)
        waited = ((life.bound or life.ended or until) - life.waiting) / 1000 if life.waiting else None
        return PodRow(
            uid=pod.uid, pod=pod.key, namespace=pod.namespace, workload=workload_of(pod).key, node=life.node,
            claim=claims.get(life.node, ""), cpu=cpu / 1000, memory=shape.requests.get("memory", 0),
            priority=shape.priority, created=pod.created, waiting=life.waiting, bound=life.bound, started=life.started,
            ended=life.ended, phase=pod.phase, seconds_waited=waited,
        )  # fmt: skip
