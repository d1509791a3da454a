"""The trace of a candidate: its parts were planned one by one, and a tracer hears of them as of one pass."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.explain.tracer import NearMissesFor, PricedType, Tracer, TypeFunnel
from kerf.engine.scheduling.optimizer.alternative_plans import AlternativePlan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


def trace_candidate(candidate: AlternativePlan, tracer: Tracer, taken_by: Mapping[str, PendingPod]) -> None:
    """Plan the parts of a candidate again and tell the tracer of each.

    Claims get their numbers in the candidate. What concerns claims of the base plan that the candidate has not is left
    out. `taken_by`: by uid, the equal pods that take the places of some (`seats_in_turn`).
    """
    base = {claim.base_number: number for number, claim in enumerate(candidate.claims) if claim.base_number >= 0}
    place_of = Plan(tuple(claim.claim for claim in candidate.claims), candidate.base.placements).places
    part = RenumberingTracer(tracer, base, place_of, 0, taken_by)
    plan(candidate.problem, part)
    types_left = part.finished
    for number, claim in enumerate(candidate.claims):
        if claim.problem is not None and claim.base_number < 0:
            part = RenumberingTracer(tracer, {0: number}, place_of, part.classes, taken_by)
            plan(claim.problem, part)
            types_left |= part.finished
        elif claim.problem is not None:
            types_left[number] = _types_left(claim.problem)
    for number, claim in enumerate(candidate.claims):
        tracer.claim_finished(number, claim.claim.node_pool, types_left[number])


def _types_left(problem: Problem) -> tuple[PricedType, ...]:
    """The types that the one claim of a problem may become."""
    tracer = FunnelTracer()
    plan(problem, tracer)
    return tracer.funnel.claims[0].left


class RenumberingTracer:
    """Passes on to a tracer what one of several plannings tells, with classes and claims renumbered."""

    def __init__(
        self,
        tracer: Tracer,
        claims: Mapping[int, int],
        place_of: Mapping[str, str | int],
        classes: int,
        taken_by: Mapping[str, PendingPod] = MappingProxyType({}),
    ) -> None:
        """`claims`: which claims of this planning count, and their new numbers. `place_of`: the node or claim of each
        pod (uid) in the end. `classes`: how many classes earlier plannings had. `taken_by`: pods that are named in
        place of others (uid)."""
        self._tracer, self._taken_by = tracer, taken_by
        self._claims = claims
        self._place_of = place_of
        self._offset = classes
        self._known: dict[int, PodClass] = {}
        self.finished: dict[int, tuple[PricedType, ...]] = {}

    @property
    def classes(self) -> int:
        """How many classes there were so far, with this planning's."""
        return self._offset + max(self._known, default=-1) + 1

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
        final = self._place_of.get(pod.uid)
        if isinstance(final, str) or (
            isinstance(place, int) and place in self._claims and self._claims[place] == final
        ):
            self._tracer.placed(self._taken_by.get(pod.uid, pod), self._renumbered(wanted), final)

    def unplaced(self, pod: PendingPod, wanted: PodClass, reasons: tuple[Reason, ...]) -> None:
        self._tracer.unplaced(self._taken_by.get(pod.uid, pod), self._renumbered(wanted), reasons)

    def claim_finished(self, claim: int, node_pool: str, left: tuple[PricedType, ...]) -> None:
        if claim in self._claims:
            self.finished[self._claims[claim]] = left
