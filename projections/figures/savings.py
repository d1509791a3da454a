"""Measure what moves saved: what the nodes that they took would have cost had they stayed, less what replaced them.

How long a node had stayed nobody knows. It is reckoned to have stayed, unless a later node of its NodePool came for
pods: these had found room on it, as far as its price goes. So a node that is removed each evening and launched again
each morning saved its nights, and nothing more. The prices are those of the launches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

from msgspec import Struct

from kerf.engine.model.disruption_reasons import BUDGET_REASONS
from kerf.projections.figures.lives import STATIC, Life, LivesFold
from kerf.projections.figures.measures import HOUR_MS, Measure

SAVED, GONE, REPLACEMENTS = "saved", "gone", "replacements"
MOVED = frozenset(reason.value for reason in BUDGET_REASONS)
"""Why moves take nodes. What goes for another reason goes whatever kerf chooses, and saves nothing."""
_LATER = "for pods"


class _Step(NamedTuple):
    """A node came or went. `what` is GONE, REPLACEMENTS, or `_LATER` for a node that came for pods. Of the steps of one
    time, the last takes what the others leave."""

    at: int
    rank: int
    claim: str
    what: str


class _Spared(Struct):
    """What an hour costs less since then (USD), as far as no later node stands in for a node that went."""

    since: int
    price: float
    about: dict[str, str]


class _Ledger:
    """What moves took off the price per hour of one NodePool: `net`, of which nodes stand in for the `spared`."""

    def __init__(self) -> None:
        self.net = 0.0
        self.spared: deque[_Spared] = deque()

    def taken(self, price: float) -> Iterator[_Spared]:
        """Give the parts that a node of this price stands in for, the oldest first."""
        left = min(price, max(0.0, self.net))
        self.net -= left
        while left > 0 and self.spared:
            oldest = self.spared[0]
            part = min(left, oldest.price)
            left -= part
            yield _Spared(oldest.since, part, oldest.about)
            if part < oldest.price:
                oldest.price -= part
            else:
                self.spared.popleft()


def saving_measures(fold: LivesFold, since: int, until: int) -> Iterator[Measure]:
    """Give what moves saved (USD) between two times (ms since the epoch), also moves before, and the nodes that they
    took and launched in this time. It is less than nothing for replacements that cost more, or that run before the
    others go."""
    ledgers: dict[str, _Ledger] = {}
    debts = _debts(fold)
    for step in sorted(_steps(fold)):
        if step.at > until:
            break
        life = fold.lives[step.claim]
        ledger = ledgers.setdefault(life.node_pool, _Ledger())
        about = {**life.about(), "reason": _reason(fold, life, step.what)}
        if step.what != _LATER and step.at >= since:
            yield Measure(step.at, about, {step.what: 1})
        if step.what == GONE:
            owed = fsum(debt.price for debt in debts.get(step.claim, ()))
            yield from _spare(ledger, _Spared(step.at, life.price - owed, about), since, until)
        elif step.what == _LATER:
            for part in ledger.taken(life.price):
                yield from _saved(part, since, step.at)
    for claim, owing in debts.items():  # while both run
        for debt in owing:
            alone = _Spared(debt.since, -debt.price, debt.about)
            yield from _saved(alone, since, min(fold.lives[claim].over or until, until))
    for ledger in ledgers.values():
        for part in ledger.spared:
            yield from _saved(part, since, until)


def _spare(ledger: _Ledger, part: _Spared, since: int, until: int) -> Iterator[Measure]:
    """Book what a move took off. What it put on is not taken back by any later node."""
    ledger.net += part.price
    if part.price > 0:
        ledger.spared.append(part)
    else:
        yield from _saved(part, since, until)


def _saved(part: _Spared, since: int, until: int) -> Iterator[Measure]:
    begin = max(part.since, since)
    if until > begin and part.price:
        yield Measure(begin, part.about, {SAVED: part.price * (until - begin) / HOUR_MS})


def _steps(fold: LivesFold) -> Iterator[_Step]:
    for claim, life in fold.lives.items():
        if not life.launched:
            continue
        if life.over and life.why in MOVED:
            yield _Step(life.over, 0, claim, GONE)
        if _replaced(fold, life):
            yield _Step(life.launched, 0, claim, REPLACEMENTS)
        elif life.launched_for != STATIC:
            yield _Step(life.launched, 1, claim, _LATER)


def _debts(fold: LivesFold) -> dict[str, list[_Spared]]:
    """What the replacements of each node cost, shared by the nodes of a move as these cost themselves."""
    found: dict[str, list[_Spared]] = {}
    for life in fold.lives.values():
        replaced = _replaced(fold, life) if life.launched else []
        whole = fsum(other.price for other in replaced)
        for other in replaced:
            share = other.price / whole if whole else 1 / len(replaced)
            about = {**other.about(), "reason": _reason(fold, life, REPLACEMENTS)}
            found.setdefault(other.claim, []).append(_Spared(life.launched, life.price * share, about))
    return found


def _replaced(fold: LivesFold, life: Life) -> list[Life]:
    """The nodes that a replacement came for. One that went for another reason than its move's is not among them: its
    pods had needed a new node without the move, too."""
    known = [fold.lives[name] for name in life.replaces if name in fold.lives]
    return [other for other in known if not other.over or other.why in MOVED]


def _reason(fold: LivesFold, life: Life, what: str) -> str:
    if what != REPLACEMENTS:
        return life.why
    whys = (other.why for other in _replaced(fold, life))
    return next((why for why in whys if why in MOVED), life.launched_for.rpartition(": ")[2])
