"""Dynamic resource allocation: what drivers publish (ResourceSlices), what pods ask for (ResourceClaims), and the
classes between them (S-194…S-203).

Amounts (capacities, counters) are integers in thousandths of a unit. An attribute without a domain of its own has its
driver's name as domain; all names here are full: `<domain>/<name>`.
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
    DeviceClassName,
    DevicePoolName,
    NamespaceName,
    NodeName,
    Plain,
    ResourceClaimName,
    ResourceSliceName,
)

EXACT, ALL = "ExactCount", "All"
"""How many devices of a request: so many, or every one that matches (at least one)."""


class Version(Struct, frozen=True):
    """An attribute that is a semantic version."""

    version: Plain


Attribute = bool | int | Plain | Version


class ValidRange(Struct, frozen=True, omit_defaults=True):
    """What may be consumed of a capacity: at least `min`, at most `max`, in steps from `min` on."""

    min: int
    max: int | None = None
    step: int | None = None


class Capacity(Struct, frozen=True, omit_defaults=True):
    """One dimension of a device. The rest is the policy by which requests take a part of it (S-201): `default` is taken
    when a request does not name it; of `values` and `range` at most one is there."""

    value: int
    default: int | None = None
    values: tuple[int, ...] = ()
    range: ValidRange | None = None


class CounterUse(Struct, frozen=True, omit_defaults=True):
    """What a device takes of a set of shared counters."""

    counter_set: Plain
    counters: dict[Plain, int] = {}


class Device(Struct, frozen=True, omit_defaults=True):
    """`shared`: several claims may have it at once, each a part of its capacity. `taints` keep requests away that do
    not tolerate them. `node`, `all_nodes`, `terms`: as in ResourceSlice, of a device whose slice leaves them to it."""

    name: Plain
    attributes: dict[Plain, Attribute] = {}
    capacity: dict[Plain, Capacity] = {}
    consumes: tuple[CounterUse, ...] = ()
    shared: bool = False
    taints: tuple[Taint, ...] = ()
    node: NodeName = ""
    all_nodes: bool = False
    terms: tuple[NodeTerm, ...] = ()


class ResourceSlice(Struct, frozen=True, omit_defaults=True):
    """A part of a driver's pool of devices. `count`: of how many slices the pool consists in this `generation`;
    `owner`: the Node that owns it. An instance type's slice templates are of this form, too, and need no name."""

    name: ResourceSliceName
    driver: Plain
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
    """Devices (driver, pool, name) of an instance type's slice templates that will have the same value of an attribute,
    whatever that will be."""

    attribute: Plain
    devices: Annotated[tuple[tuple[str, str, str], ...], BOUND_DEVICES]


class DeviceClass(Struct, frozen=True, omit_defaults=True):
    """`selectors`: CEL, all of which must hold."""

    name: DeviceClassName
    selectors: tuple[Plain, ...] = ()


class DeviceRequest(Struct, frozen=True, omit_defaults=True):
    """`first_of`: alternatives, the first that can be had counts; then only `name` says anything beside them.
    `capacity`: the part of a shared device that is asked for. `admin`: to look after devices, whoever has them;
    nothing is taken by that. `unsupported`: what of it kerf does not know."""

    name: Annotated[str, REQUEST_NAMES]
    device_class: DeviceClassName = ""
    selectors: tuple[Plain, ...] = ()
    mode: Plain = EXACT
    count: int = 1
    capacity: dict[Plain, int] = {}
    first_of: tuple[DeviceRequest, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    admin: bool = False
    unsupported: Plain = ""


class DeviceConstraint(Struct, frozen=True, omit_defaults=True):
    """The devices of these requests (all, if empty) have the same value of `match`; "" is a constraint of another
    kind, which nothing meets (S-200)."""

    match: Plain = ""
    requests: Annotated[tuple[str, ...], REQUEST_NAMES] = ()


class AllocatedDevice(Struct, frozen=True, omit_defaults=True):
    """`consumed`: of a shared device."""

    driver: Plain
    pool: DevicePoolName
    device: Plain
    consumed: dict[Plain, int] = {}


class Allocation(Struct, frozen=True, omit_defaults=True):
    """`terms`: the nodes that can use the devices; all if there are none."""

    devices: tuple[AllocatedDevice, ...] = ()
    terms: tuple[NodeTerm, ...] = ()


class ResourceClaim(Struct, frozen=True, omit_defaults=True):
    """`pods`: the uids for which it is reserved; `others`: something that is no pod has it, too. `made_for`: the uid of
    the pod for which it was made from a template, and `own_name` what the pod calls it."""

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
    """`claim`: what is made from it, without a name."""

    namespace: str
    name: str
    claim: ResourceClaim

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Reference(NamedTuple):
    """One of `PodShape.resource_claims`: the pod's own name, and the ResourceClaim or the template that it names."""

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
    """All that is known of devices: claims by namespace/name, classes and slices by name. `made`: the names of claims
    from templates (one, unless somebody made more), by the uid of the pod that they were made for and what it calls
    them. `leaving`: uids of the pods of nodes that are going, whose claims are allocated anew (S-198); `promised`: of
    these those that have a place by a plan, which looked at their claims."""

    claims: Mapping[str, ResourceClaim] = {}
    classes: Mapping[str, DeviceClass] = {}
    slices: Mapping[str, ResourceSlice] = {}
    made: Mapping[tuple[str, str], Collection[str]] = {}
    leaving: frozenset[str] = frozenset()
    promised: frozenset[str] = frozenset()

    def claims_of(self, pod: Pod, shape: PodShape) -> tuple[str, ...]:
        """S-195: the pod's ResourceClaims as namespace/name. One that is still to be made from its template goes by a
        name that no object has, so the pod waits for it. Of a pod that is promised a place those are left that are
        there: the others went with it, though its own end shows later. Its successor has claims of its own."""
        found = []
        for each in map(read_reference, shape.resource_claims):
            made = min(self.made.get((pod.uid, each.own), ()), default=f"{pod.name}/{each.own}")
            found.append(f"{pod.namespace}/{each.claim or made}")
        return tuple(name for name in found if pod.uid not in self.promised or name in self.claims)


def made_from_templates(claims: Iterable[ResourceClaim]) -> dict[tuple[str, str], list[str]]:
    """See `DeviceFacts.made`."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in claims:
        if each.made_for:
            found.setdefault((each.made_for, each.own_name), []).append(each.name)
    return found


def devices_without(facts: DeviceFacts | None, leaving: Iterable[str]) -> DeviceFacts | None:
    """As if these pods were leaving, too (D-90)."""
    return None if facts is None else replace(facts, leaving=facts.leaving.union(leaving))
