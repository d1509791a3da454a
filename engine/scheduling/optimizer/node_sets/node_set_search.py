"""From a set of new nodes on which pods are left over to one that binds whole.

Every step is a whole run of the scheduler's model. Pods that are left over get nodes of their own, or somewhere a
larger node, or one in the place of two; and what proves needless is left out again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.candidates import TOLERANCE
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_RUN, Effort
from kerf.engine.scheduling.optimizer.node_sets.larger_sets import larger_sets, total_price
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NewNode, NodeSet, NodeSets

MAX_SMALLER_TYPES = 3
"""How many smaller types are tried in the place of one."""
TRIES_PER_TURN = 12
"""How many larger ones of a fleet are tried at a time."""
MIN_TRIES = 4
"""How many are tried when one of them is better already."""
CHEAP_TURN_EVERY = 3
"""Of so many turns one is for a fleet that is cheap and that little has been tried from, whatever it leaves over."""
LEFTOVER_PRICE_FACTOR = 2
"""By what factor a pod that is left over costs more than the others."""
MORE_LEFT_OVER = 2
"""So many more pods than before may be left over on the way to a whole fleet."""
NO_LIMIT = (0, math.inf)


class Trail:
    """A fleet whose larger ones are tried, some at a time. `steps`: how far it is from the first one; `done`: all of
    them have been."""

    def __init__(self, fleet: NodeSet, steps: int, larger_ones: Iterator[tuple[NewNode, ...]]) -> None:
        self.fleet = fleet
        self.steps = steps
        self.larger_ones = larger_ones
        self.times = 0
        self.done = False

    def near(self) -> tuple[int, int, int, float]:
        """Less is more promising: it leaves little over, and little has been tried."""
        return -self.fleet.passed, len(self.fleet.bindings.unbound), self.times + self.steps, self.fleet.price

    def cheap(self) -> tuple[int, float]:
        """Less is more promising: little has been tried, and it costs little in the end."""
        return self.times, price_in_the_end(self.fleet)

    def following(self) -> Iterator[tuple[NewNode, ...]]:
        """The next ones."""
        self.times += 1
        for _ in range(TRIES_PER_TURN):
            found = next(self.larger_ones, None)
            if found is None:
                self.done = True
                return
            yield found


class NodeSetSearch:
    """The search for one problem."""

    def __init__(self, fleets: NodeSets, old: int, effort: Effort) -> None:
        """`old`: how many nodes there are already."""
        self._fleets = fleets
        self._old = old
        self._effort = effort
        self._known: dict[tuple[tuple[int, ...], frozenset[str]], NodeSet] = {}
        self._seen: set[tuple[int, ...]] = set()
        self._turns = 0

    def judged(
        self, berths: tuple[NewNode, ...], uids: frozenset[str], least: tuple[int, float] = NO_LIMIT
    ) -> NodeSet | None:
        """None if the effort is spent, or if it is no match for `least`: see `Fleets.judged`."""
        key = tuple([each.kind for each in berths]), uids
        known = self._known.get(key)
        if known is not None:
            return known
        if not self._effort.take(TOUCHES_PER_RUN + len(uids) + len(berths) + self._old):
            return None
        found, touches = self._fleets.judged(berths, uids, self._effort.left, least)
        self._effort.charge(touches)
        if found is not None:
            self._known[key] = found
        return found

    def further(self, fleet: NodeSet) -> list[NewNode] | None:
        """See `Fleets.further`; None, too, if the effort is spent."""
        return self._fleets.further(fleet) if self._effort.take(self._fleets.cost_of_further(fleet)) else None

    def trail(self, fleet: NodeSet, below: float) -> Trail:
        """To begin with, for `whole`; of larger ones that cost less than `below`."""
        return Trail(fleet, 0, self._unseen(fleet, below))

    def whole(self, trails: list[Trail], below: float) -> NodeSet | None:
        """The next fleet that leaves nobody over and costs less than `below`; None if none is found.
        Mostly the trail is followed that leaves least over, and by turns one that is cheap."""
        while trails and self._effort.left:
            self._turns += 1
            trail = min(trails, key=Trail.near if self._turns % CHEAP_TURN_EVERY else Trail.cheap)
            found = sorted(self._tried(trail, below), key=_rank)
            if trail.done:
                trails.remove(trail)
            if found and not found[0].bindings.unbound:
                return found[0]
            cheapest = sorted(found, key=price_in_the_end)[:1]
            nearest = dict.fromkeys([*found[:1], *cheapest])
            trails += [Trail(each, trail.steps + 1, self._unseen(each, below)) for each in nearest]
        return None

    def _tried(self, trail: Trail, below: float) -> Iterator[NodeSet]:
        """Larger fleets, until some are better than the fleet; where one leaves nobody over, only cheaper ones then."""
        uids = frozenset([*trail.fleet.bindings.node_of, *trail.fleet.bindings.unbound])
        best, spare = trail.fleet, MORE_LEFT_OVER
        for number, berths in enumerate(trail.following(), start=1):
            if total_price(berths) < below - TOLERANCE:
                found = self.judged(berths, uids, (best.passed, len(best.bindings.unbound) + spare))
                if found is not None:
                    yield found
                if found is not None and _rank(found) < _rank(best):
                    best, spare = found, 0
            if not best.bindings.unbound:
                below = best.price
            elif best is not trail.fleet and number >= MIN_TRIES:
                return

    def _unseen(self, fleet: NodeSet, below: float) -> Iterator[tuple[NewNode, ...]]:
        """Larger fleets that may be tried and have not been."""
        for each in self._larger(fleet, below):
            key = self._fleets.likeness(each)
            if key not in self._seen and self._fleets.allowed(each):
                self._seen.add(key)
                yield each

    def _larger(self, fleet: NodeSet, below: float) -> Iterator[tuple[NewNode, ...]]:
        further = self.further(fleet) or []
        if further and total_price(more := (*fleet.berths, *further)) < below - TOLERANCE:
            yield more
        if self._effort.left:
            found, touches = larger_sets(self._fleets, fleet, further, below)
            self._effort.charge(touches)
            yield from found

    def leaner(self, fleet: NodeSet) -> NodeSet:
        """Without what a whole fleet does not need: nodes left out or smaller, the dearest first, while it stays whole.
        Only nodes whose pods any other node may have."""
        improved = not fleet.bindings.unbound
        while improved:
            improved = False
            order = sorted(range(len(fleet.berths)), key=lambda n: (-fleet.berths[n].claim.price, n))
            for number in order:
                found = self._first_whole(self._smaller(fleet, number), fleet)
                if found is not None:
                    fleet, improved = found, True
                    break
        return fleet

    def _first_whole(self, offers: Iterable[tuple[NewNode, ...]], fleet: NodeSet) -> NodeSet | None:
        for berths in offers:
            if not self._fleets.allowed(berths):
                continue
            found = self.judged(berths, frozenset(fleet.bindings.node_of), (len(SCHEDULER_VARIANTS), 0))
            if found is not None and not found.bindings.unbound:
                return found
        return None

    def _smaller(self, fleet: NodeSet, number: int) -> Iterator[tuple[NewNode, ...]]:
        if self._fleets.bound_to(fleet, number):
            return
        yield fleet.berths[:number] + fleet.berths[number + 1 :]
        for each in islice(self._fleets.smaller(fleet, number), MAX_SMALLER_TYPES):
            yield _with_node_replaced(fleet.berths, number, each)


def price_in_the_end(fleet: NodeSet) -> float:
    """About what it costs when there are nodes for what it leaves over, USD per hour: these are filled less."""
    pods = len(fleet.bindings.node_of) + len(fleet.bindings.unbound)
    return fleet.price * (1 + LEFTOVER_PRICE_FACTOR * len(fleet.bindings.unbound) / pods)


def _rank(fleet: NodeSet) -> tuple[int, int, float]:
    """By how many habits of the scheduler it leaves nobody over, then how many, then its price; less is better."""
    return -fleet.passed, len(fleet.bindings.unbound), fleet.price


def _with_node_replaced(berths: tuple[NewNode, ...], number: int, berth: NewNode) -> tuple[NewNode, ...]:
    return (*berths[:number], berth, *berths[number + 1 :])
