"""Find the pod that replaced another one that had to leave its node."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import partial
from itertools import islice

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET
from kerf.engine.record.entries import Entry
from kerf.replay.history.histories import ClaimHistory, Histories
from kerf.replay.history.pod_histories import PodHistory
from kerf.replay.record_names.named_entries import NamedEntries

SUCCESSOR_WITHIN_MS = 60_000
"""A Deployment replaces a pod within this time (ms). A pod that came later was made for something else."""
_NODE_BOUND_OWNERS = (f"/{DAEMONSET}/", f"/{NODE_OWNER}/")


class _OfWhole(Struct, frozen=True):
    """The successors of one controller's pods in the whole record. Up to a position within one of `doubtful` (the first
    position included, the last not) less was known of a pod, and they may be others."""

    successor_of: dict[str, str]
    doubtful: tuple[tuple[int, int], ...]

    def holds(self, until: int) -> bool:
        return not any(begin <= until < end for begin, end in self.doubtful)


class Successors:
    """Finds the pods that replaced others, of one controller's pods once."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._of_owner: dict[str, dict[str, str]] = {}

    def of(self, pods: Iterable[PodHistory]) -> dict[str, str]:
        """Map each of these pods (uid) that was evicted, or ended with its node, to the pod that replaced it.

        No entry says so. It follows from controllers and times: the first pod to go gets the first pod of the same
        controller that came after. A StatefulSet's pod is found by its name.
        """
        asked = [pod for pod in pods if pod.owner and self._has_gone(pod)]
        found = {pod.uid: new for pod in asked if (new := self._successors(pod.owner).get(pod.uid))}
        self._histories.pods.load(found.values())
        return {old: new for old, new in found.items() if self._histories.pods.get(new) is not None}

    def replaced_by(self, pod: PodHistory) -> str:
        """Return the pod (uid) that this one replaced, "" for none."""
        olds = [old for old, new in self._successors(pod.owner).items() if new == pod.uid] if pod.owner else []
        known = (self._histories.pods.get(old) for old in olds)
        return next((old.uid for old in known if old is not None and self._has_gone(old)), "")

    def _has_gone(self, pod: PodHistory) -> bool:
        return bool(pod.evicted_from) or _ended_with_its_node(pod, self._histories.nodes_that_had_to_go())

    def _successors(self, owner: str) -> dict[str, str]:
        """Return those of a controller's pods, also of pods that are still there."""
        if owner not in self._of_owner:
            self._of_owner[owner] = self._found(owner)
        return self._of_owner[owner]

    def _found(self, owner: str) -> dict[str, str]:
        """Read the pods of a controller once for all moments: which pod replaced which does not change later."""
        histories, whole, since = self._histories, self._histories.whole, self._histories.nodes_that_had_to_go()
        named = histories.pods.named
        if whole is not None and named is not None and since.items() <= whole.nodes_that_had_to_go().items():
            known = named.kept(("successors", owner), partial(_of_whole, whole, named.whole, owner))
            if known.holds(named.until):
                return known.successor_of
        return _successors(histories.pods.of_owner(owner), owner, since)


def _of_whole(whole: Histories, named: NamedEntries, owner: str) -> _OfWhole:
    pods, since = whole.pods.up_to(named).of_owner(owner), whole.nodes_that_had_to_go()
    doubtful = [(pod.first, pod.owned) for pod in pods]
    doubtful += [(pod.ended, pod.evicted) for pod in pods if pod.evicted]
    doubtful += [(pod.ended, since[pod.node].position) for pod in pods if _ended_with_its_node(pod, since)]
    return _OfWhole(_successors(pods, owner, since), tuple(span for span in doubtful if span[0] < span[1]))


def _successors(pods: list[PodHistory], owner: str, since: dict[str, Entry]) -> dict[str, str]:
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


def _ended_with_its_node(pod: PodHistory, since: dict[str, Entry]) -> bool:
    """Return whether nobody evicted the pod, and it ended after its node had to go."""
    return pod.node in since and bool(pod.left) and not pod.evicted_from and pod.left >= since[pod.node].at


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
