"""Fold which share of each node the pods of each workload ask for, and how long."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources, is_terminal
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.workload_names import workload_of

SHARED = ("cpu", "memory")
"""A pod's share of a node is the mean of its shares of these."""


class Use(Struct, frozen=True):
    """A pod of a workload had this share (0 to 1) of a node. `until` is 0 while it has it. Times are ms since the
    epoch."""

    node: str
    workload: str
    since: int
    until: int
    share: float


class UsageFold:
    """Folds the use of nodes. `shape` gives the PodShape of a digest."""

    reads: frozenset[type[Struct]] = frozenset({Pod, ObjectGone, ev.Launched, ev.Adopted, ev.Registered})

    def __init__(self, shape: Callable[[str], PodShape]) -> None:
        self._shape = shape
        self._open: dict[str, tuple[Pod, int]] = {}
        self._over: list[Use] = []
        self._allocatable: dict[str, Resources] = {}  # by claim
        self._claims: dict[str, str] = {}  # by node

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Pod):
            self._pod(payload, entry.at)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self._end(payload.key, entry.at)
        elif isinstance(payload, ev.Launched | ev.Adopted):
            self._allocatable[payload.claim] = payload.allocatable
            if isinstance(payload, ev.Adopted) and payload.node:
                self._claims[payload.node] = payload.claim
        elif isinstance(payload, ev.Registered):
            self._claims[payload.node] = payload.claim

    def uses(self) -> list[tuple[str, Use]]:
        """Return each use with its claim, those of today last. Pods on nodes that are not kerf's are left out."""
        open_uses = [self._use(pod, since, 0) for pod, since in self._open.values()]
        return [(self._claims[use.node], use) for use in (*self._over, *open_uses) if use.node in self._claims]

    def _pod(self, pod: Pod, at: int) -> None:
        known = self._open.get(pod.uid)
        if known is not None and (is_terminal(pod) or pod.node != known[0].node):
            self._end(pod.uid, at)
            known = None
        if known is None and pod.node and not is_terminal(pod):
            self._open[pod.uid] = pod, at

    def _end(self, uid: str, at: int) -> None:
        found = self._open.pop(uid, None)
        if found is not None:
            self._over.append(self._use(*found, at))

    def _use(self, pod: Pod, since: int, until: int) -> Use:
        room = self._allocatable.get(self._claims.get(pod.node, ""), {})
        requests = self._shape(pod.shape).requests if room else {}
        shares = [requests.get(name, 0) / room[name] for name in SHARED if room.get(name)]
        share = sum(shares) / len(shares) if shares else 0.0
        return Use(pod.node, workload_of(pod).key, since, until, share)
