"""What a set of new nodes would leave over, as far as it can be said without a run of the scheduler's model.

kube-scheduler takes the least allocated of the nodes that a pod may go to. So the pods fill all of these to about the
same part, and one that comes late finds room where a node is large enough beside that part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey
from kerf.engine.scheduling.kube_scheduler.scheduler import new_node_name
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_NODE_SET
from kerf.engine.scheduling.optimizer.node_sets.node_admission import NodeAdmission
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NewNode, NodeSet, NodeSets
from kerf.engine.scheduling.problem.problem import PendingPod

SCORED_RESOURCES = ("cpu", "memory")
"""The resources that the scheduler's score looks at."""
FULLER_THAN_AVERAGE = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""By what part those nodes may be fuller than on the average that matter."""


NODES_PER_TOUCH = 10
"""For the cost of a touch so many nodes of a set are counted."""

KINDS_PER_TOUCH = 5
"""For the cost of a touch so many kinds of nodes are asked whether they have room for a lot."""


class PodLot(Struct, frozen=True):
    """The pods of one shape that are on new nodes or left over: one of them, what it requests, how many there are, how
    many of them are left over, what pods request (in the order of `SCORED_RESOURCES`) that come before the first of
    these to the same nodes, and how many may be on one node by their own rules (0: any number)."""

    pod: PendingPod
    requests: Resources
    count: int
    left: int
    before: tuple[int, ...]
    most: int


class LeftoverEstimate:
    """Of other nodes in the place of a fleet's. `touches`: what it has cost so far."""

    def __init__(self, fleets: NodeSets, fleet: NodeSet) -> None:
        self._fleets = fleets
        line = _PodQueue(fleets, fleet)
        self._admission = NodeAdmission(fleets, line.ones)
        self._admitted: dict[int, int] = {}  # by kind of node: the lots that may go there, as bits
        self._rooms: dict[int, tuple[int, ...]] = {}
        self.touches = len(line.queue)
        counts = self._counted(fleet.berths)
        self._lots = list(line.lots([self._admitted[each.kind] for each in fleet.berths]))
        self._scarce = [(n, each) for n, each in enumerate(self._lots) if 0 < each.most < each.count]
        self._all_scarce = sum(1 << n for n, _ in self._scarce)
        self._stuck = [(n, self._uneven(n, each.left, counts)) for n, each in enumerate(self._lots) if each.left]

    def left(self, berths: Sequence[NewNode]) -> int:
        """How many pods are thought to be left over."""
        counts = self._counted(berths)
        kinds = [(self._admitted[kind], count) for kind, count in counts.items()]
        nowhere = (1 << len(self._lots)) - 1
        for admitted, _ in kinds:
            nowhere &= ~admitted
        short = sum([self._short(number, counts, more) for number, more in self._stuck])
        short += sum([self._lots[number].count for number in bits(nowhere)])
        open_to_all = sum([count for admitted, count in kinds if not self._all_scarce & ~admitted])
        others = [each for each in kinds if self._all_scarce & ~each[0]]
        for number, lot in self._scarce:
            if not nowhere >> number & 1:
                nodes = open_to_all + sum([count for admitted, count in others if admitted >> number & 1])
                short += max(0, lot.count - lot.most * nodes)
        looked = len(kinds) * (1 + len(self._stuck)) + len(others) * len(self._scarce)
        self.touches += TOUCHES_PER_NODE_SET + looked // KINDS_PER_TOUCH
        return short

    def _counted(self, berths: Sequence[NewNode]) -> Mapping[int, int]:
        """How many nodes there are of each kind."""
        counts = Counter([each.kind for each in berths])
        self.touches += len(berths) // NODES_PER_TOUCH
        if not self._admitted.keys() >= counts.keys():
            for each in berths:
                if each.kind not in self._admitted:
                    self._admitted[each.kind] = self._admission.of(each)
                    free = self._fleets.room(each)
                    self._rooms[each.kind] = tuple(free.get(name, 0) for name in SCORED_RESOURCES)
                    self.touches += self._admission.cost
        return counts

    def _uneven(self, number: int, left: int, counts: Mapping[int, int]) -> float:
        """How much fuller than on the average those nodes must be that matter, since with these so many were left."""
        return next(
            (more for more in FULLER_THAN_AVERAGE if self._short(number, counts, more) >= left), FULLER_THAN_AVERAGE[-1]
        )

    def _short(self, number: int, counts: Mapping[int, int], more: float) -> int:
        """How many pods of a lot find no room. `more`: see `_uneven`."""
        lot = self._lots[number]
        rooms = [(self._rooms[kind], count) for kind, count in counts.items() if self._admitted[kind] >> number & 1]
        free = []
        for column, before in enumerate(lot.before):
            total = sum([room[column] * count for room, count in rooms])
            free.append(max(0.0, 1 - (1 + more) * before / total) if total else 0.0)
        asked = [(column, lot.requests[name]) for column, name in enumerate(SCORED_RESOURCES) if lot.requests.get(name)]
        places = 0
        for room, count in rooms:
            fit = [int(room[column] * free[column]) // amount for column, amount in asked]
            places += count * min(fit, default=lot.count)
        return max(0, lot.count - places)


class _PodQueue:
    """The pods that are on a fleet's new nodes or left over, as the scheduler comes to them. `ones`: the first of each
    shape."""

    def __init__(self, fleets: NodeSets, fleet: NodeSet) -> None:
        self._fleets = fleets
        numbers = {new_node_name(number): number for number in range(len(fleet.berths))}
        seats, left = fleet.bindings.node_of, frozenset(fleet.bindings.unbound)
        self.queue = [each for each in fleets.queue(fleet) if each.uid in left or seats.get(each.uid) in numbers]
        self._places = [None if each.uid in left else numbers[seats[each.uid]] for each in self.queue]
        self._members: dict[ShapeKey, list[int]] = {}
        for position, pod in enumerate(self.queue):
            self._members.setdefault((pod.namespace, pod.shape), []).append(position)
        self.ones = [self.queue[positions[0]] for positions in self._members.values()]

    def lots(self, admitted: Sequence[int]) -> Iterator[PodLot]:
        """Of each shape. `admitted`: by node, those that may go there, as bits."""
        fleets, members = self._fleets, list(self._members.values())
        waiting = [[each for each in positions if self._places[each] is None] for positions in members]
        before = self._before({number: each[0] for number, each in enumerate(waiting) if each}, admitted)
        for number, (one, positions) in enumerate(zip(self.ones, members, strict=True)):
            there = before.get(number, (0,) * len(SCORED_RESOURCES))
            counts = len(positions), len(waiting[number])
            yield PodLot(one, fleets.requests(one), *counts, there, fleets.most_on_one(one))

    def _before(self, first: Mapping[int, int], admitted: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        """For lots of which pods are left over (by number, with the position of the first that is): what others request
        that come before, and that are left over, too, or on a node where those may go."""
        found: dict[int, tuple[int, ...]] = {}
        members = list(self._members.values())
        there = [
            [0] * len(SCORED_RESOURCES) for _ in range(len(admitted) + 1)
        ]  # by node, and at last what is left over
        passed = 0
        for number, position in sorted(first.items(), key=lambda each: each[1]):
            for each in range(passed, position):
                self._count(there, each, 1)
            passed = position
            own = [each for each in members[number] if each < position]
            for each in own:
                self._count(there, each, -1)
            open_to = [sums for lots, sums in zip(admitted, there[:-1], strict=True) if lots >> number & 1]
            found[number] = tuple(sum(column) for column in zip(*open_to, there[-1], strict=True))
            for each in own:
                self._count(there, each, 1)
        return found

    def _count(self, there: Sequence[list[int]], position: int, sign: int) -> None:
        requests, place = self._fleets.requests(self.queue[position]), self._places[position]
        sums = there[-1 if place is None else place]
        for column, name in enumerate(SCORED_RESOURCES):
            sums[column] += sign * requests.get(name, 0)
