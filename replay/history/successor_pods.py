"""Find the pod that replaced another one that had to leave its node."""

from __future__ import annotations

import math

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET
from kerf.engine.record import claim_events as ev
from kerf.replay.history.histories import ClaimHistory, Histories, PodHistory

SUCCESSOR_WITHIN_MS = 60_000
"""A Deployment replaces a pod within this time (ms). A pod that came later was made for something else."""
_GOING_EVENTS = (ev.Tainted, ev.InstanceVanished)
_NODE_BOUND_OWNERS = (f"/{DAEMONSET}/", f"/{NODE_OWNER}/")


def successor_pods(histories: Histories) -> dict[str, str]:
    """Map each pod (uid) that was evicted, or ended with its node, to the pod that replaced it.

    No entry says so. It follows from controllers and times: the first pod to go gets the first pod of the same
    controller that came after. A StatefulSet's pod is found by its name.
    """
    new_pods: dict[str, list[PodHistory]] = {}
    for pod in sorted(histories.pods.values(), key=lambda each: (each.seen, each.first)):
        if pod.owner:
            new_pods.setdefault(pod.owner, []).append(pod)
    successor_of: dict[str, str] = {}
    taken: set[str] = set()
    ended = _pods_ended_with_their_node(histories)
    gone = [pod for pod in histories.pods.values() if pod.owner and (pod.evicted_from or pod.uid in ended)]
    for old in sorted(gone, key=lambda each: (each.left, each.first)):
        same_name = f"/{STATEFULSET}/" in old.owner
        latest = old.left + SUCCESSOR_WITHIN_MS if old.uid in ended and not same_name else math.inf
        for new in new_pods[old.owner]:
            fits = old.left <= new.seen <= latest and new.first > old.first and (new.key == old.key or not same_name)
            if fits and new.uid not in taken:
                taken.add(new.uid)
                successor_of[old.uid] = new.uid
                break
    return successor_of


def _pods_ended_with_their_node(histories: Histories) -> set[str]:
    """Return the pods (uids) that nobody evicted and that ended after their node had to go."""
    since: dict[str, int] = {}
    for claim in histories.claims.values():
        had_to = next((entry.at for entry in claim.events if isinstance(entry.payload, _GOING_EVENTS)), None)
        if claim.node and had_to is not None:
            since[claim.node] = max(had_to, since.get(claim.node, 0))
    pods = (pod for pod in histories.pods.values() if pod.node in since and pod.left and not pod.evicted_from)
    return {pod.uid for pod in pods if pod.left >= since[pod.node]}


def pods_to_move(histories: Histories, claim: ClaimHistory, position: int) -> list[PodHistory]:
    """Return the pods on the claim's node at a position that need another place, by name: all but those of DaemonSets
    and the kubelet's own."""
    on_node = [
        pod
        for pod in histories.pods.values()
        if claim.node and pod.node == claim.node and pod.first <= position and not 0 < pod.gone <= position
    ]
    return sorted(
        (pod for pod in on_node if not any(owner_kind in pod.owner for owner_kind in _NODE_BOUND_OWNERS)),
        key=lambda owner_kind: (owner_kind.key, owner_kind.first),
    )
