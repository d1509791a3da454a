"""Measure how long pods waited for a node: from their creation until they were bound, or were gone."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod, is_terminal, owned_by
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.workload_names import workload_of


class Wait(Struct, kw_only=True):
    """A pod that was seen without a node. `until` is 0 while it waits. Times are ms since the epoch; `position` is
    where it was first seen, `shape` the digest of its PodShape."""

    pod: str
    namespace: str
    workload: str
    shape: str
    position: int
    since: int
    until: int = 0

    def waited(self, now: int) -> int:
        """Return how long it waited up to `now`, in ms."""
        return max(0, (self.until or now) - self.since)


class WaitsFold:
    """Folds the waits of pods. Those of DaemonSets and of nodes are left out: no other node would do."""

    reads: frozenset[type[Struct]] = frozenset({Pod, ObjectGone})

    def __init__(self) -> None:
        self.waits: list[Wait] = []
        self._waiting: dict[str, Wait] = {}

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Pod):
            self._seen(payload, entry)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self._over(payload.key, entry)

    def _seen(self, pod: Pod, entry: Entry) -> None:
        if pod.node or pod.deleting or is_terminal(pod):
            self._over(pod.uid, entry)
        elif pod.uid not in self._waiting and not owned_by(pod, DAEMONSET) and not owned_by(pod, NODE_OWNER):
            wait = Wait(
                pod=pod.key,
                namespace=pod.namespace,
                workload=workload_of(pod).key,
                shape=pod.shape,
                position=entry.position,
                since=pod.created or entry.at,
            )
            self._waiting[pod.uid] = wait
            self.waits.append(wait)

    def _over(self, uid: str, entry: Entry) -> None:
        wait = self._waiting.pop(uid, None)
        if wait is not None:
            wait.until = entry.at
