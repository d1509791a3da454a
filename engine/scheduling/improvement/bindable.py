"""Whether the pods of a plan can be bound where it puts them, one after another, in some order."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.scheduling.daemons import daemons
from kerf.engine.scheduling.improvement.company import Company
from kerf.engine.scheduling.improvement.manners import Manners, Pair, Place
from kerf.engine.scheduling.improvement.seats import existing, planned
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import Problem

Seated = tuple[Pair, int, str]
"""A pod, the number of its place, and its uid."""


def bindable(problem: Problem, made: Plan) -> bool:
    return not stuck(problem, made)


def stuck(problem: Problem, made: Plan) -> list[str]:
    """The pods (uids) that cannot be, by topology alone. Pods that ask nothing of others come last, or else one by one
    where the rest is stuck; or so do, too, those that others' spreads count, and their own do not."""
    given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    seats = [existing(each, given, problem) for each in (*problem.nodes, *problem.leaving)]
    seats += [planned(f"~{number}", each, given, problem) for number, each in enumerate(made.claims)]
    places = [Place(n, each.labels, each.known, each.name, each.taints) for n, each in enumerate(seats)]
    manners = Manners(problem)
    pairs = {each.uid: (each.namespace, each.shape) for each in problem.pods}
    number = {each.name: each.index for each in places}
    there = [(pairs[uid], number[each.node], uid) for each in made.placements for uid in each.pods]
    first = len(places) - len(made.claims)
    there += [(pairs[uid], first + n, uid) for n, each in enumerate(made.claims) for uid in each.pods]
    left = _left_over(Company(problem, manners, places), manners, there, frozenset())
    guests = _guests(manners, {pair for pair, _, _ in there}) if left else frozenset()
    if guests:
        left = min(left, _left_over(Company(problem, manners, places), manners, there, guests), key=len)
    return left


def _left_over(company: Company, manners: Manners, there: Iterable[Seated], late: frozenset[Pair]) -> list[str]:
    ruled, held = list[Seated](), list[Seated]()
    for each in there:
        (held if each[0] in late or not _asks(manners, each[0]) else ruled).append(each)
    while ruled or late.intersection(pair for pair, _, _ in held):
        rest = list(_left(company, ruled))
        if len(rest) == len(ruled):
            ready = [each for each in held if each[0] not in late or company.allows(*each[:2])]
            if not ready:
                return [uid for pair, _, uid in (*rest, *held) if _asks(manners, pair)]
            waiting = rest[0][0] if rest else ready[0][0]
            chosen = min(ready, key=lambda each: (*company.crowd(each[0], each[1], waiting), each))
            held.remove(chosen)
            company.bound(*chosen[:2])
        ruled = rest
    return []


def _asks(manners: Manners, pair: Pair) -> bool:
    return bool(manners.demands[pair].spreads or manners.demands[pair].together)


def _guests(manners: Manners, pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Pods that ask something themselves, and are counted by a spread that is none of theirs."""
    own = {pair: frozenset(each.count for each in manners.demands[pair].spreads) for pair in pairs}
    spread = frozenset(count for counts in own.values() for count in counts)
    return frozenset(
        pair
        for pair, counts in own.items()
        if _asks(manners, pair) and spread.intersection(manners.entered(pair)) - counts
    )


def _left(company: Company, waiting: Iterable[Seated]) -> Iterable[Seated]:
    """Binds what may be bound."""
    for each in waiting:
        if company.allows(*each[:2]):
            company.bound(*each[:2])
        else:
            yield each
