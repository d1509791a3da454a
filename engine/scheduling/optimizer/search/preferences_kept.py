"""How many of their preferences pods keep in a plan; the others were given up (S-33)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.tracer import NearMissesFor, PricedType, TypeFunnel
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


class _PreferencesTracer:
    """A tracer that only notes, for each placed pod, how many preferences are left in its shape."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}

    def placed(self, pod: PendingPod, wanted: PodClass, place: str | int) -> None:
        self.kept[pod.uid] = _preferences(wanted.shape)

    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None: ...
    def node_refused(self, wanted: PodClass, node: str, reason: Reason) -> None: ...
    def claim_refused(self, wanted: PodClass, claim: int, reason: Reason) -> None: ...
    def pool_considered(
        self, wanted: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None: ...
    def unplaced(self, pod: PendingPod, wanted: PodClass, reasons: tuple[Reason, ...]) -> None: ...
    def claim_finished(self, claim: int, node_pool: str, left: tuple[PricedType, ...]) -> None: ...


def preferences_kept(problem: Problem) -> dict[str, int]:
    """For each pod (uid) that the planner places, how many of its preferences it keeps."""
    tracer = _PreferencesTracer()
    plan(problem, tracer)
    return tracer.kept


def _preferences(shape: PodShape) -> int:
    """How many preferences are left in a shape. One of them is not to tolerate every soft taint."""
    return (
        len(shape.preferred_terms)
        + sum(term.weight > 0 for term in (*shape.affinity, *shape.anti_affinity))
        + sum(constraint.when_unsatisfiable != "DoNotSchedule" for constraint in shape.spread)
        + (TOLERATES_PREFER_NO_SCHEDULE not in shape.tolerations)
    )
