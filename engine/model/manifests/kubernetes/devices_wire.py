"""The wire form of resource.k8s.io (v1): ResourceSlices, ResourceClaims with their templates, DeviceClasses."""

from __future__ import annotations

from msgspec import field

from kerf.engine.model.manifests.kubernetes.pods_wire import TolerationWire
from kerf.engine.model.manifests.kubernetes.volumes import SelectorWire
from kerf.engine.model.manifests.wire import Int64, MetadataWire, ObjectWire, OwnerWire, TaintWire, Wire

Quantity = str | int | float


class AttributeWire(Wire):
    flag: bool | None = field(default=None, name="bool")
    number: Int64 | None = field(default=None, name="int")
    string: str | None = None
    version: str | None = None


class RangeWire(Wire):
    min: Quantity = "0"
    max: Quantity | None = None
    step: Quantity | None = None


class PolicyWire(Wire):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: RangeWire | None = None


class CapacityWire(Wire):
    value: Quantity = "0"
    request_policy: PolicyWire | None = None


class CounterWire(Wire):
    value: Quantity = "0"


class CountersWire(Wire):
    """A shared counter set has a name, a device's consumption names the set."""

    name: str = ""
    counter_set: str = ""
    counters: dict[str, CounterWire] = field(default_factory=dict)


class DeviceWire(Wire):
    name: str = ""
    attributes: dict[str, AttributeWire] = field(default_factory=dict)
    capacity: dict[str, CapacityWire] = field(default_factory=dict)
    consumes_counters: list[CountersWire] | None = None
    allow_multiple_allocations: bool | None = None
    taints: list[TaintWire] | None = None
    node_name: str | None = None
    node_selector: SelectorWire | None = None
    all_nodes: bool | None = None


class PoolWire(Wire):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class SliceSpecWire(Wire):
    driver: str = ""
    pool: PoolWire = field(default_factory=PoolWire)
    node_name: str | None = None
    node_selector: SelectorWire | None = None
    all_nodes: bool | None = None
    devices: list[DeviceWire] | None = None
    shared_counters: list[CountersWire] | None = None


class OwnedWire(MetadataWire):
    owner_references: list[OwnerWire] = field(default_factory=list)


class SliceWire(ObjectWire):
    metadata: OwnedWire = field(default_factory=OwnedWire)
    spec: SliceSpecWire = field(default_factory=SliceSpecWire)


class CELWire(Wire):
    expression: str = ""


class DeviceSelectorWire(Wire):
    cel: CELWire | None = None


class DeviceClassSpecWire(Wire):
    selectors: list[DeviceSelectorWire] | None = None


class DeviceClassWire(ObjectWire):
    spec: DeviceClassSpecWire = field(default_factory=DeviceClassSpecWire)


class WantedCapacityWire(Wire):
    requests: dict[str, Quantity] | None = None


class ExactWire(Wire):
    """`exactly` of a request, and with a name one of its alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelectorWire] | None = None
    allocation_mode: str = ""
    count: Int64 | None = None
    admin_access: bool | None = None
    tolerations: list[TolerationWire] | None = None
    capacity: WantedCapacityWire | None = None


class RequestWire(Wire):
    name: str = ""
    exactly: ExactWire | None = None
    first_available: list[ExactWire] | None = None


class ConstraintWire(Wire):
    requests: list[str] | None = None
    match_attribute: str | None = None


class DevicesWire(Wire):
    requests: list[RequestWire] | None = None
    constraints: list[ConstraintWire] | None = None


class ClaimSpecWire(Wire):
    devices: DevicesWire = field(default_factory=DevicesWire)


class TemplateSpecWire(Wire):
    spec: ClaimSpecWire = field(default_factory=ClaimSpecWire)


class ResourceClaimTemplateWire(ObjectWire):
    spec: TemplateSpecWire = field(default_factory=TemplateSpecWire)


class ResultWire(Wire):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    consumed_capacity: dict[str, Quantity] | None = None


class ResultsWire(Wire):
    results: list[ResultWire] | None = None


class AllocationWire(Wire):
    devices: ResultsWire = field(default_factory=ResultsWire)
    node_selector: SelectorWire | None = None


class ConsumerWire(Wire):
    resource: str = ""
    uid: str = ""


class ClaimStatusWire(Wire):
    allocation: AllocationWire | None = None
    reserved_for: list[ConsumerWire] | None = None


class ResourceClaimWire(ObjectWire):
    metadata: OwnedWire = field(default_factory=OwnedWire)
    spec: ClaimSpecWire = field(default_factory=ClaimSpecWire)
    status: ClaimStatusWire = field(default_factory=ClaimStatusWire)
