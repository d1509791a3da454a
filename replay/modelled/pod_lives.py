"""Fold the life of each pod, and tell those that came and went by themselves from those that were moved."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod, is_terminal, owned_by
from kerf.engine.model.labels import DISRUPTED_TAINT
from kerf.engine.record.decisions import Decision, DeletePod, EvictPod
from kerf.engine.record.observations import ObjectGone
from kerf.engine.state.state import State

_SEEN_WITHIN = 5_000
"""A change is seen within this time (ms), unless a watch has a gap."""


class PodLife(Struct):
    """One pod, as it was first seen. Times are ms since the epoch, 0 for never.

    `there`: it was there at the beginning. `looked` is when the scheduler first said something of it, `left` when it
    began to go, `displaced` that it went because its node did, `ended` when it ended by itself, as `phase`.
    """

    pod: Pod
    came: int
    there: bool = False
    looked: int = 0
    started: int = 0
    left: int = 0
    displaced: bool = False
    ended: int = 0
    phase: str = ""
    gone: int = 0


class PodLives:
    """Folds the lives of all pods but those of DaemonSets and of nodes themselves. Give it each entry before the state
    has it."""

    def __init__(self, start: State, since: int) -> None:
        self.lives: dict[str, PodLife] = {}
        self._evicted: set[str] = set()
        self._shape = start.indexes.blobs.shape
        for _, pod in sorted(start.facts.pods.items()):
            self._seen(pod, since, start)
            if pod.uid in self.lives:
                self.lives[pod.uid].there = True

    def apply(self, payload: Struct, at: int, before: State) -> None:
        if isinstance(payload, Pod):
            self._seen(payload, at, before)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self._gone(payload.key, at, before)
        elif isinstance(payload, Decision):
            self._evicted.update(intent.uid for intent in payload.intents if isinstance(intent, EvictPod | DeletePod))

    def _seen(self, pod: Pod, at: int, state: State) -> None:
        if owned_by(pod, DAEMONSET) or owned_by(pod, NODE_OWNER):
            return
        life = self.lives.get(pod.uid)
        if life is None:
            life = self.lives[pod.uid] = PodLife(pod=pod, came=at)
        if not life.looked and (pod.unschedulable or pod.node):
            life.looked = at
        if not life.started and (pod.started or pod.phase == "Running"):
            life.started = pod.started or at
        if is_terminal(pod) and not life.ended:
            life.ended, life.phase = at, pod.phase
        if (pod.deleting or is_terminal(pod)) and not life.left:
            life.left, life.displaced = self._asked_at(pod, at), self._is_displaced(pod, state)

    def _asked_at(self, pod: Pod, at: int) -> int:
        """When its deletion was asked for: the API writes down when its grace period ends."""
        grace = self._shape(pod.shape).grace if pod.deleting else None
        asked = pod.deleting - grace * 1000 if grace is not None else at
        return asked if 0 <= at - asked <= _SEEN_WITHIN else at

    def _gone(self, uid: str, at: int, state: State) -> None:
        life = self.lives.get(uid)
        if life is None:
            return
        life.gone = at
        if not life.left:
            life.left, life.displaced = at, self._is_displaced(state.facts.pods.get(uid, life.pod), state)

    def _is_displaced(self, pod: Pod, state: State) -> bool:
        """Whether it goes because its node goes: it was evicted, or its node is lost. Beside another controller, whose
        evictions the record does not have, because its node is on its way out."""
        if pod.uid in self._evicted:
            return True
        if not pod.node or pod.phase == "Succeeded":
            return False
        node = state.facts.nodes.get(pod.node)
        if node is None or not node.ready:
            return True
        theirs = state.facts.settings.observe or state.facts.imported is not None
        return theirs and (bool(node.deleting) or any(taint.key == DISRUPTED_TAINT for taint in node.taints))


def in_order(lives: Iterable[PodLife]) -> list[PodLife]:
    """Return lives by the time at which they came."""
    return sorted(lives, key=lambda life: (not life.there, life.came, life.pod.created, life.pod.key, life.pod.uid))
