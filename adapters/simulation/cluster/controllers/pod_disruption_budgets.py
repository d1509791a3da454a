"""PodDisruptionBudgets: the controller that keeps `disruptionsAllowed` true, and the eviction subresource.

As in Kubernetes, a budget counts ready pods against what their controllers want, an eviction spends one disruption, and
a pod under two budgets cannot be evicted at all.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.controllers.workloads import Workloads
from kerf.adapters.simulation.scheduler.label_selectors import selector_matches
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, is_active, is_terminal

SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class EvictionAnswer(Struct, frozen=True):
    """An HTTP status and its message."""

    code: int
    message: str = ""


class BudgetStatus(Struct, frozen=True):
    healthy: int
    expected: int
    desired: int
    allowed: int


class PodDisruptionBudgets:
    def __init__(self, api: ApiServer, clock: Clock, workloads: Workloads) -> None:
        self._api, self._clock, self._workloads = api, clock, workloads
        self._dirty: dict[str, None] = {}
        api.listen(self._changed)

    # ── the budget controller ───────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if not self._api.budgets:
            return
        concerned = [item for item in (change.old, change.new) if isinstance(item, Pod | PodDisruptionBudget)]
        for item in concerned:
            if not self._dirty:
                self._clock.after(0, "disruption controller", self._reconcile)
            self._dirty[item.namespace] = None

    def _reconcile(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for budget in list(self._api.budgets.values()):
            if budget.namespace in dirty:
                found = self.status(budget)
                self._api.put(
                    replace(
                        budget,
                        disruptions_allowed=found.allowed,
                        expected_pods=found.expected,
                        desired_healthy=found.desired,
                    )
                )

    def status(self, budget: PodDisruptionBudget) -> BudgetStatus:
        pods = [pod for pod in self._pods_in(budget.namespace) if self._covers(budget, pod)]
        healthy = sum(pod.ready and not pod.deleting for pod in pods)
        expected = self._expected(budget, pods)
        if expected is None:
            return BudgetStatus(healthy=healthy, expected=0, desired=0, allowed=0)
        desired = _desired(budget, expected)
        allowed = max(0, healthy - desired) if pods else 0
        return BudgetStatus(healthy=healthy, expected=expected, desired=desired, allowed=allowed)

    def _expected(self, budget: PodDisruptionBudget, pods: list[Pod]) -> int | None:
        """Return how many pods there are to be. None if that cannot be known, for pods without a controller that has a
        scale; then no disruption is allowed."""
        if budget.max_unavailable is None and budget.min_available is not None and "%" not in budget.min_available:
            return len(pods)
        scales = {pod.owner.uid if pod.owner else "": self._scale(pod) for pod in pods}
        expected = 0
        for scale in scales.values():
            if scale is None:
                return None
            expected += scale
        return expected

    def _scale(self, pod: Pod) -> int | None:
        return None if pod.owner is None else self._workloads.replicas_of(pod.owner.uid)

    def _pods_in(self, namespace: str) -> list[Pod]:
        return [pod for pod in self._api.pods.values() if pod.namespace == namespace and not is_terminal(pod)]

    def _covers(self, budget: PodDisruptionBudget, pod: Pod) -> bool:
        return budget.namespace == pod.namespace and selector_matches(budget.selector, self._api.shape(pod).labels)

    # ── the eviction subresource ────────────────────────────────────────────────────────────────────────────

    def evict(self, namespace: str, name: str, uid: str) -> EvictionAnswer:
        """Evict a pod. Answers 200, 404 (no such pod), 409 (another uid), 429 (a budget forbids it), or 500 (several
        budgets)."""
        pod = self._api.pod_named(namespace, name)
        if pod is None:
            return EvictionAnswer(404, f'pods "{name}" not found')
        if pod.uid != uid:
            return EvictionAnswer(
                409, f"the UID in the precondition ({uid}) does not match the UID in record ({pod.uid})"
            )
        if is_active(pod) and pod.phase != "Pending":
            refused = self._spend(pod)
            if refused is not None:
                return refused
        if not pod.deleting:
            self._api.delete_pod(pod)
        return EvictionAnswer(200)

    def _spend(self, pod: Pod) -> EvictionAnswer | None:
        """Take one disruption from the pod's budget, or return the answer that refuses it."""
        budgets = [budget for budget in self._api.budgets.values() if self._covers(budget, pod)]
        if not budgets:
            return None
        if len(budgets) > 1:
            return EvictionAnswer(
                500,
                SEVERAL_BUDGETS,
            )
        budget = budgets[0]
        if not pod.ready:
            status = self.status(budget)
            if budget.always_allow_unhealthy or (status.healthy >= status.desired > 0):
                return None
        if budget.disruptions_allowed <= 0:
            return EvictionAnswer(429, "Cannot evict pod as it would violate the pod's disruption budget.")
        self._api.put(replace(budget, disruptions_allowed=budget.disruptions_allowed - 1))
        return None


def _desired(budget: PodDisruptionBudget, expected: int) -> int:
    """Return how many of these pods have to stay healthy."""
    if budget.max_unavailable is not None:
        return max(0, expected - _scaled(budget.max_unavailable, expected))
    return _scaled(budget.min_available or "1", expected)


def _scaled(text: str, whole: int) -> int:
    """Read an integer, or a percentage of the whole, rounded up."""
    if text.endswith("%"):
        return -(-int(text[:-1]) * whole // 100)
    return int(text)
