"""Claim events: what happened to a NodeClaim, in the past tense, with the facts that an incident's reader needs.

These are payloads only: the envelope (`kerf.engine.record.entries.Entry`) carries stream, version, position and time.
Durations are milliseconds, prices USD per hour.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import (
    ActorOrUnknown,
    FreeText,
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
    SecurityGroupId,
    Sentence,
    SubnetId,
    VolumeName,
)


class Requested(Struct, frozen=True, omit_defaults=True):
    """The intent to launch is recorded; nothing is launched yet (L-139…L-143). `decision`: the position of its plan."""

    claim: NodeClaimName
    node_pool: NodePoolName
    node_class: NodeClassRef
    requirements: tuple[RequirementSpec, ...]
    instance_types: tuple[Plain, ...]
    requests: Resources
    pods: tuple[Plain, ...]
    price: float
    decision: int
    labels: LabelMap = {}
    annotations: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: int | None = None
    termination_grace_period: int | None = None


class Launched(Struct, frozen=True, omit_defaults=True):
    """There is an instance. `unmet` are those of the claim's requirements that its labels do not meet."""

    claim: NodeClaimName
    instance: InstanceId
    provider_id: ProviderId
    instance_type: Plain
    zone: Plain
    capacity_type: Plain
    price: float
    capacity: Resources
    allocatable: Resources
    labels: LabelMap = {}
    image: ImageId = ""
    took: int = 0
    class_hash: KeyedHash = ""  # of the NodeClass's terms that it was launched by
    subnet: SubnetId = ""
    security_groups: tuple[SecurityGroupId, ...] = ()
    unmet: tuple[RequirementSpec, ...] = ()


class LaunchFailed(Struct, frozen=True, omit_defaults=True):
    """The launch failed for good and the claim is over (L-152, L-153). `kind` is as in LaunchAnswered."""

    claim: NodeClaimName
    kind: Plain
    code: Plain = ""
    message: FreeText = ""
    tried: int = 0  # how many offerings were refused


class LaunchTimedOut(Struct, frozen=True, omit_defaults=True):
    """The launch limit passed without an instance (L-178). `message` is the last error."""

    claim: NodeClaimName
    waited: int
    message: FreeText = ""


class Cancelled(Struct, frozen=True, omit_defaults=True):
    """A user deleted the claim before its launch."""

    claim: NodeClaimName
    actor: ActorOrUnknown = ""


class Adopted(Struct, frozen=True, omit_defaults=True):
    """kerf took over a NodeClaim object that the record did not know. The claim begins in `state`, with what its object
    says.

    Times are copied from the object (ms since the epoch); 0 means that it has not happened. `why` and `deadline` are
    set for a claim that was already being removed.
    """

    claim: NodeClaimName
    state: Plain
    node_pool: NodePoolName
    node_class: NodeClassRef
    instance: InstanceId = ""
    provider_id: ProviderId = ""
    instance_type: Plain = ""
    zone: Plain = ""
    capacity_type: Plain = ""
    price: float = 0.0
    node: NodeName = ""
    created: int = 0
    requirements: tuple[RequirementSpec, ...] = ()
    requests: Resources = {}
    capacity: Resources = {}
    allocatable: Resources = {}
    labels: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: int | None = None
    termination_grace_period: int | None = None
    annotations: LabelMap = {}
    image: ImageId = ""
    launched: int = 0
    registered: int = 0
    initialized: int = 0
    last_pod_event: int = 0
    why: Plain = ""
    deadline: int | None = None


class Registered(Struct, frozen=True, omit_defaults=True):
    claim: NodeClaimName
    node: NodeName
    took: int = 0  # since the request


class Initialized(Struct, frozen=True, omit_defaults=True):
    """The node is ready. `unmet` are those of the claim's requirements that it does not meet after all."""

    claim: NodeClaimName
    node: NodeName
    took: int = 0  # since the request
    unmet: tuple[RequirementSpec, ...] = ()


class Tainted(Struct, frozen=True, omit_defaults=True):
    """The claim is to be removed. `deadline` is when its pods are deleted by force; None without a grace period.

    `why` is one of: drifted, empty, underutilized, expired, interrupted, unhealthy, launch-timeout,
    registration-timeout, deleted.
    """

    claim: NodeClaimName
    why: Plain
    deadline: int | None = None
    detail: Sentence = ""
    age: int = 0


class ReasonRaised(Struct, frozen=True, omit_defaults=True):
    """A stronger reason replaced a weaker one while the claim was being removed."""

    claim: NodeClaimName
    why: Plain
    was: Plain
    deadline: int | None = None
    detail: Sentence = ""


class Untainted(Struct, frozen=True, omit_defaults=True):
    claim: NodeClaimName
    why: Plain = ""


class DrainStarted(Struct, frozen=True, omit_defaults=True):
    claim: NodeClaimName
    node: NodeName
    pods: int = 0  # that have to leave
    deadline: int | None = None  # where the taint waited for a replacement, it is counted from here


class PodEvicted(Struct, frozen=True, omit_defaults=True):
    claim: NodeClaimName
    uid: Plain
    pod: PodKey  # namespace/name


class PodForced(Struct, frozen=True, omit_defaults=True):
    claim: NodeClaimName
    uid: Plain
    pod: PodKey
    grace: int = 0


class Drained(Struct, frozen=True, omit_defaults=True):
    """Every pod that had to leave has left. `volumes` counts the volumes that are still attached and waited for
    (L-199).
    """

    claim: NodeClaimName
    took: int = 0
    volumes: int = 0


class VolumesDetached(Struct, frozen=True, omit_defaults=True):
    """The wait for volumes is over: all are detached, except `left`, for which the deadline passed first (D-156).

    `took` counts from the end of the drain.
    """

    claim: NodeClaimName
    took: int = 0
    left: tuple[VolumeName, ...] = ()


UNLISTED = "unlisted"
"""The status of an instance that the cloud's listing did not show."""


class InstanceVanished(Struct, frozen=True, omit_defaults=True):
    """The instance is gone although kerf did not terminate it. `lifetime` and `cost` are as in Terminated."""

    claim: NodeClaimName
    instance: InstanceId
    status: Plain = ""
    lifetime: int = 0
    cost: float = 0.0


class Terminated(Struct, frozen=True, omit_defaults=True):
    """The instance and the Node object are gone. `lifetime` counts from the launch; `cost` is price × lifetime
    in USD.
    """

    claim: NodeClaimName
    why: Plain
    lifetime: int = 0
    cost: float = 0.0


CLAIM_EVENTS: tuple[type[Struct], ...] = (
    Requested, Launched, LaunchFailed, LaunchTimedOut, Cancelled, Adopted, Registered, Initialized, Tainted,
    ReasonRaised, Untainted, DrainStarted, PodEvicted, PodForced, Drained, VolumesDetached, InstanceVanished,
    Terminated,
)  # fmt: skip
