"""Decisions and their intents. An intent is stored in its decision and is known as "position.index"."""

from __future__ import annotations

import math

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import (
    DeviceText,
    Digest,
    InstanceId,
    KeyedHash,
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
    """One (instance type, zone) pair that a launch may choose, with the price per hour known when it was decided."""

    instance_type: Plain
    zone: Plain
    price: float


BY_PRICE = "by-price"
"""A NodeOverlay has set prices: the cloud draws in the order of the offers (A-275, A-276)."""
RELAXED = "relaxed"
"""The claim's minValues were lowered (A-280)."""
DOUBTS = "doubts"
"""What the cloud refuses of it is in doubt afterwards. Orders of older records do not have it: they know no doubt. It
is no field of its own, because a sixteenth one would change the bytes of every order."""


def draw_of(*, by_price: bool, relaxed: bool) -> tuple[str, ...]:
    """How the cloud draws from a launch's offers."""
    return (BY_PRICE,) * by_price + (RELAXED,) * relaxed


class LaunchInstance(Struct, frozen=True, tag="launch-instance", omit_defaults=True):
    """Sends one CreateFleet request of type instant for one claim (A-273…A-282), with token and tags. Offers are
    cheapest first.
    """

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
    draw: tuple[Plain, ...] = ()  # how the cloud draws from the offers, and what its refusals mean: BY_PRICE, …, DOUBTS
    user_data: KeyedHash = ""  # of a repetition: the digest of the NodeClass's user data at the first attempt, if known

    @property
    def by_price(self) -> bool:
        return BY_PRICE in self.draw

    @property
    def relaxed(self) -> bool:
        return RELAXED in self.draw

    @property
    def doubts(self) -> bool:
        return DOUBTS in self.draw


class FindInstance(Struct, frozen=True, tag="find-instance"):
    """Looks for an instance of a claim that is over, by its tag, so that it can be terminated.

    One of the claim's launches may have started an instance without an answer. Answered by a LaunchAnswered (`kind`
    "not-found" if there is no instance).
    """

    claim: NodeClaimName
    order: LaunchInstance


class RegisterNode(Struct, frozen=True, tag="register-node", omit_defaults=True):
    """Syncs labels, annotations and taints onto the Node (L-163, L-164).

    Also removes the unregistered taint, and adds the label `karpenter.sh/registered`, the finalizer and the owner.
    `without` names the labels to remove (L-250).
    """

    claim: NodeClaimName
    node: NodeName
    labels: LabelMap = {}
    annotations: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    without: tuple[LabelKey, ...] = ()


class InitializeNode(Struct, frozen=True, tag="initialize-node"):
    """Adds the label `karpenter.sh/initialized` (L-176)."""

    claim: NodeClaimName
    node: NodeName


class TaintNode(Struct, frozen=True, tag="taint-node"):
    """Puts the taint `karpenter.sh/disrupted:NoSchedule` on the Node, and the label that ends load balancing to it
    (L-196).
    """

    claim: NodeClaimName
    node: NodeName


class UntaintNode(Struct, frozen=True, tag="untaint-node"):
    claim: NodeClaimName
    node: NodeName


class EvictPod(Struct, frozen=True, tag="evict-pod"):
    """Calls the eviction API with a UID precondition (L-205). `attempt` counts from 1; a refusal with 429 is tried
    again later.
    """

    claim: NodeClaimName
    node: NodeName
    uid: Plain
    namespace: NamespaceName
    name: PodName
    attempt: int = 1


class DeletePod(Struct, frozen=True, tag="delete-pod"):
    """Deletes a pod by force because its deadline is near: DELETE with `grace` seconds and a UID precondition
    (D-152).
    """

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
    """Deletes the Node object and removes its finalizer, because the instance is gone (L-201)."""

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
    """A NodeClaim that the plan opens. `pods` are uids; `price` is that of the cheapest offering, in USD per hour.

    `instance_types` are all that the launch may choose from, cheapest first. `requests` include DaemonSet overhead and
    the resource `pods`.
    """

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
    drivers: tuple[DeviceText, ...] = ()  # whose devices its pods will have: they must publish before it is initialized


class Placement(Struct, frozen=True):
    """Pods (uids) that the plan puts on an existing node or on one that is being launched.

    `claim` is empty for a node that kerf does not manage.
    """

    node: NodeName
    claim: NodeClaimName
    pods: tuple[Plain, ...]


class Unplaced(Struct, frozen=True, omit_defaults=True):
    """Pods that a plan has no place for, with the reasons: per NodePool tried, or why they are not planned for."""

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
    retry_at: int = 0  # when a pod is looked at that this pass left for later; 0 for none
    later: tuple[Unplaced, ...] = ()  # pods of going nodes that are planned for only later
    touches: int = 0  # the effort that the optimizer spent (engine/scheduling/optimizer/effort.py)


class Verdict(Struct, frozen=True, omit_defaults=True):
    """What a disruption method concluded about one claim, and why.

    `action` is "keep", "remove", or "note" for a remark about a claim that stays. The method "drifted" also has
    "drifted" and "not-drifted". `differences` says which fields of the claim have drifted.
    """

    claim: NodeClaimName
    method: Plain  # empty, expired, interrupted, deleted, launch-timeout, registration-timeout, …
    action: Plain
    reason: Reason
    differences: tuple[Difference, ...] = ()


class DisruptResult(Struct, frozen=True, tag="disrupt", omit_defaults=True):
    verdicts: tuple[Verdict, ...] = ()


class Score(Struct, frozen=True):
    """How a Balanced NodePool rates a move (D-80).

    `savings` is the share of the NodePool's cost that the move saves; `disruption` is the share of its disruption cost
    that the move takes.
    """

    node_pool: NodePoolName
    savings: float
    disruption: float

    @property
    def worth(self) -> float:
        """Returns savings divided by disruption; 0 if the move saves nothing."""
        if self.savings <= 0:
            return 0.0
        return self.savings / self.disruption if self.disruption else math.inf


class Move(Struct, frozen=True, omit_defaults=True):
    """NodeClaims that are removed together, and the replacements that must be in service first.

    `why` is empty, underutilized or drifted. Replacements get their names when the move starts. `placements` are those
    of the pods that move. `savings` is in USD per hour. `turns` is set for the moves of one proposal that remove nodes
    together: it says in which waves their pods leave. `scores` holds the rating by each Balanced NodePool of the
    claims, at the time of the proposal.
    """

    why: Plain
    claims: tuple[NodeClaimName, ...]
    replacements: tuple[PlannedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    savings: float = 0.0
    turns: tuple[int, ...] = ()
    scores: tuple[Score, ...] = ()


class ProposedMovesResult(Struct, frozen=True, tag="moves", omit_defaults=True):
    """The result of one disruption pass. A move is known as "position.index" of the decision that proposed it.

    `verdicts` holds those that differ from the claim's latest. `look_at` is when the next pass is due even if nothing
    changes (ms since the epoch, 0 for never). `exhausted` says that the search ended because its steps were used up.
    """

    proposed: tuple[Move, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    look_at: int = 0
    exhausted: bool = False


class MoveStepResult(Struct, frozen=True, tag="move", omit_defaults=True):
    """The next step of a move.

    "started": `begun` is the move as it is carried out. "withdrawn": it ended before its start. "abandoned": it ended
    after its start, and the nodes stay. "observed": it would start, but another controller acts.
    """

    move: Plain
    step: Plain
    reason: Reason
    begun: Move | None = None
    verdicts: tuple[Verdict, ...] = ()


class LifecycleResult(Struct, frozen=True, tag="lifecycle"):
    """What `advance` or `drain` concluded about one claim: the step that it took, or what it waits for."""

    claim: NodeClaimName
    reason: Reason


class StaticResult(Struct, frozen=True, tag="static", omit_defaults=True):
    """What was done to keep a NodePool with spec.replicas at its size, or what prevents it (S-191, S-193).

    `running` counts the claims that are not being removed. `retry_at` is when the NodePool is looked at again even if
    nothing changes (ms since the epoch).
    """

    node_pool: NodePoolName
    replicas: int
    running: int
    reason: Reason
    claims: tuple[PlannedClaim, ...] = ()
    removed: tuple[NodeClaimName, ...] = ()
    retry_at: int = 0


Result = ProvisionResult | DisruptResult | ProposedMovesResult | MoveStepResult | LifecycleResult | StaticResult


class Decision(Struct, frozen=True, omit_defaults=True):
    """One decision. `looked_at` is the position of the last entry that the decider saw, `version` the decider's
    VERSION.
    """

    decider: Plain  # provision, drift, disrupt, moves, move, advance, drain, static
    looked_at: int
    now: int
    version: int
    settings: Digest  # digest of the Settings
    result: Result
    intents: tuple[Intent, ...] = ()
