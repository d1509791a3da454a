"""Among the plans that were found, the one that is cheapest when the cluster's scheduler has had its way.

A pod that the scheduler would find no place for waits for another pass and costs another node. So a plan that binds
whole comes before any other, and what a plan lacks for that is added to it while it is still cheaper than the rest:
the pods that would be left over get nodes of their own, and their old places become slack.
"""

from __future__ import annotations

import math

from msgspec import Struct

from kerf.engine.scheduling.improvement.candidates import TOLERANCE, Candidate, assembled
from kerf.engine.scheduling.improvement.effort import Effort
from kerf.engine.scheduling.improvement.improve import Search
from kerf.engine.scheduling.improvement.rating import unbound
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem import Problem

LOOKED_AT = 4
"""How many of the cheapest plans are rated, beside the first one."""
ROUNDS = 4
"""How often a plan gets further nodes for what is left over."""
PAIRS_A_STEP = 10_000
"""A step is to rate so many pairs of a pod and a node."""


class Rated(Struct, frozen=True):
    """`unbound`: the pods (uids) that the scheduler finds no place for; `later` is what nodes of their own cost."""

    candidate: Candidate
    unbound: tuple[str, ...]
    later: float

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        cost = self.candidate.price + self.later
        return bool(self.unbound), round(cost / TOLERANCE) * TOLERANCE, len(self.unbound), len(self.candidate.parts)


def carried_out(problem: Problem, first: Plan, search: Search, effort: Effort) -> Rated | None:
    """The best of the plans found so far, or of those made of them; None if the effort does not suffice to rate the
    cheapest."""
    cheapest = sorted(search.found, key=lambda each: (each.price, len(each.parts)))
    below = search.found[0].price + 2 * TOLERANCE
    best: Rated | None = None
    for each in [*cheapest[:LOOKED_AT], search.found[0]]:
        candidate: Candidate | None = each
        for _ in range(ROUNDS):
            if candidate is None or candidate.price >= below:
                break
            if not effort.take(_steps(problem, candidate)):
                return best  # dearer plans are no better for being known better
            rated = _rated(problem, first, search, candidate)
            if best is None or rated.rank < best.rank:
                best = rated
            if not rated.unbound:
                below = min(below, candidate.price)
                break
            candidate = search.eased(candidate, rated.unbound, below)
    return best


def _rated(problem: Problem, first: Plan, search: Search, candidate: Candidate) -> Rated:
    left = unbound(problem, assembled(candidate, first))
    return Rated(candidate, left, math.fsum(search.own_node(uid) for uid in left))


def _steps(problem: Problem, candidate: Candidate) -> int:
    return 1 + len(problem.pods) * (len(candidate.parts) + len(problem.nodes)) // PAIRS_A_STEP
