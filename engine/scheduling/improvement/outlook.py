"""What a set of new nodes would leave over, as far as it can be said without a run of the scheduler's model.

kube-scheduler takes the least allocated of the nodes that a pod may go to. So the pods fill all of these to about the
same part, and one that comes late finds room where a node is large enough beside that part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.pods import Resources
from kerf.engine.scheduling.improvement.fleet import Berth, Fleet, Fleets
from kerf.engine.scheduling.improvement.manners import Pair
from kerf.engine.scheduling.improvement.rating import seat_name
from kerf.engine.scheduling.problem import PendingPod

FILLED = ("cpu", "memory")
"""The resources that the scheduler's score looks at."""
UNEVEN = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""By what part those nodes may be fuller than on the average that matter."""


class Lot(Struct, frozen=True):
    """The pods of one shape that are on new nodes or left over: one of them, what it requests, how many there are, how
    many of them are left over, what pods request (in the order of `FILLED`) that come before the first of these to the
    same nodes, and how many may be on one node by their own rules (0: any number)."""

    pod: PendingPod
    requests: Resources
    count: int
    left: int
    before: tuple[int, ...]
    most: int


class Outlook:
    """Of other nodes in the place of a fleet's."""

    def __init__(self, fleets: Fleets, fleet: Fleet) -> None:
        self._fleets = fleets
        self._lots = _lots(fleets, fleet)
        self._admitted: dict[int, int] = {}  # by kind of node: the lots that may go there, as bits
        self._rooms: dict[int, tuple[int, ...]] = {}
        counts = self._counted(fleet.berths)
        self._stuck = [(n, self._uneven(n, each.left, counts)) for n, each in enumerate(self._lots) if each.left]

    def left(self, berths: Sequence[Berth]) -> int:
        """How many pods are thought to be left over."""
        counts = self._counted(berths)
        admitted = 0
        for kind in counts:
            admitted |= self._admitted[kind]
        short = sum(self._short(number, counts, more) for number, more in self._stuck)
        for number, lot in enumerate(self._lots):
            if not admitted >> number & 1:
                short += lot.count
            elif lot.most:
                nodes = sum(count for kind, count in counts.items() if self._admitted[kind] >> number & 1)
                short += max(0, lot.count - lot.most * nodes)
        return short

    def _counted(self, berths: Sequence[Berth]) -> Mapping[int, int]:
        """How many nodes there are of each kind."""
        counts = Counter([each.kind for each in berths])
        if not self._admitted.keys() >= counts.keys():
            for each in berths:
                if each.kind not in self._admitted:
                    bits = (1 << n for n, lot in enumerate(self._lots) if self._fleets.admits(each, lot.pod))
                    self._admitted[each.kind] = sum(bits)
                    free = self._fleets.room(each)
                    self._rooms[each.kind] = tuple(free.get(name, 0) for name in FILLED)
        return counts

    def _uneven(self, number: int, left: int, counts: Mapping[int, int]) -> float:
        """How much fuller than on the average those nodes must be that matter, since with these so many were left."""
        return next((more for more in UNEVEN if self._short(number, counts, more) >= left), UNEVEN[-1])

    def _short(self, number: int, counts: Mapping[int, int], more: float) -> int:
        """How many pods of a lot find no room. `more`: see `_uneven`."""
        lot = self._lots[number]
        rooms = [(self._rooms[kind], count) for kind, count in counts.items() if self._admitted[kind] >> number & 1]
        free = []
        for column, before in enumerate(lot.before):
            total = sum([room[column] * count for room, count in rooms])
            free.append(max(0.0, 1 - (1 + more) * before / total) if total else 0.0)
        asked = [(column, lot.requests[name]) for column, name in enumerate(FILLED) if lot.requests.get(name)]
        places = 0
        for room, count in rooms:
            fit = [int(room[column] * free[column]) // amount for column, amount in asked]
            places += count * min(fit, default=lot.count)
        return max(0, lot.count - places)


def _lots(fleets: Fleets, fleet: Fleet) -> list[Lot]:
    numbers = {seat_name(number): number for number in range(len(fleet.berths))}
    seats, left = fleet.bound.seats, frozenset(fleet.bound.left)
    queue = [each for each in fleets.queue(fleet) if each.uid in left or seats.get(each.uid) in numbers]
    places = [None if each.uid in left else numbers[seats[each.uid]] for each in queue]
    members: dict[Pair, list[int]] = {}
    for position, pod in enumerate(queue):
        members.setdefault((pod.namespace, pod.shape), []).append(position)
    return [_lot(fleets, fleet, queue, places, positions) for positions in members.values()]


def _lot(
    fleets: Fleets,
    fleet: Fleet,
    queue: Sequence[PendingPod],
    places: Sequence[int | None],
    positions: Sequence[int],
) -> Lot:
    """The pods at these positions of the queue. `places`: the number of the new node of each, None if it is left."""
    one = queue[positions[0]]
    waiting = [each for each in positions if places[each] is None]
    before = [0] * len(FILLED)
    if waiting:
        mine = frozenset(positions)
        open_to = frozenset(n for n, each in enumerate(fleet.berths) if fleets.admits(each, one)) | {None}
        for position in range(waiting[0]):
            if position not in mine and places[position] in open_to:
                requests = fleets.requests(queue[position])
                before = [amount + requests.get(name, 0) for amount, name in zip(before, FILLED, strict=True)]
    return Lot(one, fleets.requests(one), len(positions), len(waiting), tuple(before), fleets.most_on_one(one))
