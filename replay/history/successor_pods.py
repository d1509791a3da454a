"""Find the pod that replaced another one that had to leave its node."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import islice

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET
from kerf.replay.history.histories import ClaimHistory, Histories
from kerf.replay.history.pod_histories import PodHistory

SUCCESSOR_WITHIN_MS = 60_000
"""A Deployment replaces a pod within this time (ms). A pod that came later was made for something else."""
_NODE_BOUND_OWNERS = (f"/{DAEMONSET}/", f"/{NODE_OWNER}/")


class Successors:
    """Finds the pods that replaced others, of one controller's pods once."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._of_owner: dict[str, dict[str, str]] = {}

    def of(self, pods: Iterable[PodHistory]) -> dict[str, str]:
        """Map each of these pods (uid) that was evicted, or ended with its node, and each other pod of the same
        controllers, to the pod that replaced it.

        No entry says so. It follows from controllers and times: the first pod to go gets the first pod of the same
        controller that came after. A StatefulSet's pod is found by its name.
        """
        owners = dict.fromkeys(pod.owner for pod in pods if pod.owner)
        for owner in owners.keys() - self._of_owner.keys():
            since = self._histories.nodes_that_had_to_go()
            self._of_owner[owner] = _successors(self._histories.pods.of_owner(owner), owner, since)
        return {old: new for owner in owners for old, new in self._of_owner[owner].items()}


def successor_pods(histories: Histories, pods: Iterable[PodHistory]) -> dict[str, str]:
    """As `Successors.of`."""
    return Successors(histories).of(pods)


def _successors(pods: list[PodHistory], owner: str, since: dict[str, int]) -> dict[str, str]:
    """Map the pods of one controller to those that replaced them. `since` says when a node had to go."""
    new_pods = sorted(pods, key=lambda pod: (pod.seen, pod.first))
    same_name = f"/{STATEFULSET}/" in owner
    ended = {pod.uid for pod in pods if _ended_with_its_node(pod, since)}
    gone = [pod for pod in pods if pod.evicted_from or pod.uid in ended]
    successor_of: dict[str, str] = {}
    taken: set[str] = set()
    begin = 0
    for old in sorted(gone, key=lambda pod: (pod.left, pod.first)):
        latest = old.left + SUCCESSOR_WITHIN_MS if old.uid in ended and not same_name else math.inf
        while begin < len(new_pods) and (new_pods[begin].seen < old.left or new_pods[begin].uid in taken):
            begin += 1  # it came before this one left, and those that follow left later
        for new in islice(new_pods, begin, None):
            if new.seen > latest:
                break
            fits = new.first > old.first and (new.key == old.key or not same_name)
            if fits and new.uid not in taken:
                taken.add(new.uid)
                successor_of[old.uid] = new.uid
                break
    return successor_of


def _ended_with_its_node(pod: PodHistory, since: dict[str, int]) -> bool:
    """Return whether nobody evicted the pod, and it ended after its node had to go."""
    return pod.node in since and bool(pod.left) and not pod.evicted_from and pod.left >= since[pod.node]


def pods_to_move(
    histories: Histories, claim: ClaimHistory, position: int, among: Collection[str] | None = None
) -> list[PodHistory]:
    """Return the pods on the claim's node at a position that need another place, by name: all but those of DaemonSets
    and the kubelet's own. Of pods that are known (uids), those `among` them."""
    if among is None:
        bound = histories.pods.on_node(claim.node)
    else:
        bound = [pod for pod in map(histories.pods.__getitem__, among) if claim.node and pod.node == claim.node]
    on_node = [pod for pod in bound if pod.first <= position and not 0 < pod.gone <= position]
    return sorted(
        (pod for pod in on_node if not any(owner_kind in pod.owner for owner_kind in _NODE_BOUND_OWNERS)),
        key=lambda pod: (pod.key, pod.first),
    )
