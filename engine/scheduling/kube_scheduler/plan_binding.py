"""Whether the pods of a plan can be bound where it puts them, one after another, in some order."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.scheduling.kube_scheduler.binding_order import BindingOrder, Seated, asks
from kerf.engine.scheduling.kube_scheduler.interpod_counts import Company
from kerf.engine.scheduling.kube_scheduler.interpod_rules import Manners, Pair, Place
from kerf.engine.scheduling.kube_scheduler.node_info import Seat, existing, planned
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem


class Binding:
    """Of the pods of one problem; what all its plans share is made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._daemons = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self._there = [existing(each, self._daemons, problem) for each in (*problem.nodes, *problem.leaving)]
        self._numbers = {each.name: number for number, each in enumerate(self._there)}
        self._manners = Manners(problem)
        self._company = Company(problem, self._manners, _places(self._there, 0))
        self._pairs = {each.uid: (each.namespace, each.shape) for each in problem.pods}

    def binds(self, made: Plan) -> bool:
        """Whether all can be."""
        return not self.stuck(made)

    def stuck(self, made: Plan) -> list[str]:
        """The pods (uids) that cannot be bound, by topology alone. Pods that ask nothing of others come last, or else
        one by one where the rest is stuck; or so do, too, those that others' spreads count, and their own do not."""
        pairs, first = self._pairs, len(self._there)
        seats = [planned(f"~{n}", each, self._daemons, self._problem) for n, each in enumerate(made.claims)]
        places = _places(seats, first)
        pods = [(pairs[uid], self._numbers[each.node], uid) for each in made.placements for uid in each.pods]
        pods += [(pairs[uid], first + n, uid) for n, each in enumerate(made.claims) for uid in each.pods]
        left = self._left_over(places, pods, frozenset())
        guests = _guests(self._manners, {pair for pair, _, _ in pods}) if left else frozenset()
        if guests:
            left = min(left, self._left_over(places, pods, guests), key=len)
        return left

    def _left_over(self, places: Iterable[Place], pods: Iterable[Seated], late: frozenset[Pair]) -> list[str]:
        return BindingOrder(self._company.joined(places), self._manners, pods, late).left_over()


def _places(seats: Iterable[Seat], first: int) -> list[Place]:
    return [Place(n, each.labels, each.known, each.name, each.taints) for n, each in enumerate(seats, start=first)]


def _guests(manners: Manners, pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Pods that ask something themselves, and are counted by a spread that is none of theirs."""
    own = {pair: frozenset(each.count for each in manners.demands[pair].spreads) for pair in pairs}
    spread = frozenset(count for counts in own.values() for count in counts)
    return frozenset(
        pair
        for pair, counts in own.items()
        if asks(manners, pair) and spread.intersection(manners.entered(pair)) - counts
    )
