"""How the fold takes status.nominatedNodeName: kerf's own nominations hold nobody back (KEP-5278).

kerf writes a planned node's name into the pods that its plan put there, so that kube-scheduler follows the plan. Such a
pod stays provisionable: the node may never come. A nomination by preemption means that the pod has its place (S-40).
They are told apart when they are seen, by whether the plan has the pod on that node, or had it there at its launch.
"""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Pod, is_provisionable, is_untried
from kerf.engine.nodeclaim.state_table import LAUNCHED, REGISTERED
from kerf.engine.state.state import Facts, State


def note_nomination(state: State, pod: Pod) -> None:
    """Keeps `facts.nominations` true as a pod is seen."""
    facts = state.facts
    if not pod.nominated or pod.node:
        facts.nominations.pop(pod.uid, None)
    elif facts.nominations.get(pod.uid) != pod.nominated:
        if _is_ours(state, pod.uid, pod.nominated):
            facts.nominations[pod.uid] = pod.nominated
        else:
            facts.nominations.pop(pod.uid, None)


def waits(facts: Facts, pod: Pod) -> bool:
    """Whether a pod waits for a place (S-40); kerf's own nomination counts as none."""
    return is_provisionable(_without_ours(facts, pod))


def waits_untried(facts: Facts, pod: Pod) -> bool:
    """The same of a pod of which the scheduler has said nothing yet."""
    return is_untried(_without_ours(facts, pod))


def is_contested(state: State) -> bool:
    """Whether a pod may take the place that is planned for another: not where all that waits is alike, and its volumes
    or devices tie none of it to one node rather than another."""
    pods, first = state.facts.pods, None
    for uid in chain(*state.indexes.waiting_for.values(), state.indexes.pending):
        if uid not in pods:
            continue
        kind = pods[uid].namespace, pods[uid].shape
        first = first or kind
        if kind != first:
            return True
    shape = state.indexes.blobs.shape(first[1]) if first else None
    return shape is not None and bool(shape.volumes or shape.resource_claims)


def _without_ours(facts: Facts, pod: Pod) -> Pod:
    ours = pod.nominated and facts.nominations.get(pod.uid) == pod.nominated
    return replace(pod, nominated="") if ours else pod


def _is_ours(state: State, uid: str, node: str) -> bool:
    """Whether the plan put this pod on the claim of this node, or did so when the claim was launched: what kerf wrote
    may be seen after another plan. A Node may have its instance's name from the start (KWOK)."""
    facts, indexes = state.facts, state.indexes
    claim = facts.claims.get(indexes.claim_by_node.get(node) or indexes.claim_by_instance.get(node, ""))
    if claim is None:
        return False
    launched_for = claim.state in (LAUNCHED, REGISTERED) and uid in claim.pods  # later it may be one by preemption
    return launched_for or facts.targets.get(uid) == claim.name
