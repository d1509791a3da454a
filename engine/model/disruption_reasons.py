"""Why a NodeClaim is disrupted, and why it stays: closed lists, each code with its sentence.

`DisruptionReason` says why a claim goes; its docstring says how to add one. `DisruptionCode` says why one stays.
"""

from __future__ import annotations

from kerf.engine.model.reasons import ReasonCode

IN_BUDGETS = "in budgets"
"""`spec.disruption.budgets` of a NodePool may name this reason. kerf chooses it, and may take it back (Untainted)."""
DELETION = "deletion"
"""The reason counts as a deletion: no disruption metric and no disruption Event (D-165)."""


class DisruptionReason(ReasonCode):
    """Why a claim goes, the weakest reason first. A stronger reason replaces a weaker one (ReasonRaised).

    The stronger a reason, the less choice it leaves.

    To add one:

    * Add a line here. The names in budgets, metrics and Events follow from it.
    * Let a decider give it: a method in `FORCEFUL` of `engine.disruption.forced.forced_disruption` at the place of its
      strength, or `drift` or `consolidation`. `engine.lifecycle` gives OVERPROVISIONED and LAUNCH_TIMEOUT.
    * Raise the VERSION of that decider.
    * If it is IN_BUDGETS, run `make crds`: the schema of NodePools lists it.
    * `kerf explain` shows a forced method by the code of its reason. `replay.explain.method_verdicts` may give it
      another name.
    """

    UNKNOWN = "unknown", "nothing that was imported says why"
    UNDERUTILIZED = "underutilized", "its pods have room elsewhere, or on a cheaper node", IN_BUDGETS
    EMPTY = "empty", "nothing that needs a place has run on it for {quiet}", IN_BUDGETS
    DRIFTED = "drifted", "it is no longer as its NodePool and NodeClass ask for", IN_BUDGETS
    OVERPROVISIONED = "overprovisioned", "its NodePool has more nodes than its spec.replicas", DELETION
    EXPIRED = "expired", "it has reached its expireAfter, at the age of {age}"
    REGISTRATION_TIMEOUT = "registration-timeout", "its node did not register within the limit, after {waited}"
    LAUNCH_TIMEOUT = "launch-timeout", "no instance came within the launch limit"
    DELETED = "deleted", "its NodeClaim was deleted by {detail}", DELETION
    UNHEALTHY = "unhealthy", "its node has been unhealthy ({condition}: {status}) for {waited}"
    INTERRUPTED = "interrupted", "the cloud takes its instance away ({detail})"

    def __init__(self, code: str, sentence: str, trait: str = "") -> None:
        self.in_budgets = trait == IN_BUDGETS
        self.is_deletion = trait == DELETION

    @property
    def karpenter(self) -> str:
        """Karpenter's spelling, as in budgets and Events: RegistrationTimeout."""
        return karpenter_spelling(self)

    @property
    def metric(self) -> str:
        """The value of a metric's label `reason`: registration_timeout."""
        return metric_label(self)


BUDGET_REASONS = tuple(reason for reason in DisruptionReason if reason.in_budgets)
_STRENGTH = {reason.value: rank for rank, reason in enumerate(DisruptionReason)}


def strength(why: str) -> int:
    """Returns how strong a recorded reason is; -1 if this engine does not know it, or if there is none."""
    return _STRENGTH.get(why, -1)


def karpenter_spelling(why: str) -> str:
    """Returns Karpenter's spelling of a recorded reason, even if this engine does not know the reason."""
    return "".join(part.capitalize() for part in why.split("-"))


def metric_label(why: str) -> str:
    """Returns the value of a metric's label for a recorded reason, even if this engine does not know the reason."""
    return why.replace("-", "_")


def is_deletion(why: str) -> bool:
    """Returns whether a recorded reason counts as a deletion and not as a disruption (D-165)."""
    return any(reason.is_deletion for reason in DisruptionReason if reason == why)


def budget_reason(why: str) -> DisruptionReason:
    """Returns the reason by which budgets count a move: its own if budgets can name it, else underutilized."""
    return next((reason for reason in BUDGET_REASONS if reason == why), DisruptionReason.UNDERUTILIZED)


