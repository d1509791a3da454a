"""The codes that only replay gives, with their sentences: explanations, and what would have to change.

To add one: a line here, and `Reason.of` with it in `replay`. The codes that deciders record are in the engine.
"""

from __future__ import annotations

from kerf.engine.lifecycle.adoption import NODE_DELETED
from kerf.engine.model.reasons import ReasonCode

UNKNOWN_ACTOR = "somebody (who, only the API server's audit log tells)"
BY_NOBODY_NAMED = {"": UNKNOWN_ACTOR, NODE_DELETED: "the deletion of its Node"}
"""Who asks for the deletion of a NodeClaim, where the record names nobody."""


class ExplanationCode(ReasonCode):
    """What explanations say of a node beside the deciders' own codes; some are types of claim events."""

    CLOCKS_DISAGREE = "clocks-disagree", "the clocks disagree about the time: no node is moved before they agree"
    CONTROLLER_DECIDED = "controller-decided", "{controller} takes it away, as {why}{first}{saves}"
    CONTROLLER_GAVE_UP = "controller-gave-up", "{controller} did not carry out its decision"
    DELETION_ASKED = "deletion-asked", "{actor} asked for its deletion"
    DRAIN_CUT_SHORT = "drain-cut-short", "its drain may last until {until}: pods still there are deleted by force"
    FITS_ON_A_CHEAPER_NODE = "fits-on-a-cheaper-node", "its pods fit on a node that costs less"
    BUDGET_ALLOWS_NONE = (
        "budget-allows-none",
        "the disruption budgets of its NodePool let no node go now, however few are going",
    )
    GOES_AT_ONCE = "goes-at-once", "it may go, within the disruption budgets, and does so at once"
    GOES_AS_EMPTY = "goes-as-empty", "it is empty: emptiness decides about it"
    GRACE_PERIOD_ENDS = (
        "grace-period-ends",
        "its terminationGracePeriod of {grace} ends at {until}: pods still there are deleted by force",
    )
    HAS_ROOM_ELSEWHERE = "has-room-elsewhere", "its pods have room on other nodes"
    ILL_FOR_A_WHILE = (
        "ill-for-a-while",
        "its node is unhealthy ({condition}: {status}), but not for as long as is tolerated",
    )
    INTERRUPTION_ANNOUNCED = "interruption-announced", "the cloud announced: {kind}"
    LAUNCH_FAILED = "launch-failed", "nothing could be launched: {code}"
    LAUNCH_TIMED_OUT = "launch-timed-out", "no instance came within the launch limit"
    MOVE_STARTED_ALONE = "move-started-alone", "it goes, for it is {why}: the taint is put on it"
    NODEPOOL_GONE = "nodepool-gone", "NodePool {nodepool} was deleted: its NodeClaims go with it"
    NOT_REACHED = "not-reached", "the steps of the pass were used up before they were looked at: it goes on at once"
    REPAIR_OFF = "repair-off", "nodes are not repaired: the feature gate NodeRepair is off"
    MOVE_STARTED = "move-started", "it goes, for it is {why}: the taint is put on it, and what replaces it is launched"
    REASON_RAISED = "reason-raised", "a stronger reason came, which waits for nothing"
    TAINTED = "tainted", "it is marked as going"
    WAITS_FOR_BUDGET = (
        "waits-for-budget",
        "it could go ({why}), as soon as the disruption budgets of its NodePool leave room",
    )
    WOULD_GO = "would-go", "nothing speaks against its removal now ({why})"


class ChangeCode(ReasonCode):
    """What would have to be otherwise for a node to go. The sentences follow "if"."""

    AFTER_CONSOLIDATE_AFTER = "after-consolidate-after", "its NodePool's consolidateAfter had passed"
    AFTER_LIGHTER_NODEPOOLS = (
        "after-lighter-nodepools",
        "NodePool {nodepool} (weight {weight}) were not asked before NodePool {nodepools}, of less weight",
    )
    AFTER_PAUSE = "after-pause", "the pause after the move that came to nothing were over"
    CLOCKS_AGREED = "clocks-agreed", "the clocks agreed about the time"
    MORE_BUDGET = (
        "more-budget",
        "the disruption budgets of NodePool {nodepool} allowed one more ({reason}: {allowed} of {total} "
        "nodes now, {consuming} of them going or not ready)",
    )
    READABLE_BUDGET = "readable-budget", "budget {budget} of NodePool {nodepool} could be read: {error}"
    UNDER_ONE_POD_BUDGET = (
        "under-one-pod-budget",
        "its pods were each under one PodDisruptionBudget that allowed an eviction, and not under {budgets} ({terms})",
    )
    WITH_CONSOLIDATE_AFTER = "with-consolidate-after", "NodePool {nodepool} had a consolidateAfter other than Never"
    WITH_SPOT_TO_SPOT = "with-spot-to-spot", "the feature gate SpotToSpotConsolidation were on"
    WITHOUT_BUFFERS = "without-buffers", "no room for buffered pods were held on it"
    WITHOUT_EXPECTED_PODS = "without-expected-pods", "the pods that are expected on it were there or elsewhere"
    WITHOUT_LIMITS = "without-limits", "NodePool {nodepools} had no limits"
    WITHOUT_MIN_VALUES = "without-min-values", "the requirements of NodePool {nodepool} had no minValues"
    WITHOUT_NODE_ANNOTATION = (
        "without-node-annotation",
        "its node did not carry the annotation karpenter.sh/do-not-disrupt",
    )
    WITHOUT_POD_ANNOTATION = "without-pod-annotation", "{pods} did not carry the annotation karpenter.sh/do-not-disrupt"
    WITHOUT_POD_BUDGET = "without-pod-budget", "PodDisruptionBudget {budgets} allowed an eviction ({terms})"
    WITHOUT_POLICY_BALANCED = (
        "without-policy-balanced",
        "NodePool {nodepool} had the consolidationPolicy {policy} in the place of Balanced",
    )
    WITHOUT_POLICY_WHEN_EMPTY = (
        "without-policy-when-empty",
        "NodePool {nodepool} had the consolidationPolicy {policy} in the place of WhenEmpty",
    )


class BudgetUseCode(ReasonCode):
    """What the disruption budgets of a NodePool left room for."""

    BUDGET_OPEN = "budget-open", "no disruption budget of NodePool {nodepool} bounded it ({reason})"
    BUDGET_USE = (
        "budget-use",
        "the disruption budgets of NodePool {nodepool} allowed {allowed} of {total} nodes ({reason}), with "
        "{consuming} going or not ready",
    )
