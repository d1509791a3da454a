"""Which pod came in the place of one that had to leave its node: made by the same controller, after it began to go."""

from __future__ import annotations

from kerf.engine.model.pods import DAEMONSET, NODE_OWNER, STATEFULSET
from kerf.replay.links import ClaimLinks, Links, PodLinks

_OF_NODES = (f"/{DAEMONSET}/", f"/{NODE_OWNER}/")


def successors(links: Links) -> dict[str, str]:
    """Evicted pod (uid) → the pod that took its place. Nobody records that; it is read from owners and times: the
    first to go gets the first that came after. A StatefulSet's pod is found by its name."""
    came: dict[str, list[PodLinks]] = {}
    for pod in sorted(links.pods.values(), key=lambda each: (each.seen, each.first)):
        if pod.owner:
            came.setdefault(pod.owner, []).append(pod)
    found: dict[str, str] = {}
    taken: set[str] = set()
    evicted = [pod for pod in links.pods.values() if pod.evicted_from and pod.owner]
    for old in sorted(evicted, key=lambda each: (each.left, each.first)):
        same_name = f"/{STATEFULSET}/" in old.owner
        for new in came[old.owner]:
            fits = new.seen >= old.left and new.first > old.first and (new.key == old.key or not same_name)
            if fits and new.uid not in taken:
                taken.add(new.uid)
                found[old.uid] = new.uid
                break
    return found


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
