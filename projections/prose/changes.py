"""What would have to be otherwise for a node to go, in words: sentences that follow "if". Codes are replay's
(`kerf.replay.what_if.blockers`)."""

from __future__ import annotations

from kerf.engine.model.reasons import Reason

CHANGES: dict[str, str] = {
    "after-consolidate-after": "its NodePool's consolidateAfter had passed",
    "after-pause": "the pause after the move that came to nothing were over",
    "more-budget": (
        "the disruption budgets of NodePool {nodepool} allowed one more ({reason}: {allowed} of {total} nodes now, "
        "{consuming} of them going or not ready)"
    ),
    "readable-budget": "budget {budget} of NodePool {nodepool} could be read: {error}",
    "with-consolidate-after": "NodePool {nodepool} had a consolidateAfter other than Never",
    "with-spot-to-spot": "the feature gate SpotToSpotConsolidation were on",
    "without-buffers": "no room for buffered pods were held on it",
    "without-expected-pods": "the pods that are expected on it were there or elsewhere",
    "without-limits": "NodePool {nodepools} had no limits",
    "without-min-values": "the requirements of NodePool {nodepool} had no minValues",
    "without-node-annotation": "its node did not carry the annotation karpenter.sh/do-not-disrupt",
    "without-pod-annotation": "{pods} did not carry the annotation karpenter.sh/do-not-disrupt",
    "without-pod-budget": "PodDisruptionBudget {budgets} allowed an eviction",
    "without-policy-balanced": "NodePool {nodepool} had the consolidationPolicy {policy} in the place of Balanced",
    "without-policy-when-empty": "NodePool {nodepool} had the consolidationPolicy {policy} in the place of WhenEmpty",
}
"""Code → the condition."""

BUDGETS: dict[str, str] = {
    "budget-open": "no disruption budget of NodePool {nodepool} bounded it ({reason})",
    "budget-use": (
        "the disruption budgets of NodePool {nodepool} allowed {allowed} of {total} nodes ({reason}), with {consuming} "
        "going or not ready"
    ),
}
"""What budgets left room for."""

_MAX_NAMES = 5


def change_words(change: Reason) -> str:
    """One change, as a condition. A code without a sentence shows as itself."""
    return _filled(CHANGES, change)


def budget_words(use: Reason) -> str:
    return _filled(BUDGETS, use)


def _filled(sentences: dict[str, str], reason: Reason) -> str:
    template = sentences.get(reason.code)
    if template is None:
        return reason.code
    return template.format_map({name: _shown(value) for name, value in reason.params.items()})


def _shown(value: str | int | float | list[str]) -> str | int | float:
    if not isinstance(value, list):
        return value
    listed = ", ".join(value[:_MAX_NAMES])
    return f"{listed} and {len(value) - _MAX_NAMES} more" if len(value) > _MAX_NAMES else listed


WHAT_WOULD_FREE_IT: dict[str, str] = {
    "awaiting-pods": "the pods planned onto it are bound elsewhere or go away",
    "consolidate-after-never": "the NodePool's spec.disruption.consolidateAfter is set to a duration",
    "do-not-disrupt": "the annotation karpenter.sh/do-not-disrupt is taken off",
    "empty-not-long-enough": "it stays empty until the time is up",
    "has-pods": "the pods on it end or move, and then spec.disruption.consolidateAfter passes",
    "no-node": "its Node object shows again",
    "no-nodepool": "the NodePool shows again, or the NodeClaim is deleted",
    "no-usable-nodepool": "a NodePool without spec.replicas becomes ready",
    "not-initialized": "its node becomes ready and is initialized",
    "static-nodepool": "the NodePool's spec.replicas is lowered",
}
"""For a claim that stays for this reason: what would have to happen before it may go."""
