"""ResourceSlices, ResourceClaims, ResourceClaimTemplates and DeviceClasses of resource.k8s.io (v1)."""

from __future__ import annotations

import msgspec

from kerf.engine.model.kubernetes.devices import (
    ALL,
    EXACT,
    AllocatedDevice,
    Allocation,
    Attribute,
    Capacity,
    CounterUse,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ValidRange,
    Version,
)
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.manifests.kubernetes.devices_wire import (
    AllocationWire,
    AttributeWire,
    CapacityWire,
    CountersWire,
    DeviceClassWire,
    DeviceSelectorWire,
    DevicesWire,
    DeviceWire,
    ExactWire,
    PolicyWire,
    Quantity,
    RequestWire,
    ResourceClaimTemplateWire,
    ResourceClaimWire,
    SliceWire,
)
from kerf.engine.model.manifests.kubernetes.volumes import selector_terms
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Read, require_name
from kerf.engine.model.quantities import parse_quantity

OWN_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made from a template: what its pod calls it."""
_MODES = (EXACT, ALL)
_MILLI = "cpu"  # the resource whose amounts are read in thousandths


_read_slice = msgspec.json.Decoder(SliceWire).decode
_read_class = msgspec.json.Decoder(DeviceClassWire).decode
_read_claim = msgspec.json.Decoder(ResourceClaimWire).decode
_read_template = msgspec.json.Decoder(ResourceClaimTemplateWire).decode


def read_resource_slice(data: bytes, report: Report) -> Read:
    """A ResourceSlice."""
    wire = _read_slice(data)
    spec = wire.spec
    require_name(report, wire.metadata)
    owners = [
        owner_reference.name
        for owner_reference in wire.metadata.owner_references
        if (owner_reference.api_version, owner_reference.kind) == ("v1", "Node")
    ]
    given = ResourceSlice(
        name=wire.metadata.name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        count=spec.pool.resource_slice_count,
        node=spec.node_name or "",
        all_nodes=bool(spec.all_nodes),
        terms=selector_terms(spec.node_selector),
        owner=owners[0] if owners else "",
        devices=read_devices(report, "spec.devices", spec.driver, spec.devices or []),
        counters=tuple(
            _counters(report, "spec.sharedCounters", shared_counter, shared_counter.name)
            for shared_counter in spec.shared_counters or ()
        ),
    )
    return Read(given, {})


def read_device_class(data: bytes, report: Report) -> Read:
    """A DeviceClass."""
    wire = _read_class(data)
    require_name(report, wire.metadata)
    return Read(DeviceClass(wire.metadata.name, _selectors(wire.spec.selectors)), {})


def read_resource_claim(data: bytes, report: Report) -> Read:
    """A ResourceClaim."""
    wire = _read_claim(data)
    metadata, devices, status = wire.metadata, wire.spec.devices, wire.status
    require_name(report, metadata)
    consumers = status.reserved_for or []
    own_name = metadata.annotations.get(OWN_NAME, "")
    owners = [
        owner_reference.uid
        for owner_reference in metadata.owner_references
        if (owner_reference.api_version, owner_reference.kind) == ("v1", "Pod")
    ]
    given = ResourceClaim(
        namespace=metadata.namespace or "default",
        name=metadata.name,
        requests=_requests(report, "spec.devices.requests", devices),
        constraints=_constraints(devices),
        allocation=_allocation(report, status.allocation) if status.allocation is not None else None,
        pods=tuple(sorted(consumer.uid for consumer in consumers if consumer.resource == "pods")),
        others=any(consumer.resource != "pods" for consumer in consumers),
        made_for=owners[0] if owners and own_name else "",
        own_name=own_name if owners else "",
    )
    return Read(given, {})


def read_resource_claim_template(data: bytes, report: Report) -> Read:
    """A ResourceClaimTemplate."""
    wire = _read_template(data)
    require_name(report, wire.metadata)
    namespace, devices = wire.metadata.namespace or "default", wire.spec.spec.devices
    requests = _requests(report, "spec.spec.devices.requests", devices)
    claim = ResourceClaim(namespace, "", requests, _constraints(devices))
    return Read(ResourceClaimTemplate(namespace, wire.metadata.name, claim), {})


def _requests(report: Report, path: str, wire: DevicesWire) -> tuple[DeviceRequest, ...]:
    return tuple(_request(report, f"{path}[{index}]", request) for index, request in enumerate(wire.requests or ()))


def _constraints(wire: DevicesWire) -> tuple[DeviceConstraint, ...]:
    return tuple(
        DeviceConstraint(constraint.match_attribute or "", tuple(constraint.requests or ()))
        for constraint in wire.constraints or ()
    )


def read_devices(report: Report, path: str, driver: str, wires: list[DeviceWire]) -> tuple[Device, ...]:
    return tuple(_device(report, f"{path}[{index}]", driver, wire) for index, wire in enumerate(wires))


def _device(report: Report, path: str, driver: str, wire: DeviceWire) -> Device:
    return Device(
        name=wire.name,
        attributes={_full(name, driver): _attribute(attribute) for name, attribute in sorted(wire.attributes.items())},
        capacity={
            _full(name, driver): _capacity(report, f"{path}.capacity[{name}]", amount)
            for name, amount in sorted(wire.capacity.items())
        },
        consumes=tuple(
            _counters(report, f"{path}.consumesCounters", consumes_counter, consumes_counter.counter_set)
            for consumes_counter in wire.consumes_counters or ()
        ),
        shared=bool(wire.allow_multiple_allocations),
        taints=tuple(Taint(taint.key, taint.effect, taint.value) for taint in wire.taints or ()),
        node=wire.node_name or "",
        all_nodes=bool(wire.all_nodes),
        terms=selector_terms(wire.node_selector),
    )


def _full(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _attribute(wire: AttributeWire) -> Attribute:
    if wire.version is not None:
        return Version(wire.version)
    for value in (wire.flag, wire.number, wire.string):
        if value is not None:
            return value
    return ""


def _amount(report: Report, path: str, text: Quantity) -> int:
    return report.attempt(path, parse_quantity, text, _MILLI, otherwise=0)


def _capacity(report: Report, path: str, wire: CapacityWire) -> Capacity:
    policy = wire.request_policy or PolicyWire()
    given = policy.valid_range

    def maybe(text: Quantity | None) -> int | None:
        return None if text is None else _amount(report, f"{path}.requestPolicy", text)

    return Capacity(
        value=_amount(report, path, wire.value),
        default=maybe(policy.default),
        values=tuple(
            sorted(_amount(report, f"{path}.requestPolicy", valid_value) for valid_value in policy.valid_values or ())
        ),
        range=None
        if given is None
        else ValidRange(_amount(report, f"{path}.requestPolicy", given.min), maybe(given.max), maybe(given.step)),
    )


def _counters(report: Report, path: str, wire: CountersWire, name: str) -> CounterUse:
    return CounterUse(
        name,
        {counter: _amount(report, path, counter_wire.value) for counter, counter_wire in sorted(wire.counters.items())},
    )


def _selectors(wires: list[DeviceSelectorWire] | None) -> tuple[str, ...]:
    """A selector of another kind than CEL gives an expression that nothing can read."""
    return tuple(wire.cel.expression if wire.cel is not None else "" for wire in wires or ())


def _request(report: Report, path: str, wire: RequestWire) -> DeviceRequest:
    if wire.first_available:
        alternatives = [
            _exactly(report, f"{path}.firstAvailable[{index}]", alternative, alternative.name)
            for index, alternative in enumerate(wire.first_available)
        ]
        return DeviceRequest(wire.name, first_of=tuple(alternatives))
    if wire.exactly is None:
        return DeviceRequest(wire.name, unsupported="a request of an unknown kind")
    return _exactly(report, f"{path}.exactly", wire.exactly, wire.name)


def _exactly(report: Report, path: str, wire: ExactWire, name: str) -> DeviceRequest:
    mode = wire.allocation_mode or EXACT
    report.one_of(f"{path}.allocationMode", mode, _MODES)
    wanted = (wire.capacity.requests if wire.capacity is not None else None) or {}
    return DeviceRequest(
        name=name,
        device_class=wire.device_class_name,
        selectors=_selectors(wire.selectors),
        mode=mode,
        count=wire.count if wire.count is not None else 1,
        capacity={
            key: _amount(report, f"{path}.capacity.requests[{key}]", text) for key, text in sorted(wanted.items())
        },
        tolerations=tuple(
            Toleration(
                key=toleration.key,
                operator=toleration.operator or "Equal",
                value=toleration.value,
                effect=toleration.effect,
            )
            for toleration in wire.tolerations or ()
        ),
        admin=bool(wire.admin_access),
    )


def _allocation(report: Report, wire: AllocationWire) -> Allocation:
    """Devices that somebody looks after (adminAccess) are not taken by that."""
    return Allocation(
        tuple(
            AllocatedDevice(
                result.driver,
                result.pool,
                result.device,
                {
                    name: _amount(report, "status.allocation", text)
                    for name, text in sorted((result.consumed_capacity or {}).items())
                },
            )
            for result in wire.devices.results or ()
            if not result.admin_access
        ),
        selector_terms(wire.node_selector),
    )
