"""Observations: what the outside showed. Adapters hand the runtime these and nothing else.

A payload is a frozen struct. Model objects (`Pod`, `Node`, `NodePool`, …) are payloads themselves, so folding a watch
event builds no further object. `Observation` adds the blobs that a payload's digests name.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.names import (
    ActorOrUnknown,
    BudgetKey,
    CapacityBufferKey,
    DaemonSetKey,
    Digest,
    FreeText,
    ImageId,
    InstanceId,
    KeyedHash,
    LabelMap,
    LeaseHolder,
    MessageId,
    NodeClaimName,
    NodeClassGroup,
    NodeClassKey,
    NodeClassKind,
    NodeClassName,
    NodeName,
    NodeOverlayName,
    NodePoolName,
    ObjectName,
    PlacementGroupName,
    Plain,
    PodKey,
    ProviderId,
    ReservationId,
    SecurityGroupId,
    Sentence,
    SubnetId,
)
from kerf.engine.model.settings import Settings


class Observation(Struct, frozen=True):
    """One payload to be recorded, with the blobs that it names by digest (digest → object)."""

    payload: Struct
    blobs: dict[str, Struct] = {}


class Imported(Struct, frozen=True, omit_defaults=True):
    """Where an imported record comes from, and so what it can know (F-5).

    `sources` are the formats that were read. The window from `since` to `until` (ms since the epoch) is that of the
    first and the last thing told. `lacks` are codes of what these sources do not tell
    (kerf.engine.model.missing_knowledge). `read` counts the lines or events that were read, `unread` those that
    nobody could read, `other` those that tell nothing of nodes and pods. `captured`: it is no history, but a live
    cluster as it was at one time, and kerf decided in it as in observe mode.
    """

    sources: tuple[Plain, ...]
    since: int = 0
    until: int = 0
    versions: tuple[Plain, ...] = ()  # of Karpenter, as far as the source names them
    lacks: tuple[Plain, ...] = ()
    read: int = 0
    unread: int = 0
    other: int = 0
    captured: bool = False


class RecordStarted(Struct, frozen=True, omit_defaults=True):
    """The first entry of every record. `record` is a random id; keys of effects are derived from it (design,
    idea 4). `imported` marks a partial record: it was made of what other programs have written.
    """

    record: Plain
    engine: Plain
    imported: Imported | None = None


class OfficeTaken(Struct, frozen=True):
    """A writer took over the record. The store refuses all epochs older than `epoch`."""

    epoch: int
    holder: LeaseHolder


class ClocksDiffer(Struct, frozen=True, omit_defaults=True):
    """The clocks of the machine and of the API server do not agree: what the time is cannot be told.

    `jump` is by how much the wall clock has moved against the monotonic clock since they last agreed, `skew` by how
    much it is ahead of the API server's Date header. Both in ms; negative is back, or behind.

    `moved`: a process takes office whose time is that much (ms) after the record's, which says that the clocks differ
    already. What was measured since it says so may have been measured that much too early.
    """

    jump: int = 0
    skew: int = 0
    moved: int = 0


class ClocksAgree(Struct, frozen=True, omit_defaults=True):
    """The clocks agree again. `moved` is by how much the controller's time was set by that (ms), or is after the latest
    entry's time where it is the time of a process that takes office.

    `since`: what was measured from then on (ms since the epoch, by the time that is given up) was measured that much
    too early. It is since when the clocks differed; 0 if time was not set forward. Records of an earlier kerf have it
    only of a process that began while the clocks differed.
    """

    moved: int = 0
    since: int = 0


class TimeSetBack(Struct, frozen=True):
    """The record was ahead of the clock: its latest entry has the time `was` (ms since the epoch). Time goes on from
    this entry's, which is earlier. Positions alone say the order of entries.
    """

    was: int


class RecordCut(Struct, frozen=True, omit_defaults=True):
    """The record's entries up to `base` are removed, except for claim events and decisions.

    `chain` is the chain's value at `base`, and so the hash of everything removed; `state` is the digest of the state
    there. The kept entries come after `after` and have a chain of their own: `before` is its value at `after`,
    `history` its value at `base`. Up to `removed`, an earlier cut had already removed everything.
    """

    base: int
    chain: KeyedHash
    state: KeyedHash
    history: KeyedHash
    after: int = 0
    before: KeyedHash = ""
    removed: int = 0


class SettingsSeen(Struct, frozen=True):
    settings: Settings


class ObjectGone(Struct, frozen=True):
    """A watched object was deleted. `kind` is the lower-case singular ("pod", "node", "nodepool", …).

    `key` is the uid for pods, DaemonSets and PodDisruptionBudgets, namespace/name for PersistentVolumeClaims ("pvc"),
    and the name for cluster-scoped kinds.
    """

    kind: str
    key: str


class NodeClassSeen(Struct, frozen=True, omit_defaults=True):
    """A NodeClass, as far as the engine needs it. `digest` names the provider's own object (its spec and resolved
    status).
    """

    group: NodeClassGroup
    kind: NodeClassKind
    name: NodeClassName
    uid: Plain = ""
    generation: int = 0
    ready: bool = False
    reason: Sentence = ""
    digest: Digest = ""
    terms: NodeClassTerms | None = None  # None: the provider tells nothing that could drift
    annotations: LabelMap = {}  # the hash that another controller wrote, and its version


class CatalogueSeen(Struct, frozen=True):
    """The instance types of one NodeClass changed. `node_class` is `group/kind/name`; `digest` names a `Catalogue`."""

    node_class: NodeClassKey
    digest: Digest


class ReservationsSeen(Struct, frozen=True):
    """How many instances each capacity reservation of a NodeClass (`group/kind/name`) has left, by reservation id.

    Which reservations exist stands in the NodeClass's catalogue, with the numbers at the time it was made.
    """

    node_class: NodeClassKey
    left: dict[ReservationId, int]


class NodeClaimDeletionSeen(Struct, frozen=True, omit_defaults=True):
    """Somebody other than kerf asked for the deletion of a NodeClaim object (or of its Node)."""

    claim: NodeClaimName
    actor: ActorOrUnknown = ""


class LaunchError(Struct, frozen=True, omit_defaults=True):
    """One error in the answer to a CreateFleet request, for one offering that was tried; `code` is EC2's (A-290).
    `subnet`: the one without free addresses, where that is the error. `placement_group`: the one that the launch was
    into. `full`: it takes no more instances in the zone, of whatever type. `reservation`: the one that has nothing
    left, where that is the error."""

    code: Plain
    message: FreeText = ""
    instance_type: Plain = ""
    zone: Plain = ""
    capacity_type: Plain = ""
    subnet: SubnetId = ""
    placement_group: PlacementGroupName = ""
    full: bool = False
    reservation: ReservationId = ""
    zone_id: Plain = ""


class LaunchAnswered(Struct, frozen=True, omit_defaults=True):
    """The cloud's answer to a launch. If `instance` is empty, nothing was started.

    `kind` then says why: "insufficient-capacity" (L-152), "nodeclass-not-ready" (L-153), "error" (L-154, L-155: tried
    again until the launch limit), "not-found" (the answer to a FindInstance). `adopted` means that the instance was
    found by its tag, after a crash or a lost answer. `intent` is "position.index".
    """

    intent: Plain
    claim: NodeClaimName
    instance: InstanceId = ""
    provider_id: ProviderId = ""
    instance_type: Plain = ""
    zone: Plain = ""
    zone_id: Plain = ""
    capacity_type: Plain = ""
    image: ImageId = ""
    launched: int = 0
    adopted: bool = False
    kind: Plain = ""
    code: Plain = ""
    message: FreeText = ""
    errors: tuple[LaunchError, ...] = ()
    class_hash: KeyedHash = ""  # of the NodeClass's terms that it was launched by; empty: of those in the record then
    subnet: SubnetId = ""
    security_groups: tuple[SecurityGroupId, ...] = ()


class InstanceSeen(Struct, frozen=True, omit_defaults=True):
    """The cloud described an instance. `status` is EC2's state name, or "gone" if EC2 no longer knows the instance.

    `capacity_type` is what it runs as. It is recorded where that is in question: the instance's NodeClass does not
    select its capacity reservation any more (A-338).
    """

    instance: InstanceId
    status: Plain
    claim: NodeClaimName = ""
    capacity_type: Plain = ""


class TaggedInstance(Struct, frozen=True, omit_defaults=True):
    """One instance of a listing. `claim` is what its tag says; `launched` is in ms since the epoch.

    `capacity_type` is what the instance runs as, if the cloud says so.
    """

    instance: InstanceId
    claim: NodeClaimName = ""
    launched: int = 0
    capacity_type: Plain = ""


class InstancesListed(Struct, frozen=True, omit_defaults=True):
    """How the cloud's listing of this cluster's instances differs from the record. Recorded when it changes.

    `missing`: instances of registered claims that the cloud does not list. `strays`: instances that belong to no claim.
    `demoted`: instances of claims on reserved capacity that run as on-demand (L-250).
    """

    missing: tuple[InstanceId, ...] = ()
    strays: tuple[TaggedInstance, ...] = ()
    demoted: tuple[InstanceId, ...] = ()


IN_SHIFTED_ZONE = "ZonalShift"
"""The code of an instance's end that EC2 was not asked for, since its zone is shifted (A-330, A-381)."""


