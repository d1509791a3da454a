"""The parts of Kubernetes' JSON that several kinds share, as msgspec reads them: only fields that matter.

All are optional here. What must be present, or must have a certain form, is checked where a wire struct is
turned into a model struct, so that one pass can report every violation of an object.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field

from kerf.engine.model.crds.shared_fields import EFFECTS
from kerf.engine.model.durations import parse_time
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.labels import RESTRICTED_DOMAINS
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import parse_quantity
from kerf.engine.model.reasons import Reason

Int32 = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Quantities = dict[str, str | int | float]


class Read(NamedTuple):
    """An object, and the content-addressed structs that its digests name. `notes` says what of it counts as not there
    although the object is accepted."""

    object: Struct
    blobs: dict[str, Struct]
    notes: tuple[Reason, ...] = ()


class Wire(Struct, rename="camel", gc=False):
    """A part of the API's JSON. Unknown fields are ignored."""


class OwnerWire(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class MetadataWire(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ConditionWire(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class TaintWire(Wire):
    key: str = ""
    effect: str = ""
    value: str = ""


class NodeClassRefWire(Wire):
    group: str = ""
    kind: str = ""
    name: str = ""


class RequirementWire(Wire):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None
    min_values: Int32 | None = None


class ObjectWire(Wire):
    """What every object begins with."""

    api_version: str = ""
    kind: str = ""
    metadata: MetadataWire = field(default_factory=MetadataWire)


def read_time(report: Report, path: str, text: str | None) -> int:
    """Milliseconds since the epoch, 0 for an absent or bad time."""
    return report.attempt(path, parse_time, text, otherwise=0) if text else 0


def read_resources(report: Report, path: str, quantities: Quantities) -> Resources:
    """A resource list; amounts below zero are refused, as the API server does. Of custom resources it takes them (a
    NodePool's limits): of one that is `admitted` they are zero, and nothing fits."""
    resources: Resources = {}
    for resource, text in quantities.items():
        where = f"{path}[{resource}]"
        amount = report.attempt(where, parse_quantity, text, resource, otherwise=0)
        if amount < 0 and not report.admitted:
            report.add("KERF306", where, f"{text!r} is less than zero")
        resources[resource] = max(amount, 0)
    return resources


def read_taints(report: Report, path: str, taints: list[TaintWire]) -> tuple[Taint, ...]:
    """Taints of a Node or a NodePool template. Keys are required, effects one of the three (L-12)."""
    for index, taint in enumerate(taints):
        if not taint.key:
            report.add("KERF304", f"{path}[{index}].key", "A taint needs a key")
        report.one_of(f"{path}[{index}].effect", taint.effect, EFFECTS)
    return tuple(Taint(taint.key, taint.effect, taint.value) for taint in taints)


def condition(conditions: list[ConditionWire], kind: str) -> ConditionWire | None:
    """The condition of this type, if the object carries it."""
    return next((c for c in conditions if c.type == kind), None)


def karpenter_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """Those in a domain of Karpenter or of its AWS provider; the rest may be large and decides nothing."""
    return {key: value for key, value in annotations.items() if _of_karpenter(key.partition("/")[0])}


def _of_karpenter(domain: str) -> bool:
    return any(domain == d or domain.endswith("." + d) for d in RESTRICTED_DOMAINS)


def require_name(report: Report, metadata: MetadataWire) -> None:
    if not metadata.name:
        report.add("KERF304", "metadata.name", "An object needs a name")


def identity(report: Report, metadata: MetadataWire) -> tuple[str, str]:
    """Namespace and uid. A manifest has no uid yet: namespace and name stand in, which are unique per kind
    too."""
    require_name(report, metadata)
    namespace = metadata.namespace or "default"
    return namespace, metadata.uid or f"{namespace}/{metadata.name}"
