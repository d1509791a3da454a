"""Decisions and the intents that follow from them. An intent lives in its decision and is known as "position.index"."""

from __future__ import annotations

import math

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import (
    Digest,
    InstanceId,
    LabelKey,
    LabelMap,
    NamespaceName,
    NodeClaimName,
    NodeName,
    NodePoolName,
    Plain,
    PodName,
    ReservationId,
)
from kerf.engine.model.reasons import Reason

# ── intents ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Offer(Struct, frozen=True, array_like=True):
    """One (type, zone) pool that a launch may draw from, with the price per hour known at the time of decision."""

    instance_type: Plain
    zone: Plain
    price: float


class LaunchInstance(Struct, frozen=True, tag="launch-instance", omit_defaults=True):
    """One CreateFleet of type instant for one claim (A-273…A-282), with token and tags. Offers are cheapest first."""

    claim: NodeClaimName
    node_pool: NodePoolName
    node_class: NodeClassRef
    capacity_type: Plain
    offers: tuple[Offer, ...]
    requests: Resources
    labels: LabelMap = {}
    taints: tuple[Taint, ...] = ()  # claim taints, then startup taints (A-259 adds the unregistered one)
    tenancy: Plain = "default"
    reservation: ReservationId = ""
    look: bool = False  # an earlier record may have launched it: its tag is looked for first
    again: Plain = ""  # the first attempt's "position.index": a repetition uses its token, so that it cannot double


class FindInstance(Struct, frozen=True, tag="find-instance"):
    """The claim is over, and one of its launches may have started an instance that nobody was told of: look for its
    tag, so that what is found can be ended. Answered by a LaunchAnswered (`kind` "not-found" without an instance)."""

    claim: NodeClaimName
    order: LaunchInstance


class RegisterNode(Struct, frozen=True, tag="register-node", omit_defaults=True):
    """L-163, L-164: sync labels, annotations and taints onto the Node, remove the unregistered taint, add the label
    `karpenter.sh/registered`, the finalizer and the owner. `without`: labels that it does not have any more (L-250)."""

    claim: NodeClaimName
    node: NodeName
    labels: LabelMap = {}
    annotations: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    without: tuple[LabelKey, ...] = ()


class InitializeNode(Struct, frozen=True, tag="initialize-node"):
    """L-176: add the label `karpenter.sh/initialized`."""

    claim: NodeClaimName
    node: NodeName


class TaintNode(Struct, frozen=True, tag="taint-node"):
    """Put `karpenter.sh/disrupted:NoSchedule` on the Node, and the label that ends load balancing to it (L-196)."""

    claim: NodeClaimName
    node: NodeName


class UntaintNode(Struct, frozen=True, tag="untaint-node"):
    claim: NodeClaimName
    node: NodeName


class EvictPod(Struct, frozen=True, tag="evict-pod"):
    """The eviction API with a UID precondition (L-205). `attempt` counts from 1; a 429 is tried again later."""

    claim: NodeClaimName
    node: NodeName
    uid: Plain
    namespace: NamespaceName
    name: PodName
    attempt: int = 1


class DeletePod(Struct, frozen=True, tag="delete-pod"):
    """Forced deletion by deadline: DELETE with `grace` seconds and a UID precondition (D-152)."""

    claim: NodeClaimName
    node: NodeName
    uid: Plain
    namespace: NamespaceName
    name: PodName
    grace: int


class TerminateInstance(Struct, frozen=True, tag="terminate-instance"):
    claim: NodeClaimName
    instance: InstanceId


class DeleteNode(Struct, frozen=True, tag="delete-node"):
    """Delete the Node object and take its finalizer off: the instance is gone (L-201)."""

    claim: NodeClaimName
    node: NodeName


Intent = (
    LaunchInstance
    | FindInstance
    | RegisterNode
    | InitializeNode
    | TaintNode
    | UntaintNode
    | EvictPod
    | DeletePod
    | TerminateInstance
    | DeleteNode
)

# ── results ────────────────────────────────────────────────────────────────────────────────────────────────────────


class PlannedClaim(Struct, frozen=True, omit_defaults=True):
    """A node that the plan opens. `pods` are uids; `instance_types` are all it may still become, cheapest first;
    `requests` include DaemonSet overhead and the resource `pods`; `price` is the cheapest offering's, USD per hour."""

    name: NodeClaimName
    node_pool: NodePoolName
    pods: tuple[Plain, ...]
    instance_types: tuple[Plain, ...]
    requirements: tuple[RequirementSpec, ...]
    requests: Resources
    price: float
    capacity_types: tuple[Plain, ...]
    labels: LabelMap = {}
    min_values_relaxed: bool = False
    overlaid: tuple[Plain, ...] = ()  # what NodeOverlays have changed of some of the types: price, capacity
    drivers: tuple[Plain, ...] = ()  # whose devices its pods will have: they must publish before it is initialized


