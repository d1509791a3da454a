"""Which pods may go to a new node while no other pod is there.

Filters are asked once for all pods that ask the same of a node. What pods request is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence

from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSets
from kerf.engine.scheduling.problem.problem import PendingPod


class NodeAdmission:
    """The question for some pods, each of another shape. Sets of pods are bit sets over their sequence."""

    def __init__(self, node_sets: NodeSets, pods: Sequence[PendingPod]) -> None:
        self._node_sets = node_sets
        self._all = (1 << len(pods)) - 1
        self._levels = _request_levels([{**node_sets.requests(pod), "pods": 1} for pod in pods])
        self._alike: dict[Hashable, tuple[PendingPod, int]] = {}
        for number, pod in enumerate(pods):
            key = node_sets.filter_key(pod)
            first, bits = self._alike.get(key, (pod, 0))
            self._alike[key] = first, bits | 1 << number

    @property
    def touches(self) -> int:
        """What `admitted` costs, in touches."""
        return len(self._levels) + len(self._alike)

    def admitted(self, node: NewNode) -> int:
        """The pods that may go to the node, as a bit set."""
        room = self._node_sets.new_nodes.room(node)
        if any(amount < 0 for amount in room.values()):
            return 0
        admitted = self._all
        for name, (amounts, requesting_less) in self._levels.items():
            admitted &= requesting_less[bisect_right(amounts, room.get(name, 0))]
        for pod, alike in self._alike.values():
            if admitted & alike and not self._node_sets.admits(node, pod):
                admitted &= ~alike
        return admitted


def _request_levels(requests: Sequence[dict[str, int]]) -> dict[str, tuple[list[int], list[int]]]:
    """For each resource the requested amounts, ascending, and bit sets: the pods that request less than the first
    amount, less than the second …, and all of them."""
    levels = {}
    for name in sorted({name for request in requests for name in request}):
        by_amount: dict[int, int] = {}
        for number, request in enumerate(requests):
            amount = request.get(name, 0)
            by_amount[amount] = by_amount.get(amount, 0) | 1 << number
        amounts, requesting_less = sorted(by_amount), [0]
        for amount in amounts:
            requesting_less.append(requesting_less[-1] | by_amount[amount])
        levels[name] = amounts, requesting_less
    return levels
