"""EC2NodeClass (karpenter.k8s.aws/v1): its spec and status in full (A-25…A-45, A-54).

The nested structs encode their fields under the API's names (`volumeSize`, `kmsKeyID`), so the same structs read the
API's JSON and are recorded. Lists of the API become tuples.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.manifests.wire import Int32, Int64


class Part(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A part of the API's object. An absent string is "", an absent number or switch None."""


class SubnetTerm(Part, frozen=True):
    """Selects subnets by id or tags (A-25)."""

    tags: dict[str, str] = {}
    id: str = ""


class SecurityGroupTerm(Part, frozen=True):
    """Selects security groups by id, name or tags (A-26)."""

    tags: dict[str, str] = {}
    id: str = ""
    name: str = ""


class CapacityReservationTerm(Part, frozen=True):
    """Selects capacity reservations by id, tags, owner or match criteria (A-27)."""

    tags: dict[str, str] = {}
    id: str = ""
    owner_id: str = field(name="ownerID", default="")
    instance_match_criteria: str = ""


class PlacementGroupSelector(Part, frozen=True):
    """Names one placement group, by name or id (A-28)."""

    name: str = ""
    id: str = ""


class AMITerm(Part, frozen=True):
    """Selects images by alias, id, name, owner, tags or SSM parameter (A-29, A-30)."""

    tags: dict[str, str] = {}
    id: str = ""
    name: str = ""
    owner: str = ""
    alias: str = ""
    ssm_parameter: str = ""

    @property
    def alias_family(self) -> str:
        return self.alias.partition("@")[0].lower()

    @property
    def alias_version(self) -> str:
        return self.alias.partition("@")[2]


class BlockDevice(Part, frozen=True):
    """The volume of a block device mapping (A-36, A-37). `volume_size` is the API's text, because the hash compares
    texts (A-64).
    """

    delete_on_termination: bool | None = None
    encrypted: bool | None = None
    iops: Int64 | None = None
    kms_key_id: str = field(name="kmsKeyID", default="")
    snapshot_id: str = field(name="snapshotID", default="")
    throughput: Int64 | None = None
    volume_initialization_rate: Int32 | None = None
    volume_size: str = ""
    volume_type: str = ""


class BlockDeviceMapping(Part, frozen=True):
    """A volume of the instances (A-36)."""

    device_name: str = ""
    root_volume: bool = False
    ebs: BlockDevice | None = None


class NetworkInterface(Part, frozen=True):
    """A network interface of the instances (A-39)."""

    network_card_index: Int32 | None = None
    device_index: Int32 | None = None
    interface_type: str = ""


class MetadataOptions(Part, frozen=True):
    """How instances reach the metadata service, with the defaults of the definition (A-42)."""

    http_endpoint: str = "enabled"
    http_protocol_ipv6: str = field(name="httpProtocolIPv6", default="disabled")
    http_put_response_hop_limit: Int64 = 1
    http_tokens: str = "required"


class ConnectionTracking(Part, frozen=True):
    """Timeouts of connection tracking, in seconds (A-43)."""

    tcp_established_timeout: Int32 | None = None
    udp_stream_timeout: Int32 | None = None
    udp_timeout: Int32 | None = None


class CPUOptions(Part, frozen=True):
    """Options of the processor: nested virtualization (A-45)."""

    nested_virtualization: str = ""


class EC2NodeClassSpec(Part, frozen=True):
    """The spec of an EC2NodeClass (A-25…A-45). `kubelet` is an open object and is kept as it is (A-35)."""

    subnet_selector_terms: tuple[SubnetTerm, ...] = ()
    security_group_selector_terms: tuple[SecurityGroupTerm, ...] = ()
    capacity_reservation_selector_terms: tuple[CapacityReservationTerm, ...] = ()
    placement_group_selector: PlacementGroupSelector | None = None
    ami_selector_terms: tuple[AMITerm, ...] = ()
    ami_family: str = ""
    user_data: str = ""
    role: str = ""
    instance_profile: str = ""
    tags: dict[str, str] = {}
    kubelet: dict[str, Any] = {}
    block_device_mappings: tuple[BlockDeviceMapping, ...] = ()
    instance_store_policy: str = ""
    network_interfaces: tuple[NetworkInterface, ...] = ()
    detailed_monitoring: bool | None = None
    associate_public_ip_address: bool | None = field(name="associatePublicIPAddress", default=None)
    ip_prefix_count: Int32 | None = None
    metadata_options: MetadataOptions = MetadataOptions()
    connection_tracking: ConnectionTracking | None = None
    context: str = ""
    cpu_options: CPUOptions | None = None


class ResolvedSubnet(Part, frozen=True):
    id: str = ""
    zone: str = ""
    zone_id: str = field(name="zoneID", default="")


class ResolvedSecurityGroup(Part, frozen=True):
    id: str = ""
    name: str = ""


class ResolvedAMI(Part, frozen=True):
    id: str = ""
    name: str = ""
    deprecated: bool = False
    requirements: tuple[RequirementSpec, ...] = ()


class ResolvedReservation(Part, frozen=True):
    """A capacity reservation in the status. `end_time` is RFC 3339 text, "" for a reservation without an end."""

    availability_zone: str = ""
    end_time: str = ""
    id: str = ""
    instance_match_criteria: str = ""
    instance_type: str = ""
    owner_id: str = field(name="ownerID", default="")
    reservation_type: str = "default"
    interruptible: bool = False
    state: str = "active"


class EC2NodeClassStatus(Struct, frozen=True, omit_defaults=True):
    """What a NodeClass resolves to: subnets, groups, images, profile, reservations, conditions (A-54)."""

    subnets: tuple[ResolvedSubnet, ...] = ()
    security_groups: tuple[ResolvedSecurityGroup, ...] = ()
    amis: tuple[ResolvedAMI, ...] = ()
    instance_profile: str = ""
    capacity_reservations: tuple[ResolvedReservation, ...] = ()
    conditions: tuple[Condition, ...] = ()


class EC2NodeClass(Struct, frozen=True, omit_defaults=True):
    """A karpenter.k8s.aws/v1 EC2NodeClass. Times are milliseconds since the epoch, 0 when absent."""

    name: str
    spec: EC2NodeClassSpec
    status: EC2NodeClassStatus = EC2NodeClassStatus()
    uid: str = ""
    generation: int = 0
    annotations: dict[str, str] = {}  # only Karpenter's
    created: int = 0
    deleting: int = 0

    @property
    def ready(self) -> bool:
        """Returns whether the condition Ready is True (L-64). A NodeClass without the condition was not looked
        at yet.
        """
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def ami_family(self) -> str:
        """Returns spec.amiFamily, else the family of the alias, else Custom (A-48)."""
        aliases = [term.alias_family for term in self.spec.ami_selector_terms if term.alias]
        return self.spec.ami_family or (AMI_FAMILIES.get(aliases[0], "Custom") if aliases else "Custom")


AMI_FAMILIES: dict[str, str] = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
"""Maps the family in an alias to its name in amiFamily (A-30)."""