class Placement(Struct, frozen=True):
    """Pods (uids) that the plan puts on a node that exists or is on its way; `claim` is empty for unmanaged nodes."""

    node: NodeName
    claim: NodeClaimName
    pods: tuple[Plain, ...]


class Unplaced(Struct, frozen=True, omit_defaults=True):
    """Pods of one class that no node can take, with the reasons per NodePool tried."""

    pods: tuple[Plain, ...]
    reasons: tuple[Reason, ...]


class ProvisionResult(Struct, frozen=True, tag="provision", omit_defaults=True):
    claims: tuple[PlannedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    ignored: tuple[Unplaced, ...] = ()  # refused before scheduling (S-42)
    repeats: int = 0  # the position of the decision whose result this pass came to again; all else is empty then
    truncated: tuple[Plain, ...] = ()  # pods not looked at because the pass ended at its step limit
    first_price: float = 0.0  # what the plan cost before effort was spent on it, USD per hour; 0 without effort
    lower_bound: float = 0.0  # no nodes for the pods on `claims` cost less together, USD per hour; 0 bounds nothing
    unbound: int | None = None  # pods that kube-scheduler would find no place for on these nodes; None if not rated
    retry_at: int = 0  # when a pod may get another node than that launched for it in vain; 0 if there is no such pod


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What a disruption method concluded of one claim: `action` is "keep" or "remove"; "note" for what is worth
    telling of a claim that stays; of the method "drifted" also "drifted" or "not-drifted".
    `differences`: in what the claim is not as it should be."""

    claim: NodeClaimName
    method: Plain  # empty, expired, interrupted, deleted, launch-timeout, registration-timeout, …
    action: Plain
    reason: Reason
    differences: tuple[Difference, ...] = ()


class DisruptResult(Struct, frozen=True, tag="disrupt", omit_defaults=True):
    verdicts: tuple[Verdict, ...] = ()


class Score(Struct, frozen=True):
    """How a Balanced NodePool finds a move (D-80): which share of its cost that saves, and which share of its
    disruption that takes."""

    node_pool: NodePoolName
    savings: float
    disruption: float

    @property
    def worth(self) -> float:
        """Their quotient; 0 for what saves nothing."""
        if self.savings <= 0:
            return 0.0
        return self.savings / self.disruption if self.disruption else math.inf


class Move(Struct, frozen=True, omit_defaults=True):
    """NodeClaims that go together, and what has to be there before. `why`: empty, underutilized, drifted. Replacements
    get their names when the move starts; placements are those of pods that move. `savings` in USD per hour. `turns`:
    moves of one proposal that have them go together, and their pods leave by these turns. `scores`:
    of the Balanced NodePools that its claims are of, when it was proposed."""

    why: Plain
    claims: tuple[NodeClaimName, ...]
    replacements: tuple[PlannedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    savings: float = 0.0
    turns: tuple[int, ...] = ()
    scores: tuple[Score, ...] = ()


class ProposedMovesResult(Struct, frozen=True, tag="moves", omit_defaults=True):
    """One disruption pass. A move is known as "position.index" of the decision that proposed it. `verdicts`: those that
    differ from the claim's latest. `look_at`: when the next pass is due although nothing changes (ms since the epoch, 0
    for never). `exhausted`: the search ended by its steps."""

    proposed: tuple[Move, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    look_at: int = 0
    exhausted: bool = False


class MoveStepResult(Struct, frozen=True, tag="move", omit_defaults=True):
    """A move's next step: "started" (`begun` is the move as it is carried out), "withdrawn" before that, or "abandoned"
    after it: the nodes stay after all; "observed" where it would start, but another controller acts."""

    move: Plain
    step: Plain
    reason: Reason
    begun: Move | None = None
    verdicts: tuple[Verdict, ...] = ()


class LifecycleResult(Struct, frozen=True, tag="lifecycle"):
    """What `advance` or `drain` concluded about one claim: the step it took or what it waits for."""

    claim: NodeClaimName
    reason: Reason


class StaticResult(Struct, frozen=True, tag="static", omit_defaults=True):
    """What was done so that a NodePool with spec.replicas keeps its size (S-191, S-193), or what keeps it from that.
    `running` are the claims that are not on their way out; `retry_at`: when it is looked at again although nothing
    happens (ms since the epoch)."""

    node_pool: NodePoolName
    replicas: int
    running: int
    reason: Reason
    claims: tuple[PlannedClaim, ...] = ()
    removed: tuple[NodeClaimName, ...] = ()
    retry_at: int = 0


Result = ProvisionResult | DisruptResult | ProposedMovesResult | MoveStepResult | LifecycleResult | StaticResult


class Decision(Struct, frozen=True, omit_defaults=True):
    """`looked_at` is the position of the last entry the decider had seen, `version` its decision version."""

    decider: Plain  # provision, drift, disrupt, moves, move, advance, drain, static
    looked_at: int
    now: int
    version: int
    settings: Digest  # digest of the Settings
    result: Result
    intents: tuple[Intent, ...] = ()
