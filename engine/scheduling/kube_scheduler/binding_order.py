"""The order in which pods are bound to places that are given, as long as one may be bound.

Those that ask something of others are gone through again and again, and all are bound that may be. Where none may be,
one of the others is, which crowds out the first that waits least. What is refused is not looked at again before a count
that it depends on has risen, so that it takes about as long as there are pods, and not the square of that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules, ShapeKey

PlacedPod = tuple[ShapeKey, int, str]
"""A pod, the number of its place, and its uid."""
ContentionEntry = tuple[tuple[bool, int], PlacedPod]
"""What it is to another that a pod is bound (see `Company.crowd`), less is better, and the pod."""


def may_wait_for_others(manners: InterpodRules, pair: ShapeKey) -> bool:
    """Whether such pods may have to wait for others."""
    return bool(manners.demands[pair].spreads or manners.demands[pair].together)


class BindingOrder:
    """Of the pods of one plan, used once."""

    def __init__(
        self, company: InterpodCounts, manners: InterpodRules, pods: Iterable[PlacedPod], late: frozenset[ShapeKey]
    ) -> None:
        """`late`: pods that ask something, too, and are bound with those that do not, though only where they may be."""
        self._company, self._manners, self._late = company, manners, late
        self._ruled: list[PlacedPod] = []
        self._held: dict[PlacedPod, None] = {}
        for each in pods:
            if each[0] in late or not may_wait_for_others(manners, each[0]):
                self._held[each] = None
            else:
                self._ruled.append(each)
        self._waiting = dict.fromkeys(range(len(self._ruled)))  # those of the ruled that are not bound
        self._sleepers: dict[int, list[_Group | PlacedPod]] = defaultdict(list)  # by the count that they wait for
        self._asleep: set[PlacedPod] = set()  # of those that are held
        self._crowdings: dict[tuple[int, ...], list[ContentionEntry]] = {}
        self._time = 0, -1  # how often all were gone through, and the position of the last one
        self._next = [(0, each.positions[0], each) for each in self._groups()]
        heapify(self._next)

    def _groups(self) -> Iterable[_Group]:
        found: dict[object, _Group] = {}
        for position, (pair, place, _) in enumerate(self._ruled):
            key = self._company.standing(pair, place)
            if key not in found:
                found[key] = _Group(len(found))
            found[key].positions.append(position)
        return found.values()

    def left_over(self) -> list[str]:
        """The pods (uids) that cannot be bound and ask something of others."""
        while True:
            self._bind_ruled()
            if not self._waiting and not any(pair in self._late for pair, _, _ in self._held):
                return []
            chosen = self._chosen()
            if chosen is None:
                rest = [self._ruled[position] for position in self._waiting]
                return [uid for pair, _, uid in (*rest, *self._held) if may_wait_for_others(self._manners, pair)]
            del self._held[chosen]
            self._time = self._time[0] + 1, -1
            self._bind(chosen)

    def _bind_ruled(self) -> None:
        while self._next:
            turn, position, group = heappop(self._next)
            self._time = turn, position
            each = self._ruled[position]
            if self._company.allows(*each[:2]):
                group.positions.remove(position)
                del self._waiting[position]
                self._bind(each)
                self._line_up(group)
            else:
                self._sleep(group, each[0])

    def _line_up(self, group: _Group) -> None:
        """Its next pod, in this turn or in the one to come."""
        turn, passed = self._time
        if group.positions:
            after = bisect_right(group.positions, passed)
            if after == len(group.positions):
                turn, after = turn + 1, 0
            heappush(self._next, (turn, group.positions[after], group))

    def _bind(self, each: PlacedPod) -> None:
        company, (pair, place, _) = self._company, each
        watched = [(n, company.level(n, place)) for n in self._manners.entered(pair) if self._sleepers.get(n)]
        company.bound(pair, place)
        for number, before in watched:
            if company.level(number, place) != before:
                self._wake(number)

    def _sleep(self, sleeper: _Group | PlacedPod, pair: ShapeKey) -> None:
        wanted = self._manners.demands[pair]
        for number in dict.fromkeys([*(each.count for each in wanted.spreads), *wanted.together]):
            self._sleepers[number].append(sleeper)
        if isinstance(sleeper, _Group):
            sleeper.asleep = True
        else:
            self._asleep.add(sleeper)

    def _wake(self, number: int) -> None:
        for each in self._sleepers.pop(number):
            if isinstance(each, _Group):
                if each.asleep:
                    each.asleep = False
                    self._line_up(each)
            elif each in self._asleep:
                self._asleep.remove(each)
                for counts, crowdings in self._crowdings.items():
                    heappush(crowdings, (self._company.crowd(*each[:2], counts), each))

    # ── those that come when nothing else can ──────────────────────────────────────

    def _chosen(self) -> PlacedPod | None:
        """The one that is bound next; None if none may be."""
        first = next((self._ruled[position] for position in self._waiting), None) or self._first_ready()
        if first is None:
            return None
        counts = tuple([each.count for each in self._manners.demands[first[0]].spreads])
        crowdings = self._crowdings.get(counts)
        if crowdings is None:
            awake = (each for each in self._held if each not in self._asleep)
            crowdings = self._crowdings[counts] = [(self._company.crowd(*each[:2], counts), each) for each in awake]
            heapify(crowdings)
        while crowdings:
            crowd, each = heappop(crowdings)
            if each not in self._held or each in self._asleep:
                continue
            now = self._company.crowd(*each[:2], counts)
            if now != crowd:
                heappush(crowdings, (now, each))
            elif self._ready(each):
                return each
        return None

    def _first_ready(self) -> PlacedPod | None:
        return next((each for each in self._held if each not in self._asleep and self._ready(each)), None)

    def _ready(self, each: PlacedPod) -> bool:
        """Whether one that is held, and not asleep, may be bound now; else it sleeps."""
        if each[0] not in self._late or self._company.allows(*each[:2]):
            return True
        self._sleep(each, each[0])
        return False


class _Group:
    """Those of the ruled, by their positions, that the filters do not tell apart; `number` tells groups apart."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.positions: list[int] = []
        self.asleep = False

    def __lt__(self, other: _Group) -> bool:
        return self.number < other.number
