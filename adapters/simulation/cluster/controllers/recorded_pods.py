"""The controllers of workloads that are known by their pods alone: as many replicas as there are to be, and pods that
stand for themselves.

A record knows pods and who made them, not the objects that made them. So what comes in place of a pod looks as the
pods did that came in the record, and has their names.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.engine.model.kubernetes.pods import Pod, is_active, is_terminal

Victims = Callable[[list[Pod]], list[Pod]]


class ReplicaGroup:
    """Pods that stand for each other. `coming` are those that came in the record and have not come here, in order."""

    def __init__(self, owner_uid: str, owner_name: str, coming: tuple[Pod, ...]) -> None:
        self.owner_uid, self.owner_name, self.replicas = owner_uid, owner_name, 0
        self._coming = list(reversed(coming))
        self._last = coming[-1]

    def next(self) -> tuple[Pod, bool]:
        """Return the pod to make next, and whether it needs another name."""
        return (self._coming.pop(), False) if self._coming else (self._last, True)


class Slot(Struct):
    """A pod that stands for itself, and what is to become of it (see `PodSlot`'s arguments)."""

    pod: Pod
    runs: int
    phase: str
    kept: int
    again: bool
    named: bool
    uid: str
    open: bool = True


class RecordedPods:
    """All such workloads."""

    def __init__(self, api: ApiServer, clock: Clock, rng: SeededRandom, victims: Victims) -> None:
        """`victims` orders replicas as a ReplicaSet gives them up."""
        self._api, self._clock, self._rng, self._victims = api, clock, rng, victims
        self._groups: dict[str, ReplicaGroup] = {}
        self._of_owner: dict[str, list[str]] = {}
        self._slots: dict[str, Slot] = {}
        self._slot_of: dict[str, str] = {}  # pod → slot
        self._dirty: dict[str, None] = {}
        self._made = 0
        api.listen(self._changed)

    def replicas_of(self, owner: str) -> int | None:
        """Return how many pods an owner is to have, or None if nothing is known of it."""
        groups = self._of_owner.get(owner)
        if groups is not None:
            return sum(self._groups[group].replicas for group in groups)
        slots = [slot for slot in self._slots.values() if slot.pod.owner is not None and slot.pod.owner.uid == owner]
        return sum(slot.open for slot in slots) if slots else None

    # ── replicas ────────────────────────────────────────────────────────────────────────────────────────────

    def add_group(self, name: str, group: ReplicaGroup) -> None:
        self._groups[name] = group
        self._of_owner.setdefault(group.owner_uid, []).append(name)

    def scale(self, name: str, replicas: int) -> None:
        self._groups[name].replicas = replicas
        self._wake(name)

    def _wake(self, name: str) -> None:
        if not self._dirty:
            self._clock.after(0, "workload controllers", self._work)
        self._dirty[name] = None

    def _work(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for name in dirty:
            self._reconcile(self._groups[name])

    def _reconcile(self, group: ReplicaGroup) -> None:
        alive = [
            pod for pod in self._api.pods_of(group.owner_uid)
            if is_active(pod) and pod.owner is not None and pod.owner.name == group.owner_name
        ]  # fmt: skip
        for _ in range(group.replicas - len(alive)):
            pod, again = group.next()
            self._create(pod, renamed=again or self._api.pod_named(pod.namespace, pod.name) is not None)
        if len(alive) > group.replicas:
            self._api.delete_pods(self._victims(alive)[: len(alive) - group.replicas])

    # ── pods that stand for themselves ──────────────────────────────────────────────────────────────────────

    def come(self, name: str, slot: Slot) -> None:
        """Let a pod come, or take care of one that is there already."""
        if name in self._slots or (slot.pod.owner is None and self._named(slot)):
            return
        self._slots[name] = slot
        there = self._api.pods.get(slot.uid)
        if there is None:
            self._fill(name, slot, renamed=False)
            return
        self._slot_of[slot.uid] = name
        if there.phase == "Running":
            self._ends_later(there, slot)

    def _named(self, slot: Slot) -> bool:
        known = self._api.pod_named(slot.pod.namespace, slot.pod.name)
        return known is not None and known.uid != slot.uid

    def leave(self, name: str) -> None:
        """Take the pod away for good."""
        slot = self._slots.get(name)
        if slot is None or not slot.open:
            return
        slot.open = False
        pod = self._api.pods.get(slot.uid)
        if pod is not None and not pod.deleting:
            self._api.delete_pod(pod)

    def _fill(self, name: str, slot: Slot, *, renamed: bool) -> None:
        pod = self._create(slot.pod, renamed=renamed, named=slot.named)
        slot.uid = pod.uid
        self._slot_of[pod.uid] = name

    def _ends_later(self, pod: Pod, slot: Slot) -> None:
        if slot.runs:
            ends = max(self._clock.now, (pod.started or self._clock.now) + slot.runs)
            self._clock.at(ends, "pod has done its work", lambda: self._done(pod.uid, slot))

    def _done(self, uid: str, slot: Slot) -> None:
        pod = self._api.pods.get(uid)
        if pod is None or pod.deleting or is_terminal(pod):
            return
        slot.open = False
        self._api.put(replace(pod, phase=slot.phase or "Succeeded", ready=False))
        if slot.kept:
            self._clock.after(slot.kept, "finished pod is removed", lambda: self._forget(uid))

    def _forget(self, uid: str) -> None:
        pod = self._api.pods.get(uid)
        if pod is not None:
            self._api.remove(pod)

    # ── both ────────────────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        pod = change.new if change.new is not None else change.old
        if not isinstance(pod, Pod):
            return
        if pod.owner is not None:
            for group in self._of_owner.get(pod.owner.uid, ()):
                self._wake(group)
        name = self._slot_of.get(pod.uid)
        if name is not None:
            self._slot_changed(name, pod, change)

    def _slot_changed(self, name: str, pod: Pod, change: Change) -> None:
        slot = self._slots[name]
        old = change.old if isinstance(change.old, Pod) else None
        if change.new is None:
            del self._slot_of[pod.uid]
        elif pod.phase == "Running" and (old is None or old.phase != "Running"):
            self._ends_later(pod, slot)
        gone = change.new is None or (bool(pod.deleting) and not slot.named)
        if gone and slot.open and slot.again and slot.uid == pod.uid:
            slot.uid = ""
            self._clock.after(0, "workload controllers", lambda: self._refill(name))
        elif gone and slot.open and not slot.again:
            slot.open = False

    def _refill(self, name: str) -> None:
        slot = self._slots[name]
        if slot.open and not slot.uid:
            self._fill(name, slot, renamed=True)

    def _create(self, pod: Pod, *, renamed: bool, named: bool = False) -> Pod:
        """Make a pod as it came in the record. A renamed one has a uid of its own, and unless `named` another name."""
        self._made += 1
        name = pod.name
        if renamed and not named:
            name = f"{pod.name.rpartition('-')[0] or pod.name}-{self._rng.suffix(5, 'again', pod.uid, self._made)}"
        uid = self._rng.uid("again", pod.namespace, name, self._made) if renamed else pod.uid
        made = Pod(
            uid=uid,
            namespace=pod.namespace,
            name=name,
            shape=self._api.admit(self._api.shapes[pod.shape]),
            created=self._clock.now,
            owner=pod.owner,
            do_not_disrupt=pod.do_not_disrupt,
            deletion_cost=pod.deletion_cost,
        )
        self._api.put(made)
        return made
