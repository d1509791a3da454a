"""Put into words what would have to change for a node to go, and what budgets left room for."""

from __future__ import annotations

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.projections.prose.explanation_codes import BudgetUseCode, ChangeCode

WHAT_WOULD_FREE_IT: dict[str, str] = {
    DisruptionCode.AWAITING_PODS: "the pods planned onto it are bound elsewhere or go away",
    DisruptionCode.CONSOLIDATE_AFTER_NEVER: "the NodePool's spec.disruption.consolidateAfter is set to a duration",
    DisruptionCode.DO_NOT_DISRUPT: "the annotation karpenter.sh/do-not-disrupt is taken off",
    DisruptionCode.EMPTY_NOT_LONG_ENOUGH: "it stays empty until the time is up",
    DisruptionCode.HAS_PODS: "the pods on it end or move, and then spec.disruption.consolidateAfter passes",
    DisruptionCode.NO_NODE: "its Node object shows again",
    DisruptionCode.NO_NODEPOOL: "the NodePool shows again, or the NodeClaim is deleted",
    DisruptionCode.NO_USABLE_NODEPOOL: "a NodePool without spec.replicas becomes ready",
    DisruptionCode.NOT_INITIALIZED: "its node becomes ready and is initialized",
    DisruptionCode.NOT_REPLACED_AGAIN: "the NodePool or its NodeClass is changed",
    DisruptionCode.STATIC_NODEPOOL: "the NodePool's spec.replicas is lowered",
}
"""Why a claim stays → what would have to happen before it may go."""

_MAX_NAMES = 5


def change_words(change: Reason) -> str:
    """Write one change (`ChangeCode`) as a condition. A code of another version shows as itself."""
    return _filled(ChangeCode, change)


def budget_words(use: Reason) -> str:
    """Say how much room budgets left (`BudgetUseCode`)."""
    return _filled(BudgetUseCode, use)


def _filled(codes: type[ReasonCode], reason: Reason) -> str:
    code = next((code for code in codes if code == reason.code), None)
    if code is None:
        return reason.code
    return code.sentence.format_map({name: _shown(value) for name, value in reason.params.items()})


def _shown(value: str | int | float | list[str]) -> str | int | float:
    if not isinstance(value, list):
        return value
    listed = ", ".join(value[:_MAX_NAMES])
    return f"{listed} and {len(value) - _MAX_NAMES} more" if len(value) > _MAX_NAMES else listed
