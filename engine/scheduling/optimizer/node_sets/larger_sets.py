"""Larger sets of new nodes for one on which pods are left over, those first that promise most.

A node more, one as a larger type, one in the place of two, and all nodes of one sort as nodes of another type: few
large nodes have more room in one place than many small ones that are filled to the same part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from kerf.engine.scheduling.optimizer.candidates import TOLERANCE
from kerf.engine.scheduling.optimizer.node_sets.leftover_estimate import NODES_PER_TOUCH, LeftoverEstimate
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NewNode, NodeSet, NodeSets

MAX_TYPES_ADDED = 8
"""How many types are tried for a node more."""
MAX_UNIFORM_SETS = 24
"""How many fleets with the nodes of one sort as another type, or with further nodes of another type, are looked at."""
MAX_MERGED_SETS = 64
"""How many fleets with one node in the place of two are looked at."""
PROMISING_PER_CHEAP = 3
"""After so many fleets that promise most comes one of the cheapest: what is thought of them is not certain."""

NewNodes = tuple[NewNode, ...]
T = TypeVar("T")


def larger_sets(
    fleets: NodeSets, fleet: NodeSet, further: Sequence[NewNode], below: float
) -> tuple[list[NewNodes], int]:
    """Those that cost less than `below`, by how many pods they are thought to leave over. Of those that are thought to
    leave as many, first one here and there between the cheapest and the dearest: the cheapest are hardly any larger.
    `further`: nodes that would be launched for what is left over. And what it cost to think of them, in touches."""
    before = fleets.touches
    outlook = LeftoverEstimate(fleets, fleet)
    found: dict[tuple[int, ...], tuple[float, NewNodes]] = {}
    touches = 0
    for each in _all_larger(fleets, fleet, further):
        touches += 1 + len(each) // NODES_PER_TOUCH
        cost = total_price(each)
        if cost < below - TOLERANCE:
            found.setdefault(fleets.likeness(each), (cost, each))
    cheapest = sorted(found.values(), key=lambda each: each[0])
    by_left: dict[int, list[NewNodes]] = {}
    for _, each in cheapest:
        by_left.setdefault(outlook.left(each), []).append(each)
    best = [each for left in sorted(by_left) for each in spread_out(by_left[left])]
    mixed = _mixed(best, [each for _, each in cheapest])
    return list(dict.fromkeys(mixed)), touches + outlook.touches + fleets.touches - before


def spread_out(given: Sequence[T]) -> Iterator[T]:
    """The first, and then those that halve what lies between those before."""
    step = 1 << max(0, len(given) - 1).bit_length()
    yield from given[:1]
    while step > 1:
        yield from given[step // 2 :: step]
        step //= 2


def _mixed(best: Sequence[NewNodes], cheapest: Sequence[NewNodes]) -> Iterator[NewNodes]:
    for number, each in enumerate(best):
        yield each
        if number % PROMISING_PER_CHEAP == PROMISING_PER_CHEAP - 1:
            yield cheapest[number // PROMISING_PER_CHEAP]


def total_price(berths: Iterable[NewNode]) -> float:
    """USD per hour."""
    return math.fsum([each.claim.price for each in berths])


def _all_larger(fleets: NodeSets, fleet: NodeSet, further: Sequence[NewNode]) -> Iterator[NewNodes]:
    berths = fleet.berths
    for each in dict.fromkeys(each for each in berths if not each.fixed):
        for size in fleets.sizes(each)[:MAX_TYPES_ADDED]:
            yield (*berths, size)
    for each in dict.fromkeys(further):
        for size in fleets.sizes(each)[:MAX_UNIFORM_SETS]:
            for count in sorted({1, (len(further) + 1) // 2, len(further)}):
                yield (*berths, *[size] * count)
    first: dict[int, int] = {}  # of each kind of node: one of several that are alike is enough
    for number, berth in enumerate(berths):
        if first.setdefault(berth.kind, number) == number:
            for each in fleets.roomier(berth):
                yield (*berths[:number], each, *berths[number + 1 :])
    yield from islice(_merged(fleets, berths), MAX_MERGED_SETS)
    yield from _uniform(fleets, fleet)


def _merged(fleets: NodeSets, berths: NewNodes) -> Iterator[NewNodes]:
    pairs: set[tuple[int, int]] = set()
    for number, berth in enumerate(berths):
        for other, one in enumerate(berths[:number]):
            pair = min(one.kind, berth.kind), max(one.kind, berth.kind)
            if pair in pairs:
                continue
            pairs.add(pair)
            both = fleets.merged(one, berth)
            if both is not None:
                yield (*(each for n, each in enumerate(berths) if n not in (other, number)), both)


def _uniform(fleets: NodeSets, fleet: NodeSet) -> Iterator[NewNodes]:
    """Nodes that can be alike as nodes of one type: those of one sort, those that can be of that sort, and all."""
    sorts: dict[object, list[int]] = {}
    for number, berth in enumerate(fleet.berths):
        if not berth.fixed:
            sorts.setdefault((berth.claim.node_pool, berth.claim.constraints), []).append(number)
    groups: dict[object, tuple[NewNode, list[int]]] = {}
    changing = [number for number, berth in enumerate(fleet.berths) if not berth.fixed]
    for numbers in sorts.values():
        one = fleet.berths[numbers[0]]
        every = one, changing
        for berth, group in ((one, numbers), every, _joined_sorts(fleets, fleet, one, [numbers, *sorts.values()])):
            groups.setdefault((berth.claim.node_pool, berth.claim.constraints, tuple(group)), (berth, group))
    for berth, group in groups.values():
        chosen = frozenset(group)
        rest = [each for number, each in enumerate(fleet.berths) if number not in chosen]
        for made in fleets.uniform(berth, fleet, group, MAX_UNIFORM_SETS):
            yield (*rest, *made)


def _joined_sorts(
    fleets: NodeSets, fleet: NodeSet, one: NewNode, sorts: Iterable[Sequence[int]]
) -> tuple[NewNode, list[int]]:
    """The nodes (by number, of sorts in this order) that can be what this one is and what those before them are."""
    group: set[int] = set()
    for numbers in sorts:
        both = fleets.joined(one, fleet.berths[numbers[0]])
        if both is not None:
            one = both
            group.update(numbers)
    return one, sorted(group)
