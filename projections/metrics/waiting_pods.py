"""How long pods wait: for a plan, for their node, and until they are ready (S-52); and which the latest plan left
(S-175)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod, is_provisionable, is_terminal, is_untried
from kerf.engine.record.decisions import ProvisionResult, Unplaced
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.problem.capacity_buffers import BufferSources, virtual_pods
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.provisioning_window import going_nodes, going_pods, has_active_buffers
from kerf.engine.state.state import State

NO_BUFFERS: Mapping[str, str] = {}
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
    """The pods that have no node yet, or are not ready yet, by uid. `pods` are those that a process begins with, at
    `now`: it sees them then (S-52).

    `unplaced` are the pods that the latest plan has no place for, and `ignored` those that were refused before it, for
    as long as they wait. `buffers` are the uids of CapacityBuffers by their keys: of their pods a plan is, too.
    """

    def __init__(
        self, observe: Observe, pods: Iterable[Pod] = (), now: int = 0, buffers: Mapping[str, str] = NO_BUFFERS
    ) -> None:
        self.by_uid: dict[str, WaitingPod] = {}
        self.buffers = dict(buffers)
        self.unplaced: set[str] = set()
        self.ignored: set[str] = set()
        self._observe = observe
        for pod in pods:
            self._track(pod, now)

    def see(self, pod: Pod, entry: Entry) -> None:
        """Note what a pod is now, and measure what has just ended: its time without a node, its start."""
        waiting = self._track(pod, entry.at)
        if waiting is None:  # it may be one of a node that goes, which a plan is about, too
            if pod.deleting or is_terminal(pod):
                self._decided(pod.uid)
            return
        if pod.node and not waiting.bound:
            waiting.bound = True
            self._observe("pods_bound_duration_seconds", waiting.created, entry)
            self._observe("pods_provisioning_bound_duration_seconds", waiting.planned, entry)
        if pod.ready:
            self._observe("pods_startup_duration_seconds", waiting.created, entry)
            self._observe("pods_provisioning_startup_duration_seconds", waiting.planned, entry)
        if not (is_provisionable(pod) or is_untried(pod)):
            self._decided(pod.uid)
        if pod.ready or pod.deleting or is_terminal(pod):
            del self.by_uid[pod.uid]

    def _track(self, pod: Pod, now: int) -> WaitingPod | None:
        """Return what is known of a pod that waits. One that is bound when it is first seen has not waited for that."""
        waiting = self.by_uid.get(pod.uid)
        if waiting is None:
            if pod.deleting or pod.phase != "Pending":
                return None
            waiting = self.by_uid[pod.uid] = WaitingPod((pod.namespace, pod.name), pod.created, bound=bool(pod.node))
        if not waiting.seen and is_provisionable(pod):
            waiting.seen = now
        return waiting

    def gone(self, uid: str) -> None:
        self.by_uid.pop(uid, None)
        self._decided(uid)

    def buffer_gone(self, key: str) -> None:
        """Forget the pods of a CapacityBuffer: if it was the last one, no plan follows."""
        buffer = self.buffers.pop(key, None)
        for uid in [uid for uid in (*self.unplaced, *self.ignored) if uid.rpartition("-")[0] == buffer]:
            self._decided(uid)

    def _decided(self, uid: str) -> None:
        self.unplaced.discard(uid)
        self.ignored.discard(uid)

    def plan(self, result: ProvisionResult, entry: Entry) -> None:
        """Note which waiting pods a plan has a place for (S-52). The time counts from the first plan with a place,
        until a plan has none. What is refused before planning is decided, too (S-43)."""
        self._leave(result)
        placed = _placed(result)
        left = _pods(result.unplaced) + _pods(result.ignored)
        nowhere = frozenset(left)
        for uid in (*placed, *left):
            pod = self.by_uid.get(uid)
            if pod is None or pod.bound:
                continue
            if not pod.tried:
                pod.tried = entry.at
                self._observe("pods_scheduling_decision_duration_seconds", pod.seen, entry)
            pod.planned = 0 if uid in nowhere else pod.planned or entry.at

    def recall(self, result: ProvisionResult, at: int, others: Collection[str] = ()) -> None:
        """Take up the plan that an earlier process made. What it was about has been measured then; what it left and has
        a node by now is left no more, but for `others` (uids)."""
        self._leave(result)
        for uid in [*self.unplaced, *self.ignored]:
            if uid not in others and (uid not in self.by_uid or self.by_uid[uid].bound):
                self._decided(uid)
        for uid in _pods((*result.unplaced, *result.ignored)):
            if uid in self.by_uid:
                self.by_uid[uid].tried = at
        for uid in _placed(result):
            if uid in self.by_uid:
                self.by_uid[uid].tried = self.by_uid[uid].planned = at

    def _leave(self, result: ProvisionResult) -> None:
        """Those that wait for reserved capacity are only put off (S-175)."""
        failed = [
            group for group in result.unplaced if all(why.code != SchedulingCode.RESERVATION for why in group.reasons)
        ]
        self.unplaced, self.ignored = set(_pods(failed)), set(_pods(result.ignored))


def others_planned_for(state: State) -> set[str]:
    """Return the pods (uids) that plans are about although they do not wait: those of nodes that go, and the virtual
    ones of CapacityBuffers."""
    facts = state.facts
    going = {pod.uid for node, _ in going_nodes(state) for pod in going_pods(state, node)}
    if not has_active_buffers(facts):
        return going
    sources = BufferSources(facts.pod_templates, facts.workloads, state.indexes.blobs.shape)
    return going | {pod.uid for pod in virtual_pods(facts.buffers.values(), sources)[0]}


def _placed(result: ProvisionResult) -> list[str]:
    """Return the pods that a plan has a place for."""
    groups = [claim.pods for claim in result.claims] + [placement.pods for placement in result.placements]
    return [uid for pods in groups for uid in pods]


def _pods(groups: Iterable[Unplaced]) -> list[str]:
    return [uid for group in groups for uid in group.pods]
