"""Types for text fields, which say what the text is: an object's name, a label's key, a sentence, or nothing that names
anything.

Fields of everything that is recorded are declared with these types. To the codec they are plain text. A pseudonymised
copy of a record replaces texts that name something (kerf.adapters.store.pseudonyms). A field of type `str` without a
mark stops such a copy, so each new field must say what it holds.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct


class Mark(Struct, frozen=True):
    """Says how to replace the text (`rule`), and which kind of object it names (`kind`)."""

    rule: str
    kind: str = ""


NAME, NAMESPACED, WORKLOAD_KEY = "name", "namespaced", "workload-key"
"""Rules for a name; namespace/name; kind/namespace/name."""
KNOWN_OR_NAME = "known-or-name"
"""The rule for a name, or a word of Kubernetes' or EC2's own (kerf.adapters.store.pseudonyms.vocabulary)."""

LABELS = Mark("labels")
"""Labels, annotations, or an instance type's requirements: a map from key to value or values."""
CLAIM_REFERENCES, REQUEST_NAMES, BOUND_DEVICES = (
    Mark("claim-references"), Mark("request-names"), Mark("bound-devices"),
)  # fmt: skip
REASON_PARAMETERS, NODECLASS_SETTINGS, MADE_FROM = (
    Mark("reason-parameters"), Mark("nodeclass-settings"), Mark("made-from"),
)  # fmt: skip

Plain = Annotated[str, Mark("keep")]
"""Text that names nothing of the user's: an enum's value, a uid, a digest, an instance type, a zone. Each field that
has it stands in a table with the reason (kerf.adapters.store.pseudonyms.in_clear).
"""
Digest = Annotated[str, Mark("digest")]
"""The digest of a blob, which is pseudonymised too."""
KeyedHash = Annotated[str, Mark("hash")]
"""A digest of something that names stand in, behind a slash or colon or alone. A pseudonymised copy keys it, because it
would confirm a guess of the whole thing.
"""
LabelValue = Annotated[str, Mark("value")]
"""The value of a label or annotation of the user's."""
FreeText = Annotated[str, Mark("blank")]
"""Text written by other programs. It may contain account numbers, ARNs and names, so a pseudonymised copy leaves it
out.
"""
Sentence = Annotated[str, Mark("words")]
"""A text of kerf's own that may contain names."""
LabelKey = Annotated[str, Mark("key")]
LabelMap = Annotated[dict[str, str], LABELS]

AttachmentName = Annotated[str, Mark(NAME, "attachment")]
BudgetName = Annotated[str, Mark(NAME, "pdb")]
CapacityBufferName = Annotated[str, Mark(NAME, "buffer")]
ClusterName = Annotated[str, Mark(NAME, "cluster")]
DeviceClassName = Annotated[str, Mark(NAME, "device-class")]
DevicePoolName = Annotated[str, Mark(NAME, "device-pool")]
ImageId = Annotated[str, Mark(NAME, "image")]
InstanceId = Annotated[str, Mark(NAME, "instance")]
LeaseHolder = Annotated[str, Mark(NAME, "holder")]
MessageId = Annotated[str, Mark(NAME, "message")]
NamespaceName = Annotated[str, Mark(NAME, "namespace")]
NodeClaimName = Annotated[str, Mark(NAME, "claim")]
NodeClassName = Annotated[str, Mark(NAME, "nodeclass")]
NodeName = Annotated[str, Mark(NAME, "node")]
NodeOverlayName = Annotated[str, Mark(NAME, "overlay")]
NodePoolName = Annotated[str, Mark(NAME, "nodepool")]
ObjectName = Annotated[str, Mark(NAME, "object")]
PlacementGroupName = Annotated[str, Mark(NAME, "placement-group")]
PodName = Annotated[str, Mark(NAME, "pod")]
PodTemplateName = Annotated[str, Mark(NAME, "pod-template")]
PodVolumeName = Annotated[str, Mark(NAME, "pod-volume")]
ReservationId = Annotated[str, Mark(NAME, "reservation")]
ResourceClaimName = Annotated[str, Mark(NAME, "resource-claim")]
ResourceSliceName = Annotated[str, Mark(NAME, "resource-slice")]
SecurityGroupId = Annotated[str, Mark(NAME, "security-group")]
ServiceName = Annotated[str, Mark(NAME, "service")]
StorageClassName = Annotated[str, Mark(NAME, "storage-class")]
SubnetId = Annotated[str, Mark(NAME, "subnet")]
VolumeClaimName = Annotated[str, Mark(NAME, "volume-claim")]
VolumeName = Annotated[str, Mark(NAME, "volume")]
WorkloadName = Annotated[str, Mark(NAME, "workload")]

DriverName = Annotated[str, Mark(KNOWN_OR_NAME, "driver")]
"""A CSI driver."""
HostIp = Annotated[str, Mark(KNOWN_OR_NAME, "host-ip")]
NodeClassGroup = Annotated[str, Mark(KNOWN_OR_NAME, "nodeclass-group")]
NodeClassKind = Annotated[str, Mark(KNOWN_OR_NAME, "nodeclass-kind")]
ObjectKind = Annotated[str, Mark(KNOWN_OR_NAME, "object-kind")]
"""With its group and version: apps/v1/ReplicaSet."""
PriorityClassName = Annotated[str, Mark(KNOWN_OR_NAME, "priority-class")]
ResourceName = Annotated[str, Mark(KNOWN_OR_NAME, "resource")]
DeviceText = Annotated[str, Mark("device")]
"""A driver of devices, a device, the value of an attribute."""
AttributeName = Annotated[str, Mark("attribute")]
"""domain/name"""
DeviceSelector = Annotated[str, Mark("selector")]

BudgetKey = Annotated[str, Mark(NAMESPACED, "pdb")]
CapacityBufferKey = Annotated[str, Mark(NAMESPACED, "buffer")]
PodKey = Annotated[str, Mark(NAMESPACED, "pod")]
PodTemplateKey = Annotated[str, Mark(NAMESPACED, "pod-template")]
ResourceClaimKey = Annotated[str, Mark(NAMESPACED, "resource-claim")]
ServiceKey = Annotated[str, Mark(NAMESPACED, "service")]
DaemonSetKey = Annotated[str, Mark(NAMESPACED, "workload")]
VolumeClaimKey = Annotated[str, Mark(NAMESPACED, "volume-claim")]
WorkloadKey = Annotated[str, Mark(WORKLOAD_KEY, "workload")]
ProviderId = Annotated[str, Mark("provider-id")]
NodeClassKey = Annotated[str, Mark("node-class-key")]
"""group/kind/name"""
StreamName = Annotated[str, Mark("stream")]
ActorOrUnknown = Annotated[str, Mark("actor-or-unknown")]
