"""PodDisruptionBudgets: how many pods may be evicted (D-150)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.model.names import BudgetName, NamespaceName, Plain


class PodDisruptionBudget(Struct, frozen=True, omit_defaults=True):
    """A PodDisruptionBudget. `max_unavailable` and `min_available` keep the API's text ("0", "50%"); None if unset.

    `expected_pods` is how many pods its workloads are to have, `desired_healthy` how many of these must stay healthy.
    Both are 0 until its status says so.
    """

    uid: Plain
    namespace: NamespaceName
    name: BudgetName
    selector: Selector | None = None
    max_unavailable: Plain | None = None
    min_available: Plain | None = None
    disruptions_allowed: int = 0
    always_allow_unhealthy: bool = False
    expected_pods: int = 0
    desired_healthy: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
