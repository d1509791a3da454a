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

_NAMED = 5


def change_words(change: Reason) -> str:
    """One change, as a condition. A code without a sentence shows as itself."""
    return _filled(CHANGES, change)


def budget_words(use: Reason) -> str:
    return _filled(BUDGETS, use)


def _filled(sentences: dict[str, str], found: Reason) -> str:
    template = sentences.get(found.code)
    if template is None:
        return found.code
    return template.format_map({name: _shown(value) for name, value in found.params.items()})


def _shown(value: str | int | float | list[str]) -> str | int | float:
    if not isinstance(value, list):
        return value
    named = ", ".join(value[:_NAMED])
    return f"{named} and {len(value) - _NAMED} more" if len(value) > _NAMED else named
