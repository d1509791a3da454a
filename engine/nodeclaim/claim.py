"""The NodeClaim as the fold knows it, and how each of its events changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import (
    ActorOrUnknown,
    ImageId,
    InstanceId,
    KeyedHash,
    LabelMap,
    NodeClaimName,
    NodeName,
    NodePoolName,
    Plain,
    PodKey,
    ProviderId,
    ResourceName,
    SecurityGroupId,
    Sentence,
    SubnetId,
)
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.effect_keys import TAINT, TERMINATE, UNTAINT, deletion, eviction
from kerf.engine.nodeclaim.state_table import ABSENT, DRAINING, TAINTED, next_state, remembered_state
from kerf.engine.record import claim_events as ev
from kerf.engine.record.observations import LaunchAnswered

ENDED = ("terminated", "gone")
"""Statuses of an instance that does not come back."""


class Effect(Struct, omit_defaults=True):
    """The latest attempt of one effect on a claim. `ok` is None until it is answered; `retry_at` after a refusal."""

    ref: Plain
    asked: int
    attempts: int = 1
    done: int = 0  # of the attempts before it: those that were answered well
    ok: bool | None = None
    answered: int = 0
    code: Plain = ""
    retry_at: int = 0
    told: bool = False  # its success stands in the record as an event
    # Of further attempts to end an instance, or to delete its Node:
    began: int = 0  # when the first one was asked for
    was_accepted: int = 0  # when one before it was first answered well
    pod: PodKey = ""  # namespace/name of the pod it is about, which may be gone before the answer comes
    grace: int = 0  # seconds, of a forced deletion

    @property
    def first_asked(self) -> int:
        """When its first attempt was asked for (ms since the epoch)."""
        return self.began or self.asked

    @property
    def accepted(self) -> int:
        """When an attempt was first answered well (ms since the epoch), 0 if none was."""
        return self.was_accepted or (self.answered if self.ok else 0)


class NodeClaim(Struct, omit_defaults=True):
    """One aggregate's folded state. Times are ms since the epoch, 0 when it did not happen (yet)."""

    name: NodeClaimName
    version: int = 0  # of its stream
    state: Plain = ABSENT
    before: Plain = ""  # the state before it was tainted, to which Untainted leads back
    since: int = 0  # when it entered `state`
    node_pool: NodePoolName = ""
    node_class: NodeClassRef = NodeClassRef("", "", "")
    requirements: tuple[RequirementSpec, ...] = ()
    instance_types: tuple[Plain, ...] = ()
    requests: Resources = {}
    pods: tuple[Plain, ...] = ()  # uids that it was requested for
    labels: LabelMap = {}
    annotations: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: int | None = None
    termination_grace_period: int | None = None
    created: int = 0
    requested: int = 0  # position of `Requested`
    instance: InstanceId = ""
    provider_id: ProviderId = ""
    instance_type: Plain = ""
    zone: Plain = ""
    capacity_type: Plain = ""
    price: float = 0.0
    image: ImageId = ""
    class_hash: KeyedHash = ""  # of the NodeClass's terms that it was launched by
    subnet: SubnetId = ""
    security_groups: tuple[SecurityGroupId, ...] = ()
    capacity: Resources = {}
    allocatable: Resources = {}
    node: NodeName = ""
    launched: int = 0
    registered: int = 0
    initialized: int = 0
    tainted: int = 0
    why: Plain = ""
    detail: Sentence = ""
    deadline: int | None = None
    drain_started: int = 0
    drained: int = 0
    volumes: int = 0  # that were still attached when it was drained
    detached: int = 0
    evicted: int = 0  # pods
    forced: int = 0
    # what observations and decisions about the claim have left behind
    answer: LaunchAnswered | None = None
    answered: int = 0
    instance_status: Plain = ""
    unlisted: int = 0  # since when the cloud's listing does not have its instance
    off_selection: bool = False  # the cloud says that it still runs on a reservation its NodeClass no longer selects
    effects: dict[Plain, Effect] = {}
    nominated_until: int = 0
    last_pod_event: int = 0
    deletion: ActorOrUnknown = ""  # who asked for it to be deleted
    announced: Plain = ""  # why another controller said that it takes it away
    interruption: Plain = ""  # the kind of message that said it will be interrupted
    interrupted: int = 0  # when that was sent
    drifted_since: int = 0  # when it was found to have drifted (D-122), 0 while it has not
    repair: Plain = ""  # the code of what was told of its repair last, while it stayed
    repair_told: int = 0  # when that was
    drift: Reason | None = None  # by what
    differences: tuple[Difference, ...] = ()
    inconsistent: tuple[ResourceName, ...] = ()  # resources of which its Node reports too little (L-241)
    inconsistent_changed: int = 0
    unmet: tuple[RequirementSpec, ...] = ()  # those of its requirements that its launch did not give
    verdict: Plain = ""  # the code of the latest disruption verdict
    turns: tuple[int, ...] = ()  # by which its pods leave, if it goes with others (see ProposedMovesResult)

    def lifetime(self, now: int) -> tuple[int, float]:
        """How long the instance has run by `now`, in ms, and what that has cost, in USD at its launch price."""
        lived = now - self.launched if self.launched else 0
        return lived, round(self.price * lived / 3_600_000, 6)

    def effect(self, key: str) -> Effect | None:
        return self.effects.get(key)

    @property
    def is_ending(self) -> bool:
        """Whether its instance is over, or the cloud has accepted to end it (D-49, D-158), also while it is asked
        again."""
        asked = self.effect(TERMINATE)
        return self.instance_status in ENDED or (asked is not None and bool(asked.accepted))