class DriftReason(ReasonCode):
    """In what a claim has drifted (D-122…D-127), in the order in which drift is looked for."""

    NODEPOOL_DRIFTED = (
        "nodepool-drifted",
        "the template of NodePool {nodepool} was changed since it was made",
        "NodePoolDrifted",
    )
    REQUIREMENTS_DRIFTED = (
        "requirements-drifted",
        "its labels no longer meet the requirements of NodePool {nodepool}",
        "RequirementsDrifted",
    )
    INSTANCE_TYPE_NOT_FOUND = (
        "instance-type-not-found",
        "its instance type {instance_type} is no longer offered as it has it",
        "InstanceTypeNotFound",
    )
    NODECLASS_DRIFT = "nodeclass-drift", "NodeClass {nodeclass} was changed since it was launched", "NodeClassDrift"
    AMI_DRIFT = "ami-drift", "NodeClass {nodeclass} has another image for it now", "AMIDrift"
    SECURITY_GROUP_DRIFT = (
        "security-group-drift",
        "NodeClass {nodeclass} selects other security groups now",
        "SecurityGroupDrift",
    )
    SUBNET_DRIFT = "subnet-drift", "NodeClass {nodeclass} no longer selects its subnet", "SubnetDrift"
    CAPACITY_RESERVATION_DRIFT = (
        "capacity-reservation-drift",
        "NodeClass {nodeclass} no longer selects its capacity reservation",
        "CapacityReservationDrift",
    )
    PLACEMENT_GROUP_DRIFT = (
        "placement-group-drift",
        "NodeClass {nodeclass} has another placement group",
        "PlacementGroupDrift",
    )

    def __init__(self, code: str, sentence: str, condition: str) -> None:
        self.condition = condition
        """The reason of the NodeClaim's condition Drifted (C-2, A-334…A-338)."""


