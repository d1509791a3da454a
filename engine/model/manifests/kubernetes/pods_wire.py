"""Pods and pod templates as they stand in the API's JSON: what scheduling and disruption look at."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

from msgspec import Raw, Struct, field

from kerf.engine.model import labels
from kerf.engine.model.manifests.wire import Int32, Int64, OwnerWire, Quantities, Wire


class ResourcesWire(Wire):
    requests: Quantities = {}
    limits: Quantities = {}


class PortWire(Wire):
    host_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(name="hostIP", default="")


class ContainerWire(Wire):
    name: str = ""
    resources: ResourcesWire | None = None
    ports: list[PortWire] = []
    restart_policy: str | None = None


class ExpressionWire(Wire):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelectorWire(Wire):
    match_labels: dict[str, str] = {}
    match_expressions: list[ExpressionWire] = []


class NodeTermWire(Wire):
    match_expressions: list[ExpressionWire] = []
    match_fields: list[ExpressionWire] = []


class PreferredNodeTermWire(Wire):
    weight: Int32 = 0
    preference: NodeTermWire | None = None


class NodeSelectorWire(Wire):
    node_selector_terms: list[NodeTermWire] = []


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityWire(Wire):
    required: NodeSelectorWire | None = field(name=_REQUIRED, default=None)
    preferred: list[PreferredNodeTermWire] = field(name=_PREFERRED, default_factory=list)


class PodAffinityTermWire(Wire):
    topology_key: str = ""
    label_selector: LabelSelectorWire | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelectorWire | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTermWire(Wire):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTermWire | None = None


class PodAffinityWire(Wire):
    required: list[PodAffinityTermWire] = field(name=_REQUIRED, default_factory=list)
    preferred: list[WeightedPodAffinityTermWire] = field(name=_PREFERRED, default_factory=list)


class AffinityWire(Wire):
    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodAffinityWire | None = None
    pod_anti_affinity: PodAffinityWire | None = None


class TolerationWire(Wire):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class SpreadWire(Wire):
    topology_key: str = ""
    max_skew: Int32 = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorWire | None = None
    min_domains: Int32 | None = None
    match_label_keys: list[str] = []
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class ClaimSourceWire(Wire):
    claim_name: str = ""


class ClaimTemplateSpecWire(Wire):
    storage_class_name: str | None = None


class ClaimTemplateWire(Wire):
    spec: ClaimTemplateSpecWire | None = None


class EphemeralWire(Wire):
    volume_claim_template: ClaimTemplateWire | None = None


class VolumeWire(Wire):
    name: str = ""
    persistent_volume_claim: ClaimSourceWire | None = None
    ephemeral: EphemeralWire | None = None


class ResourceClaimWire(Wire):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ClaimStatusWire(Wire):
    """Of a pod's status: which ResourceClaim was made from a template; none, if null."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpecWire(Wire):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: AffinityWire | None = None
    tolerations: list[TolerationWire] = []
    topology_spread_constraints: list[SpreadWire] = []
    containers: list[ContainerWire] = []
    init_containers: list[ContainerWire] = []
    overhead: Quantities = {}
    resources: ResourcesWire | None = None
    volumes: list[VolumeWire] = []
    resource_claims: list[ResourceClaimWire] = []
    priority: Int32 | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: Int64 | None = None


class PodConditionWire(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerStatusWire(Wire):
    name: str = ""
    resources: ResourcesWire | None = None
    allocated_resources: Quantities = {}


class PodStatusWire(Wire):
    phase: str = ""
    conditions: list[PodConditionWire] = []
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatusWire] = []
    init_container_statuses: list[ContainerStatusWire] = []
    resource_claim_statuses: list[ClaimStatusWire] | None = None


class PodAnnotationsWire(Struct, gc=False):
    """Only these two annotations of a pod decide anything."""

    do_not_disrupt: str = field(name=labels.DO_NOT_DISRUPT, default="")
    deletion_cost: str = field(name=labels.POD_DELETION_COST, default="")


class PodMetadataWire(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: PodAnnotationsWire = field(default_factory=PodAnnotationsWire)
    owner_references: list[OwnerWire] = []


class PodWire(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: PodMetadataWire = field(default_factory=PodMetadataWire)
    spec: PodSpecWire = field(default_factory=PodSpecWire)
    status: PodStatusWire = field(default_factory=PodStatusWire)


# The same, with all that only the shape needs left as raw bytes: so a pod of a known shape is read.


class ScannedContainer(Wire):
    name: str = ""
    resources: Raw = Raw()
    ports: Raw = Raw()
    restart_policy: str | None = None


class ScannedSpec(Wire):
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()
    topology_spread_constraints: Raw = Raw()
    containers: list[ScannedContainer] = []
    init_containers: list[ScannedContainer] = []
    overhead: Raw = Raw()
    resources: Raw = Raw()
    volumes: list[VolumeWire] = []
    resource_claims: Raw = Raw()
    priority: Int32 | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: Int64 | None = None


class ScannedContainerStatus(Wire):
    name: str = ""
    resources: Raw = Raw()
    allocated_resources: Raw = Raw()


class ScannedStatus(Wire):
    phase: str = ""
    conditions: list[PodConditionWire] = []
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ScannedContainerStatus] = []
    init_container_statuses: list[ScannedContainerStatus] = []
    resource_claim_statuses: list[ClaimStatusWire] | None = None


class ScannedMetadata(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Raw = Raw()
    annotations: PodAnnotationsWire = field(default_factory=PodAnnotationsWire)
    owner_references: list[OwnerWire] = []


class ScannedPod(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: ScannedMetadata = field(default_factory=ScannedMetadata)
    spec: ScannedSpec = field(default_factory=ScannedSpec)
    status: ScannedStatus = field(default_factory=ScannedStatus)
