"""One run of the model of kube-scheduler: a set of nodes that fill up as pods are bound to them one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.equivalence_classes import (
    NEUTRAL_SCORE,
    EquivalenceClass,
    RankedNode,
    ScoredNodes,
    scores_differ,
    static_scores,
)
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts, passes
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import NO_ROOM, NodeUsages
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SchedulerVariant

POD_COUNTS_PER_TOUCH = 10
"""For the cost of a touch so many counts of pods around a place are read."""

NodesOfKind = tuple[NodeInfo, Sequence[int]]
"""One of some new nodes of one kind, and their numbers."""


class RunNodes(Struct, frozen=True):
    """Of one run: the new ones, the same by kind, and the numbers of old ones that are gone."""

    seats: Sequence[NodeInfo]
    new: Sequence[NodesOfKind]
    gone: frozenset[int] = frozenset()


class SchedulingRun:
    """`filled`: the number of the node of each pod, as they were bound, and `pods`: how many were bound to each node;
    `touches`: how often a node was looked at for a pod."""

    def __init__(
        self, rooms: NodeUsages, there: RunNodes, company: InterpodCounts, habit: SchedulerVariant, ranks: Sequence[int]
    ) -> None:
        """`ranks`: of the nodes by number, see `Habit.rank`."""
        self._gone, self._new = there.gone, there.new
        self.rooms = [*rooms.old, *(rooms.of(each) for each in there.seats)]
        self.offers = rooms.offers
        self.company = company
        self.habit = habit
        self.ranks = ranks
        self.filled: list[int] = []
        self.pods = [0] * len(self.rooms)
        self.touches = 0
        self._waiters: dict[EquivalenceClass, FeasibleNodes] = {}

    def bind(self, wanted: EquivalenceClass) -> int | None:
        """Bind one pod: the number of its node, None if it finds none."""
        waiters = self._waiters.get(wanted)
        if waiters is None:
            weighing = self.company.tastes(wanted.pair)
            waiters = self._waiters[wanted] = (ScoredByPods if weighing else BestFirst)(self, wanted)
        number = waiters.best()
        if number is not None:
            self.rooms[number] = self.rooms[number].after(wanted.load)
            self.pods[number] += 1
            self.company.bound(wanted.pair, number)
            self.filled.append(number)
        return number

    def old(self, wanted: EquivalenceClass) -> list[ScoredNodes]:
        return [(place, (number,)) for place, number in wanted.old if number not in self._gone]

    def new(self, wanted: EquivalenceClass) -> list[ScoredNodes]:
        return [(place, numbers) for seat, numbers in self._new if (place := wanted.place(seat)) is not None]

    def untouched(self, entries: list[RankedNode]) -> list[RankedNode]:
        """Those of nodes that are there and that nothing has been bound to."""
        if not self._gone and not self.filled:
            return list(entries)
        gone, pods = self._gone, self.pods
        return [each for each in entries if each[2] not in gone and not pods[each[2]]]


class FeasibleNodes(ABC):
    """The pods of one class in one run, and the nodes that may be feasible for them. An entry of a node that has been
    filled since is stale, and a new one is there."""

    def __init__(self, run: SchedulingRun, wanted: EquivalenceClass) -> None:
        self._run = run
        self._wanted = wanted
        self._offers = run.offers(wanted.load)
        new = run.new(wanted)
        if wanted.indifferent and not scores_differ(place for place, _ in new):
            numbers = [number for _, each in new for number in each]
            self._fixed = wanted.fixed | dict.fromkeys(numbers, NEUTRAL_SCORE)
            found = run.untouched(wanted.ranked(run.habit))
            found += self._entries([each for each in dict.fromkeys(run.filled) if each in wanted.fixed])
            found += self._entries(numbers)
        else:
            self._fixed = static_scores(run.old(wanted) + new)
            found = self._entries(self._fixed)
        self._read = len(run.filled)
        run.touches += len(found)
        self._begin(found)

    @abstractmethod
    def _begin(self, entries: list[RankedNode]) -> None:
        """With these nodes."""

    @abstractmethod
    def best(self) -> int | None:
        """The node for the next pod."""

    def _since(self) -> list[RankedNode]:
        """The entries of the nodes that have been filled since."""
        filled, fixed = self._run.filled, self._fixed
        if self._read == len(filled):
            return []
        numbers = dict.fromkeys(filled[self._read :])
        self._read = len(filled)
        return self._entries([number for number in numbers if number in fixed])

    def _entries(self, numbers: Iterable[int]) -> list[RankedNode]:
        fixed, ranks, rooms, offers = self._fixed, self._run.ranks, self._run.rooms, self._offers
        return [
            (-fixed[number] - (offer := offers[rooms[number]])[0], ranks[number], number, offer[1])
            for number in numbers
        ]


class BestFirst(FeasibleNodes):
    """They take the first feasible node in the order of scores."""

    def _begin(self, entries: list[RankedNode]) -> None:
        self._order = sorted(entries)

    def best(self) -> int | None:
        """Entries that are stale, or of nodes that are too full, are dropped on the way: nodes only fill up. Those that
        pods around do not allow are kept."""
        run, order = self._run, self._order
        since = self._since()
        for entry in since:
            insort(order, entry)
        rules, pods = run.company.rules(self._wanted.pair), run.pods
        found, looked, useless = None, 0, []
        for looked, (_, _, number, before) in enumerate(order, start=1):
            if before != pods[number]:
                useless.append(looked - 1)
            elif passes(rules, number):
                found = number
                break
        for position in reversed(useless):
            del order[position]
        run.touches += 1 + looked + len(since)
        return found


class ScoredByPods(FeasibleNodes):
    """To them it matters, too, what pods are around, so that all feasible nodes are compared."""

    def _begin(self, entries: list[RankedNode]) -> None:
        self._scores = {entry[2]: entry for entry in entries if entry[3] != NO_ROOM}
        self._dropped = len(entries) - len(self._scores)

    def best(self) -> int | None:
        run, scores, pair = self._run, self._scores, self._wanted.pair
        since = self._since()
        run.touches += 1 + self._dropped + len(scores) + len(since)
        self._dropped = 0
        for entry in since:
            scores.pop(entry[2], None)
            if entry[3] != NO_ROOM:
                scores[entry[2]] = entry
        feasible = run.company.allowed(pair, scores)
        if not feasible:
            return None
        run.touches += len(feasible) * run.company.tastes(pair) // POD_COUNTS_PER_TOUCH
        taste = run.company.taste(pair, feasible)
        rated = [scores[number][0] - liked for number, liked in zip(feasible, taste, strict=True)]
        best, ranks = min(rated), run.ranks
        return min([(ranks[number], number) for number, score in zip(feasible, rated, strict=True) if score == best])[1]
