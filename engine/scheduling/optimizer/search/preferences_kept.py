"""How many of their preferences pods keep in a plan; the others were given up (S-33)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, TOLERATES_PREFER_NO_SCHEDULE
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_requirements import hard_spreads
from kerf.engine.scheduling.problem.problem import PendingPod, Problem


class _PreferencesTracer:
    """A tracer that only notes, for each placed pod, how many preferences are left in its shape. One of them is not to
    tolerate every soft taint."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}

    def placed(self, pod: PendingPod, wanted: PodClass, place: str | int) -> None:
        tolerates = TOLERATES_PREFER_NO_SCHEDULE in wanted.shape.tolerations
        self.kept[pod.uid] = _soft_rules(wanted.shape) + (not tolerates)

    def _nothing(self, *_: object, **__: object) -> None:
        """What else a tracer is told."""

    pool_dropped = node_refused = claim_refused = pool_considered = unplaced = claim_finished = _nothing


def preferences_kept(problem: Problem) -> dict[str, int]:
    """For each pod (uid) that the planner places, how many of its preferences it keeps."""
    tracer = _PreferencesTracer()
    plan(problem, tracer)
    return tracer.kept


def has_preferences(problem: Problem) -> bool:
    """Whether some pod or NodePool has preferences, which a plan may give up."""
    return any(_soft_rules(problem.shapes[digest]) for digest in {pod.shape for pod in problem.pods}) or any(
        taint.effect == PREFER_NO_SCHEDULE for pool in problem.pools for taint in pool.pool.taints
    )


def _soft_rules(shape: PodShape) -> int:
    """How many preferences for nodes and for other pods are left in a shape."""
    soft_terms = sum(term.weight > 0 for term in (*shape.affinity, *shape.anti_affinity))
    return len(shape.preferred_terms) + soft_terms + len(shape.spread) - len(hard_spreads(shape))
