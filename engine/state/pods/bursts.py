"""Bursts: many pods that wait at once, planned for in one pass although kube-scheduler has not come to all of them yet.

kube-scheduler refuses some hundred pods a second; a plan for as many takes a fraction of that time. Nodes for half of a
burst, and later for the other half, cost more than nodes for all of it. So there is a burst once `batch_enough` pods
have come to wait since the latest pass. When the scheduler then refuses one:

- The window closes one idle time after it opened (S-55), or as soon as no more pods come.
- The pass also plans for pods that the scheduler has not tried yet. Where such a pod fits on a node in service, that
  is left to the scheduler.
- Left out are pods that have waited for long, which the scheduler may be holding back, and pods whose priority is above
  that of all refused ones, which may preempt others.
"""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.state.pods.nominations import waits_untried
from kerf.engine.state.provisioning_window import in_service, open_window
from kerf.engine.state.state import Facts, State


def pod_refused(state: State, pod: Pod, old: Pod | None, at: int, *, otherwise: bool) -> None:
    """The scheduler says of a pod that it fits nowhere: news, unless it was refused before, or was planned for before
    and its node is on the way (S-56). `otherwise`: it asks for something else than before."""
    facts, indexes = state.facts, state.indexes
    was_known = pod.uid in indexes.pending
    indexes.pending[pod.uid] = None
    if old is None or not old.unschedulable:
        facts.refused_at = at
    misplaced = old is not None and old.untried and in_service(facts, facts.targets.get(pod.uid, ""))
    if was_known and not misplaced and not otherwise:
        return
    _note_arrival(facts, pod, at)
    open_window(facts, at)


def arrived(state: State, pod: Pod, at: int) -> None:
    """A pod of which the scheduler has said nothing yet."""
    facts = state.facts
    if pod.uid in state.indexes.pending:
        return
    _note_arrival(facts, pod, at)
    if not facts.batch_opened and is_burst(facts) and at - facts.refused_at < facts.settings.batch_max:
        open_window(facts, at)


def _note_arrival(facts: Facts, pod: Pod, at: int) -> None:
    if facts.settings.batch_enough and not facts.settings.observe and pod.uid not in facts.arrived:
        facts.arrived[pod.uid] = None
        facts.arrived_at = at


def is_burst(facts: Facts) -> bool:
    return 0 < facts.settings.batch_enough <= len(facts.arrived)


def untried_pods(state: State, now: int) -> list[Pod]:
    """Those that the next pass is about, though the scheduler has not refused them."""
    facts, shape = state.facts, state.indexes.blobs.shape
    if not is_burst(facts):
        return []
    refusals = {facts.pods[uid].shape for uid in state.indexes.pending if facts.pods[uid].unschedulable}
    highest = max((shape(digest).priority for digest in refusals), default=None)
    if highest is None:
        return []
    young = now - facts.settings.batch_max
    found = (facts.pods[uid] for uid in facts.arrived if uid not in state.indexes.pending)
    return [pod for pod in found if pod.created > young and shape(pod.shape).priority <= highest]


def planned(state: State) -> None:
    """After a pass: untried pods with a place by the plan wait from now on like those that were refused."""
    facts, pending = state.facts, state.indexes.pending
    for uid in [uid for uid in pending if not facts.pods[uid].unschedulable and not is_planned(state, uid)]:
        del pending[uid]
    for uid in (*facts.targets, *facts.rest):
        if uid in facts.pods and waits_untried(facts, facts.pods[uid]):
            pending[uid] = None


def is_planned(state: State, uid: str) -> bool:
    """Whether the latest plan has a place for the pod, or the next pass goes on with it."""
    return uid in state.facts.targets or uid in state.indexes.rest
