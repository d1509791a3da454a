"""Whether the pods of a plan can be bound where it puts them, one after another, in some order."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.scheduling.daemons import daemons
from kerf.engine.scheduling.improvement.company import Company
from kerf.engine.scheduling.improvement.manners import Manners, Pair, Place
from kerf.engine.scheduling.improvement.seats import existing, planned
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import Problem

Seated = tuple[Pair, int]
"""A pod, and the number of its place."""


def bindable(problem: Problem, made: Plan) -> bool:
    """By topology alone. Pods that ask nothing of others come last, or else one by one where the rest is stuck."""
    given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    seats = [existing(each, given, problem) for each in (*problem.nodes, *problem.leaving)]
    seats += [planned(f"~{number}", each, given, problem) for number, each in enumerate(made.claims)]
    places = [Place(n, each.labels, each.known, each.name, each.taints) for n, each in enumerate(seats)]
    manners = Manners(problem)
    company = Company(problem, manners, places)
    pairs = {each.uid: (each.namespace, each.shape) for each in problem.pods}
    number = {each.name: each.index for each in places}
    there = [(pairs[uid], number[each.node]) for each in made.placements for uid in each.pods]
    first = len(places) - len(made.claims)
    there += [(pairs[uid], first + n) for n, each in enumerate(made.claims) for uid in each.pods]
    ruled = [each for each in there if manners.demands[each[0]].spreads or manners.demands[each[0]].together]
    free = [each for each in there if each not in set(ruled)]
    while ruled:
        rest = list(_left(company, ruled))
        if len(rest) == len(ruled):
            if not free:
                return False
            stuck = rest[0][0]
            chosen = min(free, key=lambda each: (*company.crowd(each[0], each[1], stuck), each))
            free.remove(chosen)
            company.bound(*chosen)
        ruled = rest
    return True


def _left(company: Company, waiting: Iterable[Seated]) -> Iterable[Seated]:
    """Binds what may be bound."""
    for pair, place in waiting:
        if company.allows(pair, place):
            company.bound(pair, place)
        else:
            yield pair, place
