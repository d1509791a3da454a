"""What the outside showed. Adapters hand these (and nothing else) to the runtime.

A payload is a frozen struct; model objects (`Pod`, `Node`, `NodePool`, …) are payloads themselves, so that folding a
watch event builds nothing. `Observation` adds the blobs that a payload's digests refer to.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.names import (
    ActorName,
    Digest,
    FreeText,
    ImageId,
    InstanceId,
    LabelMap,
    LeaseHolder,
    MessageId,
    NodeClaimName,
    NodeClassKey,
    NodeClassName,
    ObjectName,
    Plain,
    ProviderId,
    ReservationId,
    SecurityGroupId,
    Sentence,
    SubnetId,
)
from kerf.engine.model.settings import Settings


class Observation(Struct, frozen=True):
    """One thing to be recorded: the payload, and the content-addressed objects it names by digest (digest → object)."""

    payload: Struct
    blobs: dict[str, Struct] = {}


class RecordStarted(Struct, frozen=True):
    """The first entry of every record. `record` is random: keys of effects are derived from it (design, idea 4)."""

    record: Plain
    engine: Plain


class OfficeTaken(Struct, frozen=True):
    """A writer became the one writer. `epoch` fences every older one."""

    epoch: int
    holder: LeaseHolder


class RecordCut(Struct, frozen=True, omit_defaults=True):
    """What was before is removed, but for claims' events and decisions. The record now begins after `base`: `chain` is
    the chain's value there, the hash of all that goes, and `state` the digest of the state. Of what is kept the oldest
    comes after `after`; `before` and `history` are the values of its own chain there and at the base. `removed`: up to
    there an earlier cut had removed everything already."""

    base: int
    chain: Plain
    state: Plain
    history: Plain
    after: int = 0
    before: Plain = ""
    removed: int = 0


class SettingsSeen(Struct, frozen=True):
    settings: Settings


class ObjectGone(Struct, frozen=True):
    """A watched object was deleted. `kind` is the lower-case singular ("pod", "node", "nodepool", …); `key` is the uid
    for pods, DaemonSets and PodDisruptionBudgets, namespace/name for PersistentVolumeClaims ("pvc"), the name for
    cluster-scoped kinds."""

    kind: str
    key: str


class NodeClassSeen(Struct, frozen=True, omit_defaults=True):
    """A NodeClass as far as core needs it; `digest` names the provider's own object (its spec and resolved status)."""

    group: Plain
    kind: Plain
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
    """How many instances each capacity reservation of a NodeClass (`group/kind/name`) has left, by its id. Which have
    any at all the NodeClass's catalogue says, with the numbers of when it was made."""

    node_class: NodeClassKey
    left: dict[ReservationId, int]


class NodeClaimDeletionSeen(Struct, frozen=True, omit_defaults=True):
    """Somebody other than kerf asked for the deletion of a NodeClaim object (or of its Node)."""

    claim: NodeClaimName
    actor: ActorName = ""


class LaunchError(Struct, frozen=True, omit_defaults=True):
    """One error of a fleet answer, per offering tried; `code` is EC2's (A-290)."""

    code: Plain
    message: FreeText = ""
    instance_type: Plain = ""
    zone: Plain = ""
    capacity_type: Plain = ""


class LaunchAnswered(Struct, frozen=True, omit_defaults=True):
    """The cloud answered a launch. With `instance` empty nothing was started.

    `kind` says how an empty answer is to be taken: "insufficient-capacity" (L-152), "nodeclass-not-ready" (L-153),
    "error" (L-154, L-155: tried again until the launch limit), "not-found" (the answer to a FindInstance). `adopted`
    means that the instance was found by its tag after a crash or a lost answer. `intent` is "position.index".
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
    class_hash: Plain = ""  # of the NodeClass's terms that it was launched by; empty: of those in the record then
    subnet: SubnetId = ""
    security_groups: tuple[SecurityGroupId, ...] = ()


class InstanceSeen(Struct, frozen=True, omit_defaults=True):
    """The cloud described an instance: `status` is EC2's state name, "gone" when EC2 no longer knows it."""

    instance: InstanceId
    status: Plain
    claim: NodeClaimName = ""


class TaggedInstance(Struct, frozen=True, omit_defaults=True):
    """One instance of a listing. `claim` is what its tag says; `launched` in ms since the epoch; `capacity_type` what
    it runs as, where the cloud says so."""

    instance: InstanceId
    claim: NodeClaimName = ""
    launched: int = 0
    capacity_type: Plain = ""


class InstancesListed(Struct, frozen=True, omit_defaults=True):
    """How the cloud's listing of this cluster's instances differs from the record: `missing` are the instances of
    registered claims that it does not have, `strays` are those that belong to no claim, `demoted` those of claims on
    reserved capacity that run as on-demand (L-250). Recorded when it changes."""

    missing: tuple[InstanceId, ...] = ()
    strays: tuple[TaggedInstance, ...] = ()
    demoted: tuple[InstanceId, ...] = ()


class EffectAnswered(Struct, frozen=True, omit_defaults=True):
    """The answer to any other effect. `code` is the API's (200, 404, 409, 429, 500, or EC2's error code)."""

    intent: Plain
    ok: bool
    code: Plain = ""
    message: FreeText = ""


class InterruptionSeen(Struct, frozen=True, omit_defaults=True):
    """A message from the interruption queue, by the kinds of A-346…A-350. `sent` is the event's own time."""

    message: MessageId
    kind: Plain
    instance: InstanceId
    sent: int = 0


class InputRefused(Struct, frozen=True, omit_defaults=True):
    """Bad input that was refused at the edge: recorded and shown, and nothing else stopped for it."""

    code: Plain
    source: Plain  # "manifest", "queue", "watch", "prices", …
    object: ObjectName
    field: Plain = ""
    message: FreeText = ""


class WatchGap(Struct, frozen=True, omit_defaults=True):
    """A watch was interrupted and relisted; changes in between were synthesised from the difference."""

    kind: Plain
    since: Plain = ""
    until: Plain = ""
    changed: int = 0
    gone: int = 0
