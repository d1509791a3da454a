"""The search for an order in which the pods of a plan can be bound to the nodes that the plan gives them.

Pods with rules (a spread or required affinity) are gone through again and again, and each is bound as soon as the
filters allow it. Where none of them may be, one pod without rules is bound: the one that helps the first waiting pod
most. A refused pod is not looked at again before a count that it depends on has risen, so that the search takes time
in proportion to the pods, and not to their square.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.problem.problem import ShapeKey

PlacedPod = tuple[ShapeKey, int, str]
"""A pod: its shape key, the number of its node, and its uid."""
ContentionEntry = tuple[tuple[bool, int], PlacedPod]
"""How much a pod would get in the way of others (see `InterpodCounts.contention`), and the pod."""


def may_wait_for_others(rules: InterpodRules, shape_key: ShapeKey) -> bool:
    """Whether such pods have rules by which they may have to wait until others are bound."""
    return bool(rules.by_shape[shape_key].hard_spreads or rules.by_shape[shape_key].affinity)


class BindingOrder:
    """The search for the pods of one plan; used once."""

    def __init__(
        self, counts: InterpodCounts, rules: InterpodRules, pods: Iterable[PlacedPod], late: frozenset[ShapeKey]
    ) -> None:
        """`late`: shapes with rules whose pods are held back like those without, and bound only where allowed."""
        self._counts, self._rules, self._late = counts, rules, late
        self._ruled: list[PlacedPod] = []
        self._held: dict[PlacedPod, None] = {}
        for pod in pods:
            if pod[0] in late or not may_wait_for_others(rules, pod[0]):
                self._held[pod] = None
            else:
                self._ruled.append(pod)
        self._waiting = dict.fromkeys(range(len(self._ruled)))  # positions of the ruled pods that are not bound
        self._sleepers: dict[int, list[_AlikePods | PlacedPod]] = defaultdict(list)  # by the count that they wait for
        self._asleep: set[PlacedPod] = set()  # of those that are held back
        self._contention: dict[tuple[int, ...], list[ContentionEntry]] = {}
        self._time = 0, -1  # how often all were gone through, and the position of the last one
        self._next = [(0, alike.positions[0], alike) for alike in self._alike()]
        heapify(self._next)

    def _alike(self) -> Iterable[_AlikePods]:
        """The ruled pods by what the filters tell apart."""
        groups: dict[object, _AlikePods] = {}
        for position, (shape_key, node, _) in enumerate(self._ruled):
            key = self._counts.filter_key(shape_key, node)
            if key not in groups:
                groups[key] = _AlikePods(len(groups))
            groups[key].positions.append(position)
        return groups.values()

    def unbound(self) -> list[str]:
        """The pods with rules (uids) that cannot be bound in any order that was tried."""
        while True:
            self._bind_ruled()
            if not self._waiting and not any(shape_key in self._late for shape_key, _, _ in self._held):
                return []
            pod = self._next_held()
            if pod is None:
                rest = [self._ruled[position] for position in self._waiting]
                return [
                    uid for shape_key, _, uid in (*rest, *self._held) if may_wait_for_others(self._rules, shape_key)
                ]
            del self._held[pod]
            self._time = self._time[0] + 1, -1
            self._bind(pod)

    def _bind_ruled(self) -> None:
        """Bind the pods with rules, as long as one of them may be."""
        while self._next:
            turn, position, alike = heappop(self._next)
            self._time = turn, position
            pod = self._ruled[position]
            if self._counts.allows(*pod[:2]):
                alike.positions.remove(position)
                del self._waiting[position]
                self._bind(pod)
                self._line_up(alike)
            else:
                self._sleep(alike, pod[0])

    def _line_up(self, alike: _AlikePods) -> None:
        """Line up the next pod of the group, in this turn or in the one to come."""
        turn, passed = self._time
        if alike.positions:
            after = bisect_right(alike.positions, passed)
            if after == len(alike.positions):
                turn, after = turn + 1, 0
            heappush(self._next, (turn, alike.positions[after], alike))

    def _bind(self, pod: PlacedPod) -> None:
        counts, (shape_key, node, _) = self._counts, pod
        entered = self._rules.counts_entered(shape_key)
        watched = [(number, counts.level(number, node)) for number in entered if self._sleepers.get(number)]
        counts.add_pod(shape_key, node)
        for number, before in watched:
            if counts.level(number, node) != before:
                self._wake(number)

    def _sleep(self, sleeper: _AlikePods | PlacedPod, shape_key: ShapeKey) -> None:
        """Wait for a count of the pods' rules to rise."""
        rules = self._rules.by_shape[shape_key]
        for number in dict.fromkeys([*(spread.count for spread in rules.hard_spreads), *rules.affinity]):
            self._sleepers[number].append(sleeper)
        if isinstance(sleeper, _AlikePods):
            sleeper.asleep = True
        else:
            self._asleep.add(sleeper)

    def _wake(self, number: int) -> None:
        for sleeper in self._sleepers.pop(number):
            if isinstance(sleeper, _AlikePods):
                if sleeper.asleep:
                    sleeper.asleep = False
                    self._line_up(sleeper)
            elif sleeper in self._asleep:
                self._asleep.remove(sleeper)
                for counts, entries in self._contention.items():
                    heappush(entries, (self._counts.contention(*sleeper[:2], counts), sleeper))

    # ── pods that are held back until nothing else can be bound ──────────────────────────────────────

    def _next_held(self) -> PlacedPod | None:
        """The held pod that is bound next: of those that may be, the one that gets least in the way of the first
        waiting pod. None if none may be."""
        first = next((self._ruled[position] for position in self._waiting), None) or self._first_ready()
        if first is None:
            return None
        counts = tuple([spread.count for spread in self._rules.by_shape[first[0]].hard_spreads])
        entries = self._contention.get(counts)
        if entries is None:
            awake = (pod for pod in self._held if pod not in self._asleep)
            entries = self._contention[counts] = [(self._counts.contention(*pod[:2], counts), pod) for pod in awake]
            heapify(entries)
        while entries:
            contention, pod = heappop(entries)
            if pod not in self._held or pod in self._asleep:
                continue
            now = self._counts.contention(*pod[:2], counts)
            if now != contention:
                heappush(entries, (now, pod))
            elif self._is_ready(pod):
                return pod
        return None

    def _first_ready(self) -> PlacedPod | None:
        return next((pod for pod in self._held if pod not in self._asleep and self._is_ready(pod)), None)

    def _is_ready(self, pod: PlacedPod) -> bool:
        """Whether a held pod that is not asleep may be bound now; otherwise it sleeps."""
        if pod[0] not in self._late or self._counts.allows(*pod[:2]):
            return True
        self._sleep(pod, pod[0])
        return False


class _AlikePods:
    """Ruled pods, by position, that the filters do not tell apart. `number` tells groups apart."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.positions: list[int] = []
        self.asleep = False

    def __lt__(self, other: _AlikePods) -> bool:
        return self.number < other.number
