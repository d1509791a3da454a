"""Which pod came in the place of one that had to leave its node: made by the same controller, after it began to go."""

from __future__ import annotations

import math

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET
from kerf.engine.record import claim_events as ev
from kerf.replay.history.histories import ClaimLinks, Links, PodLinks

AT_ONCE = 60_000
"""So soon after a pod of a Deployment or the like another takes its place, in ms; a later one was made for something
else."""
_HAD_TO_GO = (ev.Tainted, ev.InstanceVanished)
_OF_NODES = (f"/{DAEMONSET}/", f"/{NODE_OWNER}/")


def successors(links: Links) -> dict[str, str]:
    """Pod (uid) that was evicted, or ended with its node → the pod that took its place. Nobody records that; it is read
    from owners and times: the first to go gets the first that came after. A StatefulSet's pod is found by its name."""
    came: dict[str, list[PodLinks]] = {}
    for pod in sorted(links.pods.values(), key=lambda each: (each.seen, each.first)):
        if pod.owner:
            came.setdefault(pod.owner, []).append(pod)
    found: dict[str, str] = {}
    taken: set[str] = set()
    ended = _ended_with_their_node(links)
    gone = [pod for pod in links.pods.values() if pod.owner and (pod.evicted_from or pod.uid in ended)]
    for old in sorted(gone, key=lambda each: (each.left, each.first)):
        same_name = f"/{STATEFULSET}/" in old.owner
        latest = old.left + AT_ONCE if old.uid in ended and not same_name else math.inf
        for new in came[old.owner]:
            fits = old.left <= new.seen <= latest and new.first > old.first and (new.key == old.key or not same_name)
            if fits and new.uid not in taken:
                taken.add(new.uid)
                found[old.uid] = new.uid
                break
    return found


def _ended_with_their_node(links: Links) -> set[str]:
    """The pods (uids) that nobody evicted and that went after their node had to go."""
    since: dict[str, int] = {}
    for claim in links.claims.values():
        had_to = next((entry.at for entry in claim.events if isinstance(entry.payload, _HAD_TO_GO)), None)
        if claim.node and had_to is not None:
            since[claim.node] = max(had_to, since.get(claim.node, 0))
    pods = (pod for pod in links.pods.values() if pod.node in since and pod.left and not pod.evicted_from)
    return {pod.uid for pod in pods if pod.left >= since[pod.node]}


def to_leave(links: Links, claim: ClaimLinks, position: int) -> list[PodLinks]:
    """The pods that were on the claim's node at a position and that no DaemonSet or kubelet keeps there, by name."""
    there = [
        pod
        for pod in links.pods.values()
        if claim.node and pod.node == claim.node and pod.first <= position and not 0 < pod.gone <= position
    ]
    return sorted(
        (pod for pod in there if not any(each in pod.owner for each in _OF_NODES)),
        key=lambda each: (each.key, each.first),
    )