def apply(claim: NodeClaim, event: Struct, *, at: int, position: int) -> None:
    """Folds one claim event. Raises TransitionRefused (KERF701) and leaves the claim as it was."""
    state = next_state(claim.state, event, before=claim.before, position=position)
    claim.before = remembered_state(claim.state, event, state, claim.before)
    if state != claim.state:
        claim.state, claim.since = state, at
    _FOLD[type(event)](claim, event, at)
    if isinstance(event, ev.Requested):
        claim.requested = position


_SHARED = (
    "node_pool", "node_class", "requirements", "requests", "labels", "taints", "startup_taints", "expire_after",
    "termination_grace_period",
)  # fmt: skip


def _copy(claim: NodeClaim, event: Struct, fields: tuple[str, ...]) -> None:
    for field in fields:
        setattr(claim, field, getattr(event, field))


def _requested(claim: NodeClaim, event: ev.Requested, at: int) -> None:
    _copy(claim, event, (*_SHARED, "instance_types", "pods", "price", "annotations"))
    claim.created = at


def _adopted(claim: NodeClaim, event: ev.Adopted, at: int) -> None:
    _copy(claim, event, (*_SHARED, "instance", "provider_id", "instance_type", "zone", "capacity_type", "price",
                         "node", "capacity", "allocatable", "annotations", "image", "registered", "initialized",
                         "last_pod_event"))  # fmt: skip
    claim.created = event.created or at
    claim.launched = event.launched or claim.created
    if event.state in (TAINTED, DRAINING):
        claim.tainted, claim.why, claim.deadline = at, event.why, event.deadline


def _launched(claim: NodeClaim, event: ev.Launched, at: int) -> None:
    _copy(claim, event, ("instance", "provider_id", "instance_type", "zone", "capacity_type", "price", "capacity",
                         "allocatable", "image", "class_hash", "subnet", "security_groups", "unmet"))  # fmt: skip
    claim.labels = {**event.labels, **claim.labels}  # L-151: the claim's own win
    claim.launched = at


def _registered(claim: NodeClaim, event: ev.Registered, at: int) -> None:
    claim.node, claim.registered = event.node, at


def _initialized(claim: NodeClaim, event: ev.Initialized, at: int) -> None:
    claim.initialized, claim.unmet = at, event.unmet


def _tainted(claim: NodeClaim, event: ev.Tainted, at: int) -> None:
    claim.tainted = at
    claim.effects.pop(UNTAINT, None)
    _copy(claim, event, ("why", "detail", "deadline"))


def _reason_raised(claim: NodeClaim, event: ev.ReasonRaised, at: int) -> None:
    _copy(claim, event, ("why", "detail", "deadline"))


def _untainted(claim: NodeClaim, event: ev.Untainted, at: int) -> None:
    claim.tainted, claim.why, claim.detail, claim.deadline = 0, "", "", None
    claim.effects.pop(TAINT, None)  # what was asked for is taken back: the next taint is a new effect


def _drain_started(claim: NodeClaim, event: ev.DrainStarted, at: int) -> None:
    claim.drain_started = at
    claim.deadline = event.deadline if event.deadline is not None else claim.deadline


def _drained(claim: NodeClaim, event: ev.Drained, at: int) -> None:
    claim.drained, claim.volumes = at, event.volumes


def _volumes_detached(claim: NodeClaim, event: ev.VolumesDetached, at: int) -> None:
    claim.detached = at


def _pod_evicted(claim: NodeClaim, event: ev.PodEvicted, at: int) -> None:
    claim.evicted += 1
    claim.effects[eviction(event.uid)].told = True


def _pod_forced(claim: NodeClaim, event: ev.PodForced, at: int) -> None:
    claim.forced += 1
    claim.effects[deletion(event.uid)].told = True


def _nothing(claim: NodeClaim, event: Struct, at: int) -> None:
    """The change of state says it all."""


_FOLD: dict[type[Struct], Callable[[NodeClaim, Any, int], None]] = {
    ev.Requested: _requested,
    ev.Adopted: _adopted,
    ev.Launched: _launched,
    ev.LaunchFailed: _nothing,
    ev.LaunchTimedOut: _nothing,
    ev.Cancelled: _nothing,
    ev.Registered: _registered,
    ev.Initialized: _initialized,
    ev.Tainted: _tainted,
    ev.ReasonRaised: _reason_raised,
    ev.Untainted: _untainted,
    ev.DrainStarted: _drain_started,
    ev.PodEvicted: _pod_evicted,
    ev.PodForced: _pod_forced,
    ev.Drained: _drained,
    ev.VolumesDetached: _volumes_detached,
    ev.InstanceVanished: _nothing,
    ev.Terminated: _nothing,
}
