"""The fold of pods: which wait to be provisioned for, which are bound where, and what leaves a node."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, is_active, is_reschedulable, is_terminal, owned_by
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.entries import Entry
from kerf.engine.state.objects.daemonsets import daemon_pod_seen
from kerf.engine.state.pods import bursts
from kerf.engine.state.pods.nominations import note_nomination, waits, waits_untried
from kerf.engine.state.pods.targets import exchange_places, expect_no_more
from kerf.engine.state.provisioning_window import (
    has_active_buffers,
    is_going,
    nomination_period,
    note_disruption_change,
    open_window,
)
from kerf.engine.state.state import State

POD_EVENT_GRAIN = 10_000  # D-57: a pod event within 10 s of the stored one changes nothing


def pod_seen(state: State, pod: Pod, entry: Entry) -> None:
    facts, indexes = state.facts, state.indexes
    uid = pod.uid
    old = facts.pods.get(uid)
    facts.pods[uid] = pod
    indexes.on_nodes.pop(pod.node, None)
    if old is not None:
        indexes.on_nodes.pop(old.node, None)
    note_nomination(state, pod)
    daemon_pod_seen(state, pod, entry)
    if pod.node or (old is not None and old.node):
        _bound(state, old, pod, entry)
    if pod.unschedulable and waits(facts, pod):
        otherwise = old is not None and _asks_otherwise(state, old, pod)
        bursts.pod_refused(state, pod, old, entry.at, otherwise=otherwise)
        return
    if pod.untried and waits_untried(facts, pod):
        bursts.arrived(state, pod, entry.at)
        if uid not in indexes.pending or bursts.is_planned(state, uid):
            return
    facts.arrived.pop(uid, None)
    if uid in indexes.pending:
        _settled(state, uid, entry)


def _asks_otherwise(state: State, old: Pod, new: Pod) -> bool:
    """A claim may turn out not to be needed (S-195)."""
    shape = state.indexes.blobs.shape
    return old.shape != new.shape and shape(old.shape).resource_claims != shape(new.shape).resource_claims


def _bound(state: State, old: Pod | None, pod: Pod, entry: Entry) -> None:
    indexes = state.indexes
    was = old.node if old is not None and not is_terminal(old) else ""
    now = pod.node if not is_terminal(pod) else ""
    if was != now:
        if was:
            indexes.pods_by_node.get(was, {}).pop(pod.uid, None)
            _expected_no_more(state, pod.uid, entry)
        if now:
            state.facts.launched_for.pop(pod.uid, None)
            if not was and (left := exchange_places(state, pod)):
                indexes.touched[left] = entry.position
            indexes.pods_by_node.setdefault(now, {})[pod.uid] = None
        if has_active_buffers(state.facts):  # a pod has taken room that a buffer keeps, or given some back
            open_window(state.facts, entry.at)
    if was != now or (old is not None and _hold(old) != _hold(pod)):
        note_disruption_change(state.facts, entry.at)
    freed = was != now or (old is not None and old.do_not_disrupt != pod.do_not_disrupt)
    if freed and is_going(state, pod.node) and is_reschedulable(pod):  # D-159: no plan may have a place for it
        open_window(state.facts, entry.at)
    name = indexes.claim_by_node.get(pod.node)
    if name is not None:
        indexes.touched[name] = entry.position
        changed = was != now or (old is not None and old.deleting != pod.deleting)
        if changed:
            _pod_event(state.facts.claims[name], pod, entry.at)


def _hold(pod: Pod) -> tuple[object, ...]:
    """What decides whether a pod holds its node, and what it costs to move it."""
    return pod.deleting, pod.do_not_disrupt, pod.deletion_cost


def _pod_event(claim: NodeClaim, pod: Pod, at: int) -> None:
    """Restart the quiet time of a claim's node: a pod was bound, ended or was deleted there (D-57)."""
    if not owned_by(pod, DAEMONSET) and at - claim.last_pod_event >= POD_EVENT_GRAIN:
        claim.last_pod_event = at


def _settled(state: State, uid: str, entry: Entry) -> None:
    """A pod no longer waits: bound, gone, gated or taken by somebody else."""
    indexes = state.indexes
    del indexes.pending[uid]
    going = indexes.going or indexes.deleted_nodes
    if not indexes.pending and not going and not has_active_buffers(state.facts):
        state.facts.batch_opened = state.facts.batch_last = state.facts.retry_at = 0  # S-51: nobody is left to plan for
    _expected_no_more(state, uid, entry)


def _expected_no_more(state: State, uid: str, entry: Entry) -> None:
    """The claim that a plan put this pod on need not wait for it any more."""
    target = expect_no_more(state, uid)
    if target:
        state.indexes.touched[target] = entry.position


def pod_gone(state: State, uid: str, entry: Entry) -> None:
    facts, indexes = state.facts, state.indexes
    pod = facts.pods.pop(uid, None)
    if pod is None:
        return
    indexes.on_nodes.pop(pod.node, None)
    facts.nominations.pop(uid, None)
    facts.arrived.pop(uid, None)
    facts.launched_for.pop(uid, None)
    if pod.node:
        note_disruption_change(facts, entry.at)
        indexes.pods_by_node.get(pod.node, {}).pop(uid, None)
        name = indexes.claim_by_node.get(pod.node)
        if name is not None:
            indexes.touched[name] = entry.position
            if is_active(pod):  # it ended without a grace period: nobody saw it terminate
                _pod_event(facts.claims[name], pod, entry.at)
    claim = facts.claims.get(facts.targets.get(uid, ""))
    if claim is not None:  # D-8: the pod that takes its place shows in a moment
        claim.nominated_until = max(claim.nominated_until, entry.at + nomination_period(facts.settings))
    if uid in indexes.pending:
        _settled(state, uid, entry)
    else:
        _expected_no_more(state, uid, entry)
