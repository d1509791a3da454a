"""The trace of a plan that was made in parts, one by one: a tracer hears of them as of one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.explain.tracer import NearMissesFor, PricedType, Tracer, TypeFunnel
from kerf.engine.scheduling.optimizer.alternative_plans import AlternativePlan
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

Trace = Callable[[Tracer], object]
"""Tells a tracer how a plan came about, by making it again."""


class TracedPlan(NamedTuple):
    """A plan, and how a tracer hears of it."""

    plan: Plan
    trace: Trace


def planners_own(problem: Problem, planned: Plan) -> TracedPlan:
    """The planner's own plan of a problem."""
    return TracedPlan(planned, partial(plan, problem))


class CombinedTrace:
    """A tracer that passes on to another what several plannings tell, with classes and claims renumbered.

    `taken_by`: by uid, the equal pods that are named in place of some (`seats_in_turn`).
    """

    def __init__(self, tracer: Tracer, taken_by: Mapping[str, PendingPod] = MappingProxyType({})) -> None:
        self._tracer, self._taken_by = tracer, taken_by
        self._claims: Mapping[int, int] = {}
        self._places: Mapping[str, str | int] = {}
        self._offset = 0
        self._known: dict[int, PodClass] = {}
        self._types_left: dict[int, tuple[PricedType, ...]] = {}

    def add(self, trace: Trace, claims: Mapping[int, int], places: Mapping[str, str | int]) -> None:
        """Tell of one planning. `claims`: which of its claims count, and their new numbers. `places`: the node or claim
        of each pod (uid) in the end."""
        self._claims, self._places = claims, places
        self._offset += max(self._known, default=-1) + 1
        self._known = {}
        trace(self)

    def add_types(self, number: int, problem: Problem) -> None:
        """Note the types that a claim (by number) may become: those of the one claim of a problem."""
        tracer = FunnelTracer()
        plan(problem, tracer)
        self._types_left[number] = tracer.funnel.claims[0].left

    def finish(self, claims: Sequence[OpenedClaim]) -> None:
        """Tell what the claims may become, after the last planning."""
        for number, types_left in sorted(self._types_left.items()):
            self._tracer.claim_finished(number, claims[number].node_pool, types_left)

    # ── what a planning tells ──────────────────────────────────────

    def _renumbered(self, pod_class: PodClass) -> PodClass:
        renumbered = self._known.get(pod_class.number)
        if renumbered is None:
            renumbered = self._known[pod_class.number] = copy(pod_class)
            renumbered.number += self._offset
        return renumbered

    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None:
        if not self._offset:
            self._tracer.pool_dropped(reason, funnel, near)

    def node_refused(self, wanted: PodClass, node: str, reason: Reason) -> None:
        self._tracer.node_refused(self._renumbered(wanted), node, reason)

    def claim_refused(self, wanted: PodClass, claim: int, reason: Reason) -> None:
        if claim in self._claims:
            self._tracer.claim_refused(self._renumbered(wanted), self._claims[claim], reason)

    def pool_considered(
        self, wanted: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None:
        if claim is None or claim in self._claims:
            number = None if claim is None else self._claims[claim]
            self._tracer.pool_considered(self._renumbered(wanted), reason, funnel, number)

    def placed(self, pod: PendingPod, wanted: PodClass, place: str | int) -> None:
        final = self._places.get(pod.uid)
        if isinstance(final, str) or (
            isinstance(place, int) and place in self._claims and self._claims[place] == final
        ):
            self._tracer.placed(self._taken_by.get(pod.uid, pod), self._renumbered(wanted), final)

    def unplaced(self, pod: PendingPod, wanted: PodClass, reasons: tuple[Reason, ...]) -> None:
        self._tracer.unplaced(self._taken_by.get(pod.uid, pod), self._renumbered(wanted), reasons)

    def claim_finished(self, claim: int, node_pool: str, left: tuple[PricedType, ...]) -> None:
        if claim in self._claims:
            self._types_left[self._claims[claim]] = left


def trace_candidate(candidate: AlternativePlan, taken_by: Mapping[str, PendingPod], tracer: Tracer) -> None:
    """Plan the parts of a candidate again and tell the tracer of each.

    Claims get their numbers in the candidate. What concerns claims of the base plan that the candidate has not is left
    out. `taken_by`: as for `CombinedTrace`.
    """
    places = Plan(candidate.opened, candidate.base.placements).places
    whole = CombinedTrace(tracer, taken_by)
    base = {claim.base_number: number for number, claim in enumerate(candidate.claims) if claim.base_number >= 0}
    whole.add(partial(plan, candidate.problem), base, places)
    for number, claim in enumerate(candidate.claims):
        if claim.problem is not None and claim.base_number < 0:
            whole.add(partial(plan, claim.problem), {0: number}, places)
        elif claim.problem is not None:
            whole.add_types(number, claim.problem)
    whole.finish(candidate.opened)
