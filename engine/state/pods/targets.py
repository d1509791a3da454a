"""What each pod without a place of its own waits for: the claim or Node that a plan has put it on.

`facts.targets` has it by pod, `indexes.waiting_for` the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.state.state import State


def expect(state: State, target: str, pods: Iterable[str]) -> None:
    """These pods (uids) wait for this claim or Node, and for no other."""
    for uid in pods:
        if uid in state.facts.pods:
            expect_no_more(state, uid)
            state.facts.targets[uid] = target
            state.indexes.waiting_for.setdefault(target, {})[uid] = None


def expect_no_more(state: State, uid: str) -> str:
    """The pod waits for nothing. Returns what it waited for, "" for nothing."""
    target = state.facts.targets.pop(uid, "")
    if target:
        state.indexes.waiting_for.get(target, {}).pop(uid, None)
    return target


def exchange_places(state: State, pod: Pod) -> str:
    """`pod` is bound to a Node that a pod like it waits for: that one waits for the claim which `pod` waited for from
    now on. Returns this claim, "" if nothing changes.

    kube-scheduler tries pods while Nodes of some of them are closed still, so it binds these to others. Without the
    exchange the other pod would find its place taken, and perhaps take that of a third one (KEP-5278).
    """
    facts, indexes = state.facts, state.indexes
    left = facts.targets.get(pod.uid, "")
    taken = indexes.claim_by_node.get(pod.node, pod.node)
    claim = facts.claims.get(left)
    if taken == left or claim is None or claim.state not in STEADY:
        return ""
    waiting = [facts.pods[uid] for uid in indexes.waiting_for.get(taken, {}) if uid in facts.pods]
    alike = [
        other
        for other in waiting
        if (other.namespace, other.shape) == (pod.namespace, pod.shape) and not (other.node or other.deleting)
    ]
    if not alike:
        return ""
    last = max(alike, key=lambda other: (other.created, other.arrival, other.uid))  # those before it find places still
    expect(state, left, (last.uid,))
    return left
