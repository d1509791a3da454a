"""Work out what a PodDisruptionBudget allows at a moment, as its controller in the cluster would (D-150)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import is_terminal
from kerf.engine.scheduling.matching.label_selectors import selector_matches
from kerf.engine.state.state import State


def with_status(budget: PodDisruptionBudget, state: State) -> PodDisruptionBudget:
    """Return the budget with its status over the pods of the state. The pods that are there count as those that are
    to be there: the record does not keep how many replicas a workload wants."""
    pods = [
        pod
        for pod in state.facts.pods.values()
        if pod.namespace == budget.namespace
        and not is_terminal(pod)
        and selector_matches(budget.selector, state.indexes.blobs.shape(pod.shape).labels)
    ]
    expected = len(pods)
    healthy = sum(pod.ready and not pod.deleting for pod in pods)
    if budget.max_unavailable is not None:
        desired = max(0, expected - _share(budget.max_unavailable, expected))
    else:
        desired = _share(budget.min_available or "1", expected)
    allowed = max(0, healthy - desired) if pods else 0
    return replace(budget, disruptions_allowed=allowed, expected_pods=expected, desired_healthy=desired)


def _share(text: str, whole: int) -> int:
    """Read an integer, or a percentage of the whole, rounded up."""
    return -(-int(text[:-1]) * whole // 100) if text.endswith("%") else int(text)
