"""Which codes of decisions and which interruptions become which Kubernetes Event."""

from __future__ import annotations

from kerf.engine.model.disruption_reasons import NOWHERE, DisruptionCode
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.kubernetes_events.event import NORMAL, WARNING

BLOCKS_ANY_DISRUPTION = frozenset[str](
    [
        DisruptionCode.AWAITING_PODS,
        DisruptionCode.BEING_DISRUPTED,
        DisruptionCode.DO_NOT_DISRUPT,
        DisruptionCode.MISSING_LABEL,
        DisruptionCode.NO_INSTANCE_TYPES,
        DisruptionCode.NO_NODE,
        DisruptionCode.NO_NODEPOOL,
        DisruptionCode.NO_NODEPOOL_LABEL,
        DisruptionCode.NOMINATED,
        DisruptionCode.NOT_INITIALIZED,
        DisruptionCode.NOT_REPLACED_AGAIN,
        DisruptionCode.POD_BUDGET_EXHAUSTED,
        DisruptionCode.POD_DO_NOT_DISRUPT,
        DisruptionCode.SEVERAL_POD_BUDGETS,
    ]
)
"""What keeps a node from any voluntary disruption (D-30)."""


BLOCKS_CONSOLIDATION = frozenset[str](
    [
        DisruptionCode.CONSOLIDATE_AFTER_NEVER,
        DisruptionCode.HOLDS_BUFFERS,
        DisruptionCode.MIN_VALUES,
        *NOWHERE,
        DisruptionCode.NO_USABLE_NODEPOOL,
        DisruptionCode.NOTHING_CHEAPER,
        DisruptionCode.POLICY_WHEN_EMPTY,
        DisruptionCode.SEVERAL_REPLACEMENTS,
        DisruptionCode.SPOT_TO_SPOT_OFF,
        DisruptionCode.TOO_FEW_SPOT_OPTIONS,
        DisruptionCode.UNKNOWN_INSTANCE_TYPE,
    ]
)
"""What keeps a node from consolidation (EV-7). That Balanced finds it not worth it shows in the metrics alone
(D-84)."""


NO_DESTINATION = frozenset[str]([DisruptionCode.LEFT_OVER, *NOWHERE, DisruptionCode.NO_USABLE_NODEPOOL])
"""What keeps a drifted node from any disruption: its pods have nowhere to go (D-64). Other nodes are only kept from
consolidation."""


WITHIN_BUDGETS = frozenset[str](
    [DisruptionCode.BUDGET, DisruptionCode.LEFT_OVER, DisruptionCode.NOT_WORTH_IT, *BLOCKS_CONSOLIDATION]
) - {
    DisruptionCode.CONSOLIDATE_AFTER_NEVER,
    DisruptionCode.HOLDS_BUFFERS,
    DisruptionCode.POLICY_WHEN_EMPTY,
    DisruptionCode.UNKNOWN_INSTANCE_TYPE,
}
"""Why nodes stay that are candidates of a method, so that it looks at their budgets (D-23, D-52)."""


REJECTED_FOR = {
    DisruptionCode.BUDGET.value: "budget",
    DisruptionCode.CHURN.value: "churn",
    **dict.fromkeys((DisruptionCode.SCHEDULING.value, DisruptionCode.LEFT_OVER.value), "scheduling"),
}
"""Karpenter's categories of why the second look rejects a move (D-112)."""


NOT_REPORTED = frozenset([SchedulingCode.OPTED_OUT, SchedulingCode.RESERVATION])
"""Codes of pods without a FailedScheduling Event: they want no NodePool's node, or wait for reserved capacity (S-43,
S-170)."""


INTERRUPTION_EVENTS = {
    "spot_interrupted": (WARNING, "SpotInterrupted", "Spot interruption warning was triggered"),
    "rebalance_recommendation": (NORMAL, "SpotRebalanceRecommendation", "Spot rebalance recommendation was triggered"),
    "instance_stopped": (WARNING, "InstanceStopping", "Instance is stopping"),
    "instance_terminated": (WARNING, "InstanceTerminating", "Instance is terminating"),
    "scheduled_change": (WARNING, "InstanceUnhealthy", "An unhealthy warning was triggered"),
    **dict.fromkeys(
        ("instance_status", "system_status", "event_status", "capacity_reservation_expiring"),
        (WARNING, "InstanceUnhealthy", "An unhealthy warning was triggered"),
    ),
    "capacity_reservation_interrupted": (
        WARNING, "CapacityReservationInstanceInterrupted", "Capacity reservation interruption was triggered",
    ),
}  # fmt: skip
