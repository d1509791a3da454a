"""Which of many pods may go to a new node while no other is there: found out once for all pods that ask the same of a
node, and by bisection for what they request."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence

from kerf.engine.scheduling.optimizer.node_sets.node_sets import NewNode, NodeSets
from kerf.engine.scheduling.problem.problem import PendingPod


class NodeAdmission:
    """Of these pods, each of another shape. Sets of them are the bits of an int, by their place in the sequence."""

    def __init__(self, fleets: NodeSets, pods: Sequence[PendingPod]) -> None:
        self._fleets = fleets
        self._every = (1 << len(pods)) - 1
        self._levels = _request_levels([{**fleets.requests(each), "pods": 1} for each in pods])
        self._alike: dict[Hashable, tuple[PendingPod, int]] = {}
        for number, pod in enumerate(pods):
            asked = fleets.asked(pod)
            first, bits = self._alike.get(asked, (pod, 0))
            self._alike[asked] = first, bits | 1 << number

    @property
    def cost(self) -> int:
        """What `of` costs, in touches."""
        return len(self._levels) + len(self._alike)

    def of(self, berth: NewNode) -> int:
        """Those that may go to the node."""
        room = self._fleets.room(berth)
        if any(amount < 0 for amount in room.values()):
            return 0
        found = self._every
        for name, (amounts, within) in self._levels.items():
            found &= within[bisect_right(amounts, room.get(name, 0))]
        for pod, alike in self._alike.values():
            if found & alike and not self._fleets.admits(berth, pod):
                found &= ~alike
        return found


def _request_levels(requests: Sequence[dict[str, int]]) -> dict[str, tuple[list[int], list[int]]]:
    """By resource the amounts that are requested, ascending, and the pods that request less than the first of them, the
    second … and all of them."""
    found = {}
    for name in sorted({name for each in requests for name in each}):
        by_amount: dict[int, int] = {}
        for number, each in enumerate(requests):
            amount = each.get(name, 0)
            by_amount[amount] = by_amount.get(amount, 0) | 1 << number
        amounts, within = sorted(by_amount), [0]
        for amount in amounts:
            within.append(within[-1] | by_amount[amount])
        found[name] = amounts, within
    return found
