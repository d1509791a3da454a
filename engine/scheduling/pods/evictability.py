"""What pods mean for their node: which hold it, which move when it goes, which cannot be evicted (D-10…D-15, D-88)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from kerf.engine.model.durations import protected_for
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import NODE_OWNER, Pod, PodShape, Taint, is_active, is_reschedulable, owned_by
from kerf.engine.model.labels import DISRUPTED_TAINT
from kerf.engine.scheduling.matching.label_selectors import selector_matches
from kerf.engine.scheduling.matching.taints import tolerates_all

DISRUPTED_TAINTS = (Taint(DISRUPTED_TAINT, "NoSchedule"),)
ALWAYS = "true"
NONE_UNAVAILABLE = ("0", "0%")
ALL_AVAILABLE = "100%"


FOREVER = 1 << 62
"""A moment that does not come."""


def protected_until(pod: Pod) -> int:
    """Until when do-not-disrupt protects a pod, in ms since the epoch (D-12). It is FOREVER without an end, and for a
    duration before the pod has started. It is 0 without protection, which includes any text that is neither `true` nor
    a duration."""
    if pod.do_not_disrupt in ("", ALWAYS):
        return FOREVER if pod.do_not_disrupt else 0
    length = protected_for(pod.do_not_disrupt)
    if not length:
        return 0
    return pod.started + length if pod.started else FOREVER


PAST = 1
"""A moment that has long passed."""


def forced_at(deadline: int, pod: Pod, grace: int | None) -> int:
    """When a pod is deleted by force, so that it has ended by its node's deadline (both in ms since the epoch); 0 for
    never (L-203, D-151). `grace`: the seconds that it has to end in."""
    if pod.deleting:
        return PAST if pod.deleting > deadline else 0
    return 0 if grace is None else deadline - grace * 1000


class EvictionRules(Struct, frozen=True, dict=True):
    """What can be evicted at one moment. `now`: ms since the epoch."""

    shapes: Mapping[str, PodShape]
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...]
    now: int

    def protected(self, pod: Pod) -> bool:
        """Whether do-not-disrupt protects the pod now (D-12)."""
        return bool(pod.do_not_disrupt) and self.now < protected_until(pod)

    def disruptable(self, pod: Pod) -> bool:
        """Whether a pod lets its node go: it is over, or do-not-disrupt is not in force (D-10)."""
        return not is_active(pod) or not self.protected(pod)

    def evictable(self, pod: Pod) -> bool:
        """Whether the eviction API is asked for a pod at all (D-10, D-11)."""
        return (
            is_active(pod)
            and not tolerates_all(DISRUPTED_TAINTS, self.shapes[pod.shape].tolerations)
            and not owned_by(pod, NODE_OWNER)
            and not self.protected(pod)
        )

    def matching(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The PodDisruptionBudgets of a pod, by name; none for a pod that nobody would evict (D-13)."""
        budgets = self._selecting(pod)
        return budgets if budgets and self.evictable(pod) else ()

    def _selecting(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The PodDisruptionBudgets that select the pod, be it one that nobody would evict."""
        if not self.pod_disruption_budgets:
            return ()
        key = pod.namespace, pod.shape
        budgets = self._selected.get(key)
        if budgets is None:
            budgets = self._selected[key] = self._that_select(*key)
        return budgets

    @cached_property
    def _selected(self) -> dict[tuple[str, str], tuple[PodDisruptionBudget, ...]]:
        """The PodDisruptionBudgets that select pods of a namespace and shape, as far as they are known."""
        return {}

    def _that_select(self, namespace: str, shape: str) -> tuple[PodDisruptionBudget, ...]:
        labels = self.shapes[shape].labels
        budgets = [
            budget
            for budget in self.pod_disruption_budgets
            if budget.namespace == namespace and selector_matches(budget.selector, labels)
        ]
        return tuple(sorted(budgets, key=lambda budget: (budget.name, budget.uid)))

    def blocked_now(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The PodDisruptionBudgets that forbid to evict the pod now; none if they allow it (D-13, D-14)."""
        budgets = self._selecting(pod)
        if not budgets or (len(budgets) == 1 and budgets[0].disruptions_allowed):
            return ()  # without asking whether anybody would evict the pod
        budgets = self.matching(pod)
        if len(budgets) > 1:
            return budgets
        return tuple(budget for budget in budgets if not budget.disruptions_allowed and not _excused(budget, pod))

    def blocked_for_good(self, pod: Pod) -> bool:
        """Whether its PodDisruptionBudgets never allow to evict the pod (D-15)."""
        budgets = self._selecting(pod)
        if not budgets or (len(budgets) == 1 and not _allows_none(budgets[0])):
            return False  # without asking whether anybody would evict the pod
        budgets = self.matching(pod)
        if len(budgets) > 1:
            return True
        return any(_allows_none(budget) for budget in budgets if not _excused(budget, pod))

    def never_letting_go(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The PodDisruptionBudgets that forbid to evict the pod until one of them changes or its workload grows. A
        budget that allows some pods at a time lets each of them go when its turn comes."""
        budgets = self.matching(pod)
        if len(budgets) > 1:
            return budgets
        return tuple(
            budget
            for budget in budgets
            if not _excused(budget, pod) and (_allows_none(budget) or _needs_every_pod(budget))
        )

    def kept_back(self, pods: Iterable[Pod]) -> dict[str, tuple[PodDisruptionBudget, ...]]:
        """Of pods that are to leave together, those (uids) that may have to wait until others of them run elsewhere,
        with the PodDisruptionBudgets that allow fewer evictions now than there are such pods (D-14)."""
        kept_by = {
            pod.uid: [budget for budget in self.matching(pod) if not _excused(budget, pod)]
            for pod in pods
            if self._selecting(pod)
        }
        leaving = Counter(budget.uid for budgets in kept_by.values() for budget in budgets)
        too_many = {
            uid: tuple(budget for budget in budgets if leaving[budget.uid] > budget.disruptions_allowed)
            for uid, budgets in kept_by.items()
        }
        return {uid: budgets for uid, budgets in too_many.items() if budgets}

    def moves(self, pod: Pod) -> bool:
        """Whether the pod finds another place when its node goes: it is reschedulable, not protected, and its budgets
        can allow its eviction (D-10, D-88)."""
        return is_reschedulable(pod) and self.disruptable(pod) and not self.blocked_for_good(pod)


def _allows_none(budget: PodDisruptionBudget) -> bool:
    """Whether the budget allows no eviction, however many pods there are (D-15)."""
    return budget.max_unavailable in NONE_UNAVAILABLE or budget.min_available == ALL_AVAILABLE


def _needs_every_pod(budget: PodDisruptionBudget) -> bool:
    """Whether the budget asks for as many healthy pods as there are to be, by its status."""
    return not budget.disruptions_allowed and 0 < budget.expected_pods <= budget.desired_healthy


def _excused(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the pod may be evicted against its budget, because it is not ready and the budget says AlwaysAllow
    (D-13)."""
    return budget.always_allow_unhealthy and not pod.ready
