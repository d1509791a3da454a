"""An estimate of how many pods a set of new nodes would leave unbound, without a run of the scheduler's model.

kube-scheduler binds each pod to the least allocated node that it may go to. So pods fill all these nodes to about the
same part, and a late pod finds room where a node is large enough beside that part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.kube_scheduler.scheduler import new_node_name
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_NODE_SET
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.problem.problem import PendingPod, ShapeKey

SCORED_RESOURCES = ("cpu", "memory")
"""The resources by which kube-scheduler scores nodes."""
FULLER_THAN_AVERAGE = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""By what part the nodes that decide may be fuller than the average: what is tried to explain the unbound pods."""
UNBOUND = -1
"""In place of the number of a node, for pods that have none."""
NODES_PER_TOUCH = 10
"""Counting this many nodes of a set costs one touch of effort."""
KINDS_PER_TOUCH = 5
"""Asking this many kinds of nodes whether they have room for a lot of pods costs one touch of effort."""


class PodLot(Struct, frozen=True):
    """The pods of one shape that are on new nodes or unbound.

    `requests` are those of one. `count`: how many there are; `unbound`: how many of them
    are. `requested_before`: what other pods request (in the order of `SCORED_RESOURCES`) that come to the same nodes
    before the first unbound one. `max_per_node`: how many their own rules allow on one node; 0: any number.
    """

    requests: Resources
    count: int
    unbound: int
    requested_before: tuple[int, ...]
    max_per_node: int


