"""Dynamic resource allocation: ResourceSlices of drivers, ResourceClaims of pods, and device classes (S-194…S-203).

Amounts (capacities, counters) are integers in thousandths of a unit. All names of attributes are full:
`<domain>/<name>`. An attribute without a domain has its driver's name as domain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import NodeTerm, Pod, PodShape, Taint, Toleration
from kerf.engine.model.names import (
    BOUND_DEVICES,
    REQUEST_NAMES,
    AttributeName,
    DeviceClassName,
    DevicePoolName,
    DeviceSelector,
    DeviceText,
    NamespaceName,
    NodeName,
    Plain,
    ResourceClaimName,
    ResourceSliceName,
)

EXACT, ALL = "ExactCount", "All"
"""How many devices a request asks for: an exact number, or every one that matches (at least one)."""


class Version(Struct, frozen=True):
    """An attribute that is a semantic version."""

    version: DeviceText


Attribute = bool | int | DeviceText | Version


class ValidRange(Struct, frozen=True, omit_defaults=True):
    """Which amounts of a capacity a claim may consume: at least `min`, at most `max`, in steps counted from `min`."""

    min: int
    max: int | None = None
    step: int | None = None


class Capacity(Struct, frozen=True, omit_defaults=True):
    """One dimension of a device, and the policy by which requests take a part of it (S-201).

    `default` is taken if a request does not name the capacity. At most one of `values` and `range` is set.
    """

    value: int
    default: int | None = None
    values: tuple[int, ...] = ()
    range: ValidRange | None = None


class CounterUse(Struct, frozen=True, omit_defaults=True):
    """What a device consumes of a set of shared counters."""

    counter_set: DeviceText
    counters: dict[DeviceText, int] = {}


class Device(Struct, frozen=True, omit_defaults=True):
    """A device. `shared` means that several claims may have it at once, each with a part of its capacity.

    Requests that do not tolerate the `taints` cannot have it. `node`, `all_nodes` and `terms` are as in ResourceSlice,
    and are set if the slice leaves them to its devices.
    """

    name: DeviceText
    attributes: dict[AttributeName, Attribute] = {}
    capacity: dict[AttributeName, Capacity] = {}
    consumes: tuple[CounterUse, ...] = ()
    shared: bool = False
    taints: tuple[Taint, ...] = ()
    node: NodeName = ""
    all_nodes: bool = False
    terms: tuple[NodeTerm, ...] = ()


class ResourceSlice(Struct, frozen=True, omit_defaults=True):
    """A part of a driver's pool of devices. `count` is how many slices the pool has in this `generation`.

    `owner` is the Node that owns the slice. Slice templates of an instance type have this form too, and need no name.
    """

    name: ResourceSliceName
    driver: DeviceText
    pool: DevicePoolName
    generation: int = 1
    count: int = 1
    node: NodeName = ""
    all_nodes: bool = False
    terms: tuple[NodeTerm, ...] = ()
    owner: NodeName = ""
    devices: tuple[Device, ...] = ()
    counters: tuple[CounterUse, ...] = ()


class AttributeBinding(Struct, frozen=True, omit_defaults=True):
    """Devices of an instance type's slice templates (driver, pool, name) that will share an attribute's value.

    The value itself is not known before a node exists.
    """

    attribute: AttributeName
    devices: Annotated[tuple[tuple[str, str, str], ...], BOUND_DEVICES]


class DeviceClass(Struct, frozen=True, omit_defaults=True):
    """A device class. `selectors` are CEL expressions, all of which must hold."""

    name: DeviceClassName
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceRequest(Struct, frozen=True, omit_defaults=True):
    """One request of a ResourceClaim. `first_of` lists alternatives, of which the first available counts.

    With `first_of`, only `name` is set besides. `capacity` is the requested part of a shared device. `admin` requests
    access to look after devices, whoever has them, and takes nothing. `unsupported` names what kerf does not know of
    the request.
    """

    name: Annotated[str, REQUEST_NAMES]
    device_class: DeviceClassName = ""
    selectors: tuple[DeviceSelector, ...] = ()
    mode: Plain = EXACT
    count: int = 1
    capacity: dict[AttributeName, int] = {}
    first_of: tuple[DeviceRequest, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    admin: bool = False
    unsupported: Plain = ""


class DeviceConstraint(Struct, frozen=True, omit_defaults=True):
    """Requires the same value of the attribute `match` from the devices of these requests (of all, if empty).

    A `match` of "" stands for a constraint of another kind, which no device meets (S-200).
    """

    match: AttributeName = ""
    requests: Annotated[tuple[str, ...], REQUEST_NAMES] = ()


class AllocatedDevice(Struct, frozen=True, omit_defaults=True):
    """A device that a claim has. `consumed` is the part taken of a shared device."""

    driver: DeviceText
    pool: DevicePoolName
    device: DeviceText
    consumed: dict[AttributeName, int] = {}


class Allocation(Struct, frozen=True, omit_defaults=True):
    """What a claim was allocated. `terms` select the nodes that can use the devices; without terms all nodes can."""

    devices: tuple[AllocatedDevice, ...] = ()
    terms: tuple[NodeTerm, ...] = ()


class ResourceClaim(Struct, frozen=True, omit_defaults=True):
    """A ResourceClaim. `pods` are the uids of the pods that it is reserved for; `others` means that it also is for
    something else.

    If it was made from a template, `made_for` is the uid of its pod, and `own_name` is what the pod calls it.
    """

    namespace: NamespaceName
    name: ResourceClaimName
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    allocation: Allocation | None = None
    pods: tuple[Plain, ...] = ()
    others: bool = False
    made_for: Plain = ""
    own_name: ResourceClaimName = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ResourceClaimTemplate(Struct, frozen=True, omit_defaults=True):
    """A ResourceClaimTemplate. `claim` is the claim that is made from it, without a name."""

    namespace: str
    name: str
    claim: ResourceClaim

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Reference(NamedTuple):
    """One of `PodShape.resource_claims`: the pod's own name, and the ResourceClaim or template that it refers to."""

    own: str
    claim: str = ""
    template: str = ""