class EffectAnswered(Struct, frozen=True, omit_defaults=True):
    """The answer to any other intent. `code` is the API's (200, 404, 409, 429, 500, or EC2's error code)."""

    intent: Plain
    ok: bool
    code: Plain = ""
    message: FreeText = ""


TAKEN_BACK = "capacity_reservation_interrupted"
"""The kind of interruption of an instance whose reservation's owner takes its place back (A-350)."""
FAILED_CHECKS = ("instance_status", "system_status")
"""Interruptions of an instance whose EC2 status checks fail: there is nothing to wait for (A-361)."""
ENDS = ("instance_stopped", "instance_terminated")
"""What EC2 says of every instance that ends, whoever ends it (A-348)."""


class InterruptionSeen(Struct, frozen=True, omit_defaults=True):
    """A message from the interruption queue. `kind` is one of A-346…A-350; `sent` is the time in the message."""

    message: MessageId
    kind: Plain
    instance: InstanceId
    sent: int = 0


FAILED = "failed"
"""The action of a decision that was not carried out after all."""


class ControllerDecided(Struct, frozen=True, omit_defaults=True):
    """Another controller said that it takes these nodes away, and why (F-71, F-81…F-86).

    `action` is "delete" or "replace"; "failed" says that an earlier decision about them was not carried out.
    `replacements` are the claims that it made for that, as far as they can be told (F-90), `new_nodes` how many there
    were to be. `pods` counts those that have to move. `savings` is in USD per hour, None if it did not say.
    """

    controller: Plain
    why: Plain
    action: Plain
    claims: tuple[NodeClaimName, ...]
    nodes: tuple[NodeName, ...] = ()
    replacements: tuple[NodeClaimName, ...] = ()
    new_nodes: int = 0
    pods: int = 0
    savings: float | None = None
    command: Plain = ""


