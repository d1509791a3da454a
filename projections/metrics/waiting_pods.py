"""How long pods wait: for a plan, for their node, and until they are ready (S-52)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod, is_provisionable
from kerf.engine.record.entries import Entry

Observe = Callable[[str, int, Entry], None]
"""Takes a metric's name, the time since when (0 for not at all), and the entry at which the waiting ended."""


class WaitingPod(Struct):
    """A pod that has no node yet or is not ready yet. Times are in ms since the epoch, 0 for not yet (S-52)."""

    key: tuple[str, str]  # namespace, name
    created: int
    seen: int = 0  # when it was first one to plan for
    tried: int = 0  # when a plan first was about it
    planned: int = 0  # since when plans have a place for it
    bound: bool = False


class WaitingPods:
    """The pods that have no node yet, or are not ready yet, by uid."""

    def __init__(self, observe: Observe) -> None:
        self.by_uid: dict[str, WaitingPod] = {}
        self._observe = observe

    def see(self, pod: Pod, entry: Entry) -> None:
        """Note what a pod is now, and measure what has just ended: its time without a node, its start."""
        waiting = self.by_uid.get(pod.uid)
        if waiting is None:
            if pod.node or pod.deleting or pod.phase != "Pending":
                return
            waiting = self.by_uid[pod.uid] = WaitingPod((pod.namespace, pod.name), pod.created)
        if not waiting.seen and is_provisionable(pod):
            waiting.seen = entry.at
        if pod.node and not waiting.bound:
            waiting.bound = True
            self._observe("pods_bound_duration_seconds", waiting.created, entry)
            self._observe("pods_provisioning_bound_duration_seconds", waiting.planned, entry)
        if pod.ready:
            self._observe("pods_startup_duration_seconds", waiting.created, entry)
            self._observe("pods_provisioning_startup_duration_seconds", waiting.planned, entry)
        if pod.ready or pod.deleting or pod.phase in ("Succeeded", "Failed"):
            del self.by_uid[pod.uid]

    def plan(self, placed: Sequence[str], left: Sequence[str], entry: Entry) -> None:
        """Note which waiting pods a plan has a place for (S-52). The time counts from the first plan with a place,
        until a plan has none."""
        nowhere = frozenset(left)
        for uid in (*placed, *left):
            pod = self.by_uid.get(uid)
            if pod is None or pod.bound:
                continue
            if not pod.tried:
                pod.tried = entry.at
                self._observe("pods_scheduling_decision_duration_seconds", pod.seen, entry)
            pod.planned = 0 if uid in nowhere else pod.planned or entry.at