def read_reference(text: str) -> Reference:
    own, named, claim = text.partition("=")
    if named:
        return Reference(own, claim)
    own, _, template = text.partition("@")
    return Reference(own, template=template)


class DeviceFacts(Struct, frozen=True):
    """All that is known of devices: claims by namespace/name, classes and slices by name.

    `made` holds the names of claims made from templates, by the uid of their pod and the pod's own name for them (one
    each, unless somebody made more). `leaving` are uids of pods on nodes that are going; their claims are allocated
    anew (S-198). `promised` are those of them for which a plan, made with their claims, has a place.
    """

    claims: Mapping[str, ResourceClaim] = {}
    classes: Mapping[str, DeviceClass] = {}
    slices: Mapping[str, ResourceSlice] = {}
    made: Mapping[tuple[str, str], Collection[str]] = {}
    leaving: frozenset[str] = frozenset()
    promised: frozenset[str] = frozenset()

    def claims_of(self, pod: Pod, shape: PodShape) -> tuple[str, ...]:
        """Returns the pod's ResourceClaims as namespace/name (S-195).

        A claim that is still to be made from its template has a name that no object has, so the pod waits for it. For a
        promised pod only existing claims are returned: missing ones were deleted with the pod, whose own deletion shows
        later. Its successor has claims of its own.
        """
        found = []
        for reference in map(read_reference, shape.resource_claims):
            made = min(self.made.get((pod.uid, reference.own), ()), default=f"{pod.name}/{reference.own}")
            found.append(f"{pod.namespace}/{reference.claim or made}")
        return tuple(name for name in found if pod.uid not in self.promised or name in self.claims)


def made_from_templates(claims: Iterable[ResourceClaim]) -> dict[tuple[str, str], list[str]]:
    """Returns the claims made from templates, as in `DeviceFacts.made`."""
    found: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        if claim.made_for:
            found.setdefault((claim.made_for, claim.own_name), []).append(claim.name)
    return found


def devices_without(facts: DeviceFacts | None, leaving: Iterable[str]) -> DeviceFacts | None:
    """Returns the facts as if these pods were leaving too (D-90)."""
    return None if facts is None else replace(facts, leaving=facts.leaving.union(leaving))