class LeftoverEstimate:
    """The estimate for other nodes in the place of those of an evaluated set. `touches`: what it has cost so far."""

    def __init__(self, node_sets: NodeSets, node_set: NodeSet) -> None:
        self._node_sets = node_sets
        queue = _PodQueue(node_sets, node_set)
        self._admission = NodeAdmission(node_sets, queue.first_of_shape)
        self._admitted: dict[int, int] = {}  # by kind of node: the lots that may go there, as a bit set
        self._rooms: dict[int, tuple[int, ...]] = {}
        self.touches = len(queue.pods)
        counts = self._count_kinds(node_set.nodes)
        self._lots = list(queue.lots([self._admitted[node.kind] for node in node_set.nodes]))
        self._restricted = [(n, lot) for n, lot in enumerate(self._lots) if 0 < lot.max_per_node < lot.count]
        self._all_restricted = sum(1 << n for n, _ in self._restricted)
        self._unbound = [(n, self._fullness(n, lot.unbound, counts)) for n, lot in enumerate(self._lots) if lot.unbound]

    def unbound(self, nodes: Sequence[NewNode]) -> int:
        """How many pods these nodes are expected to leave unbound."""
        counts = self._count_kinds(nodes)
        kinds = [(self._admitted[kind], count) for kind, count in counts.items()]
        nowhere = (1 << len(self._lots)) - 1
        for admitted, _ in kinds:
            nowhere &= ~admitted
        unbound = sum([self._without_room(number, counts, fuller) for number, fuller in self._unbound])
        unbound += sum([self._lots[number].count for number in bits(nowhere)])
        open_to_all = sum([count for admitted, count in kinds if not self._all_restricted & ~admitted])
        others = [kind for kind in kinds if self._all_restricted & ~kind[0]]
        for number, lot in self._restricted:
            if not nowhere >> number & 1:
                open_nodes = open_to_all + sum([count for admitted, count in others if admitted >> number & 1])
                unbound += max(0, lot.count - lot.max_per_node * open_nodes)
        looked_at = len(kinds) * (1 + len(self._unbound)) + len(others) * len(self._restricted)
        self.touches += TOUCHES_PER_NODE_SET + looked_at // KINDS_PER_TOUCH
        return unbound

    def _count_kinds(self, nodes: Sequence[NewNode]) -> Mapping[int, int]:
        """How many nodes there are of each kind; each new kind is looked at once."""
        counts = Counter([node.kind for node in nodes])
        self.touches += len(nodes) // NODES_PER_TOUCH
        for node in nodes if counts.keys() - self._admitted.keys() else ():
            if node.kind not in self._admitted:
                self._admitted[node.kind] = self._admission.admitted(node)
                self._rooms[node.kind] = tuple(node.info.free.get(name, 0) for name in SCORED_RESOURCES)
                self.touches += self._admission.touches
        return counts

    def _fullness(self, number: int, unbound: int, counts: Mapping[int, int]) -> float:
        """By what part the nodes that decide must be fuller than the average, since this many pods of a lot are unbound
        on the nodes of the evaluated set."""
        fitting = (fuller for fuller in FULLER_THAN_AVERAGE if self._without_room(number, counts, fuller) >= unbound)
        return next(fitting, FULLER_THAN_AVERAGE[-1])

    def _without_room(self, number: int, counts: Mapping[int, int], fuller: float) -> int:
        """How many pods of a lot find no room on nodes that are fuller than the average by this part."""
        lot = self._lots[number]
        rooms = [(self._rooms[kind], count) for kind, count in counts.items() if self._admitted[kind] >> number & 1]
        free = []
        for column, before in enumerate(lot.requested_before):
            total = sum([room[column] * count for room, count in rooms])
            free.append(max(0.0, 1 - (1 + fuller) * before / total) if total else 0.0)
        requested = [
            (column, lot.requests[name]) for column, name in enumerate(SCORED_RESOURCES) if lot.requests.get(name)
        ]
        fitting = 0
        for room, count in rooms:
            per_node = [int(room[column] * free[column]) // amount for column, amount in requested]
            fitting += count * min(per_node, default=lot.count)
        return max(0, lot.count - fitting)


class _PodQueue:
    """The pods that are on the new nodes of a set or unbound, in the order of the scheduling queue.

    `first_of_shape`: the first pod of each shape.
    """

    def __init__(self, node_sets: NodeSets, node_set: NodeSet) -> None:
        self._node_sets = node_sets
        numbers = {new_node_name(number): number for number in range(len(node_set.nodes))}
        node_of, unbound = node_set.bindings.node_of, frozenset(node_set.bindings.unbound)
        self.pods = [pod for pod in node_sets.queue(node_set) if pod.uid in unbound or node_of.get(pod.uid) in numbers]
        self._node_numbers = [UNBOUND if pod.uid in unbound else numbers[node_of[pod.uid]] for pod in self.pods]
        self._positions: dict[ShapeKey, list[int]] = {}
        for position, pod in enumerate(self.pods):
            self._positions.setdefault(pod.shape_key, []).append(position)
        self.first_of_shape = [self.pods[positions[0]] for positions in self._positions.values()]

    def lots(self, admitted: Sequence[int]) -> Iterator[PodLot]:
        """The lot of each shape. `admitted`: for each node the lots that may go there, as a bit set."""
        node_sets, members = self._node_sets, list(self._positions.values())
        unbound = [[place for place in positions if self._node_numbers[place] == UNBOUND] for positions in members]
        before = self._requested_before({n: positions[0] for n, positions in enumerate(unbound) if positions}, admitted)
        for number, (pod, positions) in enumerate(zip(self.first_of_shape, members, strict=True)):
            requested_before = before.get(number, (0,) * len(SCORED_RESOURCES))
            counts = len(positions), len(unbound[number])
            yield PodLot(node_sets.requests(pod), *counts, requested_before, node_sets.max_pods_per_node(pod))

    def _requested_before(self, first: Mapping[int, int], admitted: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        """For lots with unbound pods (by number, with the position of the first of these): what the pods of other lots
        request that come earlier and are unbound, too, or on a node where the lot may go."""
        before: dict[int, tuple[int, ...]] = {}
        members, columns = list(self._positions.values()), range(len(SCORED_RESOURCES))
        sums = [[0] * len(SCORED_RESOURCES) for _ in range(len(admitted) + 1)]  # by node; the last: UNBOUND
        passed = 0
        for number, position in sorted(first.items(), key=lambda each: each[1]):
            for pod, node in zip(self.pods[passed:position], self._node_numbers[passed:position], strict=True):
                for column, amount in enumerate(self._scored(pod)):
                    sums[node][column] += amount
            passed = position
            open_to = {UNBOUND, *(node for node, lots in enumerate(admitted) if lots >> number & 1)}
            own = sum(member < position and self._node_numbers[member] in open_to for member in members[number])
            of_one = self._scored(self.first_of_shape[number])
            before[number] = tuple(sum([sums[node][c] for node in open_to]) - own * of_one[c] for c in columns)
        return before

    def _scored(self, pod: PendingPod) -> list[int]:
        """What a pod requests, in the order of `SCORED_RESOURCES`."""
        requests = self._node_sets.requests(pod)
        return [requests.get(name, 0) for name in SCORED_RESOURCES]


class NodeAdmission:
    """Which of some pods, each of another shape, may go to a new node while no other pod is there.

    Sets of pods are bit sets over their sequence. Filters are asked once for all pods that ask the same of a node. What
    pods request is found by bisection.
    """

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
        room = node.info.free
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
