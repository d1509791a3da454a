"""From a set of new nodes on which pods are left over to one that binds whole.

Every step is a whole run of the scheduler's model. Pods that are left over get nodes of their own, or somewhere a
larger node, or one in the place of two; and what proves needless is left out again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from kerf.engine.scheduling.improvement.candidates import TOLERANCE
from kerf.engine.scheduling.improvement.effort import TOUCHES_A_RUN, Effort
from kerf.engine.scheduling.improvement.fleet import Berth, Fleet, Fleets

ROUNDS = 8
"""How often a fleet is made larger, until nobody is left over."""
SIZES = 3
"""How many types are tried in the place of one."""
UNIFORM = 12
"""How many fleets of one type are tried for each kind of node."""
TRIES = 12
"""How many larger fleets are tried before the best of them is gone on with."""


class Mending:
    """The search for one problem."""

    def __init__(self, fleets: Fleets, old: int, effort: Effort) -> None:
        """`old`: how many nodes there are already."""
        self._fleets = fleets
        self._old = old
        self._effort = effort

    def judged(self, berths: tuple[Berth, ...], uids: frozenset[str]) -> Fleet | None:
        """None if the effort is spent."""
        least = TOUCHES_A_RUN + len(uids) + len(berths) + self._old
        if not self._effort.take(least):
            return None
        found, touches = self._fleets.judged(berths, uids, self._effort.left)
        self._effort.charge(touches)
        return found

    def further(self, fleet: Fleet) -> list[Berth] | None:
        """See `Fleets.further`; None, too, if the effort is spent."""
        return self._fleets.further(fleet) if self._effort.take(self._fleets.cost_of_further(fleet)) else None

    def whole(self, fleet: Fleet, below: float) -> Fleet:
        """A fleet that leaves nobody over, or fewer, and costs less than `below`; this one if none was found."""
        best = min([fleet, *self._uniform(fleet, below)], key=_rank)
        for start in [fleet] if best is fleet else [fleet, best]:
            best = min(best, self._mended(start, below), key=_rank)
            if not best.bound.left:
                break
        return best

    def _mended(self, fleet: Fleet, below: float) -> Fleet:
        best = fleet
        for _ in range(ROUNDS):
            if not fleet.bound.left:
                break
            uids = frozenset([*fleet.bound.seats, *fleet.bound.left])
            tried = (self.judged(each, uids) for each in islice(self._larger(fleet, below), TRIES))
            found = [each for each in tried if each is not None]
            if not found:
                break
            fleet = min(found, key=_rank)
            best = min(best, fleet, key=_rank)
        return best

    def _uniform(self, fleet: Fleet, below: float) -> Iterator[Fleet]:
        """Fleets of nodes of one type, until one of each kind leaves nobody over."""
        if not fleet.bound.left:
            return
        uids = frozenset([*fleet.bound.seats, *fleet.bound.left])
        kinds = {each.claim.constraints: each for each in fleet.berths}
        for berth in kinds.values():
            offers = (each for each in self._fleets.uniform(berth, fleet) if self._worth_it(each, below))
            for each in islice(offers, UNIFORM):
                found = self.judged(each, uids)
                if found is not None:
                    yield found
                    if not found.bound.left:
                        break

    def _larger(self, fleet: Fleet, below: float) -> Iterator[tuple[Berth, ...]]:
        """The fleet with one node larger, least dear first, and with further nodes."""
        further = self.further(fleet)
        offers: list[tuple[float, int, tuple[Berth, ...]]] = []
        if further is not None:
            offers.append((-math.inf, -1, (*fleet.berths, *further)))
        kinds: dict[int, int] = {}  # the first node of each kind: one of several that are alike is enough
        pairs: set[tuple[int, int]] = set()
        for number, berth in enumerate(fleet.berths):
            for other in range(number):
                one = fleet.berths[other]
                pair = min(one.kind, berth.kind), max(one.kind, berth.kind)
                if pair in pairs:
                    continue
                pairs.add(pair)
                both = self._fleets.merged(one, berth)
                if both is not None:
                    rest = tuple(each for n, each in enumerate(fleet.berths) if n not in (other, number))
                    more = both.claim.price - berth.claim.price - one.claim.price
                    offers.append((more, number, (*rest, both)))
            if kinds.setdefault(berth.kind, number) == number:
                offers += (
                    (each.claim.price - berth.claim.price, number, _with(fleet.berths, number, each))
                    for each in self._fleets.roomier(berth)[:SIZES]
                )
        for _, _, berths in sorted(offers, key=lambda each: each[:2]):
            if self._worth_it(berths, below):
                yield berths

    def _worth_it(self, berths: tuple[Berth, ...], below: float) -> bool:
        return math.fsum(each.claim.price for each in berths) < below - TOLERANCE and self._fleets.allowed(berths)

    def leaner(self, fleet: Fleet) -> Fleet:
        """Without what a whole fleet does not need: nodes left out or smaller, the dearest first, while it stays whole.
        Only nodes whose pods any other node may have."""
        improved = not fleet.bound.left
        while improved:
            improved = False
            order = sorted(range(len(fleet.berths)), key=lambda n: (-fleet.berths[n].claim.price, n))
            for number in order:
                found = self._first_whole(self._smaller(fleet, number), fleet)
                if found is not None:
                    fleet, improved = found, True
                    break
        return fleet

    def _first_whole(self, offers: Iterable[tuple[Berth, ...]], fleet: Fleet) -> Fleet | None:
        for berths in offers:
            if not self._fleets.allowed(berths):
                continue
            found = self.judged(berths, frozenset(fleet.bound.seats))
            if found is None or not found.bound.left:
                return found
        return None

    def _smaller(self, fleet: Fleet, number: int) -> Iterator[tuple[Berth, ...]]:
        if self._fleets.bound_to(fleet, number):
            return
        yield fleet.berths[:number] + fleet.berths[number + 1 :]
        for each in islice(self._fleets.smaller(fleet, number), SIZES):
            yield _with(fleet.berths, number, each)


def _rank(fleet: Fleet) -> tuple[int, int, float]:
    """By how many habits of the scheduler it leaves nobody over, then how many, then its price; less is better."""
    return -fleet.passed, len(fleet.bound.left), fleet.price


def _with(berths: tuple[Berth, ...], number: int, berth: Berth) -> tuple[Berth, ...]:
    return (*berths[:number], berth, *berths[number + 1 :])