class DisruptionCode(ReasonCode):
    """The other codes of the disruption deciders: why a node stays, or why a move does not go on."""

    AWAITING_PODS = "awaiting-pods", "pods that are planned onto it have not arrived yet"
    BAD_BUDGET = (
        "bad-budget",
        "budget {budget} of NodePool {nodepool} cannot be read (KERF314), so that nothing may go: {error}",
    )
    BEING_DISRUPTED = "being-disrupted", "a disruption of it is under way already"
    BUDGET = "budget", "the NodePool's disruption budget allows no more for now"
    CHURN = "churn", "at the second look it was no candidate any more ({nodes}{claims})"
    CLOCKS_DIFFER = "clocks-differ", "the clocks disagree about the time, and it would go by the time alone"
    CONSOLIDATE_AFTER_NEVER = "consolidate-after-never", "its NodePool has consolidateAfter: Never"
    DO_NOT_DISRUPT = "do-not-disrupt", "the annotation karpenter.sh/do-not-disrupt forbids it"
    EMPTY_NOT_LONG_ENOUGH = "empty-not-long-enough", "it is empty, but not for as long as consolidateAfter asks"
    GOING = "going", "it is on its way out already"
    HAS_PODS = "has-pods", "pods that would need another place run on it"
    HELD_BACK = "held-back", "a move of it came to nothing a while ago: it is left alone before the next attempt"
    HOLDS_BUFFERS = "holds-buffers", "it holds room for {buffers} buffered pods"
    MOVE_PROPOSED = "move-proposed", "it could go ({why}); that is looked at again in a moment"
    MOVED_LATELY = (
        "moved-lately",
        "{count} of its pods came less than 10 minutes ago: moving them so soon has to save more than {limit}/h, and "
        "would save {savings}/h",
    )
    LEFT_OVER = "left-over", "pods of it would have a place, but the cluster's scheduler might give it to others"
    MIN_VALUES = (
        "min-values",
        "of its replacement only {left} cheaper types would be left, fewer than minValues asks for",
    )
    MISSING_LABEL = "missing-label", "its node does not carry the label {label}"
    NEVER_EXPIRES = "never-expires", "it never expires"
    NO_INSTANCE_TYPES = "no-instance-types", "the instance types of its NodePool {nodepool} are not known"
    NO_NODE = "no-node", "its Node object is not there"
    NO_NODEPOOL = "no-nodepool", "its NodePool {nodepool} is not there"
    NO_NODEPOOL_LABEL = "no-nodepool-label", "its node does not carry the label {label}"
    NODEPOOL_NOT_READY = (
        "nodepool-not-ready",
        "it has drifted, but its NodePool {nodepool} is not valid or not ready, and launches no replacement",
    )
    NO_OFFERING = "no-offering", "it has drifted, but nothing that its NodePool's template allows is on offer now"
    NO_PLACE = "no-place", "{count} of its pods would have no place elsewhere: {pods}"
    NO_PLACE_BESIDE = (
        "no-place-beside",
        "{count} of its pods must be beside others of its pods (pod affinity), which PodDisruptionBudget {budgets} "
        "lets go only after them, and with {where} there is no other place: {pods}",
    )
    NO_USABLE_NODEPOOL = (
        "no-usable-nodepool",
        "no NodePool may launch nodes: each is of a fixed size, not ready, or going",
    )
    NODE_DELETED = "node-deleted", "its Node {detail} was deleted"
    NODE_HEALTHY = "node-healthy", "its node is healthy"
    NOMINATED = "nominated", "pods are expected on it"
    NOT_CONSOLIDATABLE = "not-consolidatable", "consolidateAfter has not passed since its pods last changed"
    NOT_DELETED = "not-deleted", "nobody has deleted it"
    NOT_DRIFTED = "not-drifted", "it is as its NodePool and NodeClass ask for"
    NOT_EXPIRED = "not-expired", "it has not reached its expireAfter"
    NOT_INITIALIZED = "not-initialized", "it is not initialized yet"
    NOT_INTERRUPTED = "not-interrupted", "no interruption was announced"
    NOT_LAUNCHED = "not-launched", "it is not launched yet"
    NOT_LOOKED_AT = "not-looked-at", "no disruption pass has looked at it since it could go"
    NOT_MANAGED = "not-managed", "it belongs to no NodeClaim"
    NOT_WORTH_IT = "not-worth-it", "what it would save is not worth the disruption"
    NO_ROOM_TO_REPLACE = (
        "no-room-to-replace",
        "it has drifted, but a node to replace it would be more than the limit of {nodes}",
    )
    NOT_STATIC = "not-static", "its NodePool has no fixed size"
    NOT_REPLACED_AGAIN = (
        "not-replaced-again",
        "it has drifted, and is not replaced again: nodes of NodePool {nodepool} came without {requirements}, several "
        "times in a row",
    )
    NOTHING_CHEAPER = "nothing-cheaper", "its pods need a node, and none is cheaper than {limit}/h"
    POD_BUDGET_EXHAUSTED = (
        "pod-budget-exhausted",
        "pod {pod} may not be evicted: PodDisruptionBudget {budgets} allows none",
    )
    POD_DO_NOT_DISRUPT = "pod-do-not-disrupt", "pod {pod} carries the annotation karpenter.sh/do-not-disrupt"
    POLICY_WHEN_EMPTY = "policy-when-empty", "its NodePool consolidates empty nodes only"
    REGISTERED = "registered", "its node has registered"
    REGISTERING = "registering", "its node may still register within the limit"
    REPLACEMENT_LATE = "replacement-late", "what was to replace it was not in service after {waited}"
    REPLACEMENT_LOST = "replacement-lost", "what was to replace it ({claims}) is gone"
    REPAIR_BLOCKED = (
        "repair-blocked",
        "its node is unhealthy ({condition}), but {ill} of {nodes} nodes are: nothing is repaired",
    )
    REPAIR_WAITS = (
        "repair-waits",
        "its node is unhealthy ({condition}), and is repaired unless too many nodes are again within {waits}",
    )
    SCHEDULING = "scheduling", "its pods would find other places than was planned ({why})"
    SCALE_DOWN_FIRST = "scale-down-first", "it has drifted, but its NodePool has {count} too many, which go first"
    SEARCH_ENDED = "search-ended", "the search for moves had done all its work before it came to this node"
    SEVERAL_POD_BUDGETS = (
        "several-pod-budgets",
        "pod {pod} may not be evicted: PodDisruptionBudgets {budgets} select it, "
        "and the API server evicts no pod under several",
    )
    SEVERAL_REPLACEMENTS = "several-replacements", "its pods would need at least {count} nodes instead"
    SPOT_TO_SPOT_OFF = "spot-to-spot-off", "spot nodes are not replaced by spot nodes unless the feature gate is on"
    STATIC_NODEPOOL = "static-nodepool", "its NodePool keeps a fixed number of nodes"
    TAKES_PODS = "takes-pods", "it takes pods of nodes that go"
    TOO_FEW_SPOT_OPTIONS = "too-few-spot-options", "only {found} cheaper spot types, and {needed} are needed"
    UNKNOWN_INSTANCE_TYPE = "unknown-instance-type", "its instance type {instance_type} is not in the catalogue"


NOWHERE = (DisruptionCode.NO_PLACE, DisruptionCode.NO_PLACE_BESIDE)
"""Why nodes stay whose pods would have no place."""