class ControllerSaid(Struct, frozen=True, omit_defaults=True):
    """Somebody said or did something that is no decision: which pods a controller found (F-62), who scaled a workload
    (F-124).

    `controller` is the program, or `actor` the user who asked the API server. `level` is "debug", "info", "warning" or
    "error". The names are those that the sentence is about. `refused` is the capacity that the sentence says the cloud
    refused. `eviction` says what came of an eviction of the pod: "evicted", "forced" or "refused"; `uid` is the pod's.
    """

    controller: Plain
    level: Plain
    text: FreeText
    claims: tuple[NodeClaimName, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    pods: tuple[PodKey, ...] = ()
    node_pools: tuple[NodePoolName, ...] = ()
    actor: ActorOrUnknown = ""
    node_classes: tuple[NodeClassName, ...] = ()
    budgets: tuple[BudgetKey, ...] = ()
    daemonsets: tuple[DaemonSetKey, ...] = ()
    overlays: tuple[NodeOverlayName, ...] = ()
    buffers: tuple[CapacityBufferKey, ...] = ()
    refused: tuple[LaunchError, ...] = ()
    eviction: Plain = ""
    uid: Plain = ""


class InputRefused(Struct, frozen=True, omit_defaults=True):
    """The edge refused bad input. It is recorded and shown, and everything else goes on."""

    code: Plain
    source: Plain  # "manifest", "queue", "watch", "prices", …
    object: ObjectName
    field: FreeText = ""
    message: FreeText = ""


class WatchGap(Struct, frozen=True, omit_defaults=True):
    """A watch was interrupted and its objects were listed again. Changes in between were derived from the
    difference.
    """

    kind: Plain
    since: Plain = ""
    until: Plain = ""
    changed: int = 0
    gone: int = 0
