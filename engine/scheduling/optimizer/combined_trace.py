"""A plan that was put together from parts, told as if the planner had made it in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.explain.tracer import Candidate as Offered
from kerf.engine.scheduling.explain.tracer import NearMissesFor, Tracer, TypeFunnel
from kerf.engine.scheduling.optimizer.candidates import Candidate
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


def trace_candidate(candidate: Candidate, tracer: Tracer) -> None:
    """Tell the tracer how each part of the candidate came about. Claims are numbered as in the candidate; what
    concerns claims of the base plan that are not in it is left out."""
    base = {part.base: number for number, part in enumerate(candidate.parts) if part.base >= 0}
    final: dict[str, str | int] = {uid: each.node for each in candidate.base.placements for uid in each.pods}
    final |= {uid: number for number, part in enumerate(candidate.parts) for uid in part.claim.pods}
    within = RenumberingTracer(tracer, base, final, 0)
    plan(candidate.question, within)
    finished = dict(within.finished)
    for number, part in enumerate(candidate.parts):
        if part.question is not None:
            finished[number] = _types_left(part.question)
            if part.base < 0:
                within = RenumberingTracer(tracer, {0: number}, final, within.classes)
                plan(part.question, within)
    for number, part in enumerate(candidate.parts):
        tracer.claim_finished(number, part.claim.node_pool, finished[number])


def _types_left(question: Problem) -> tuple[Offered, ...]:
    tracer = FunnelTracer()
    plan(question, tracer)
    return tracer.funnel.claims[0].left


class RenumberingTracer:
    """Passes on what one planning tells, with classes and claims renumbered."""

    def __init__(self, tracer: Tracer, claims: Mapping[int, int], final: Mapping[str, str | int], classes: int) -> None:
        """`claims`: the planning's numbers of claims that count, and what they become; `final`: where each pod is in
        the end; `classes`: how many classes came before."""
        self._tracer = tracer
        self._claims = claims
        self._final = final
        self._offset = classes
        self._known: dict[int, PodClass] = {}
        self.finished: list[tuple[int, tuple[Offered, ...]]] = []

    @property
    def classes(self) -> int:
        return self._offset + max(self._known, default=-1) + 1

    def _class(self, wanted: PodClass) -> PodClass:
        found = self._known.get(wanted.number)
        if found is None:
            found = self._known[wanted.number] = copy(wanted)
            found.number += self._offset
        return found

    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None:
        if not self._offset:
            self._tracer.pool_dropped(reason, funnel, near)

    def node_refused(self, wanted: PodClass, node: str, reason: Reason) -> None:
        self._tracer.node_refused(self._class(wanted), node, reason)

    def claim_refused(self, wanted: PodClass, claim: int, reason: Reason) -> None:
        if claim in self._claims:
            self._tracer.claim_refused(self._class(wanted), self._claims[claim], reason)

    def pool_considered(
        self, wanted: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None:
        if claim is None or claim in self._claims:
            number = None if claim is None else self._claims[claim]
            self._tracer.pool_considered(self._class(wanted), reason, funnel, number)

    def placed(self, pod: PendingPod, wanted: PodClass, place: str | int) -> None:
        where = self._final.get(pod.uid)
        if isinstance(where, str) or (
            isinstance(place, int) and place in self._claims and self._claims[place] == where
        ):
            self._tracer.placed(pod, self._class(wanted), where)

    def unplaced(self, pod: PendingPod, wanted: PodClass, reasons: tuple[Reason, ...]) -> None:
        self._tracer.unplaced(pod, self._class(wanted), reasons)

    def claim_finished(self, claim: int, node_pool: str, left: tuple[Offered, ...]) -> None:
        if claim in self._claims:
            self.finished.append((self._claims[claim], left))
