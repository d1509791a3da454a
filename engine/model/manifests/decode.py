"""Decodes Kubernetes documents into model structs, or refuses them with everything that is wrong.

Callers pass JSON bytes (watches) or parsed documents (adapters parse YAML). A document that decodes takes the fast way.
One with values of wrong types is repaired first, so that its other mistakes are found too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from kerf.engine.model.did_you_mean import did_you_mean
from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.manifests.karpenter.capacity_buffers import BufferWire, read_capacity_buffer
from kerf.engine.model.manifests.karpenter.ec2nodeclasses import EC2NodeClassWire, read_ec2_node_class
from kerf.engine.model.manifests.karpenter.nodepools import read_kwok_node_class, read_node_pool
from kerf.engine.model.manifests.karpenter.nodepools_wire import KWOKNodeClassWire, NodePoolWire
from kerf.engine.model.manifests.kubernetes.devices import (
    read_resource_claim_template,
)
from kerf.engine.model.manifests.kubernetes.devices_wire import (
    ResourceClaimTemplateWire,
)
from kerf.engine.model.manifests.kubernetes.priority_classes import PriorityClassWire, read_priority_class
from kerf.engine.model.manifests.repair import repair
from kerf.engine.model.manifests.violations import ManifestError, Report, Violation
from kerf.engine.model.manifests.wire import Read
from kerf.engine.model.reasons import Reason

Document = dict[str, Any]


class Decoded(Struct, frozen=True):
    """A decoded document. `object` is a struct of kerf.engine.model.

    `blobs` are the structs that its digests name (digest → PodShape). `notes` is what its author should know although
    it was accepted.
    """

    object: Struct
    blobs: dict[str, Struct] = {}
    notes: tuple[Reason, ...] = ()


class Kind(Struct, frozen=True):
    """How to read one kind: the wire struct of the whole document, and the reader of valid bytes.

    For an old version also the conversion that comes first, and the paths from which it moves fields.
    """

    wire: type[Struct]
    read: Callable[[bytes, Report], Read]
    convert: Callable[[Document, Report], Document] | None = None
    moved: dict[str, str] = {}


def decoders(kinds: Iterable[WatchedKind]) -> dict[str, Kind]:
    """Returns how to read the watched kinds, by apiVersion and kind."""
    return {served.api: Kind(served.wire, served.read) for kind in kinds for served in kind.served}


KINDS: dict[str, Kind] = {
    **decoders(WATCHED),
    "scheduling.k8s.io/v1/PriorityClass": Kind(PriorityClassWire, read_priority_class),
    "resource.k8s.io/v1/ResourceClaimTemplate": Kind(ResourceClaimTemplateWire, read_resource_claim_template),
    "karpenter.sh/v1beta1/NodePool": Kind(
        NodePoolWire, read_node_pool, v1beta1.convert_node_pool, v1beta1.NODEPOOL_MOVED
    ),
    "autoscaling.x-k8s.io/v1alpha1/CapacityBuffer": Kind(BufferWire, read_capacity_buffer),
    "karpenter.k8s.aws/v1/EC2NodeClass": Kind(EC2NodeClassWire, read_ec2_node_class),
    "karpenter.k8s.aws/v1beta1/EC2NodeClass": Kind(
        EC2NodeClassWire, read_ec2_node_class, v1beta1.convert_ec2_node_class
    ),
    "karpenter.kwok.sh/v1alpha1/KWOKNodeClass": Kind(KWOKNodeClassWire, read_kwok_node_class),
}
"""How to read each kind that kerf knows, by apiVersion and kind."""

_MIN_SIMILARITY = 0.9
"""How similar (0 to 1, difflib's ratio) a kind's name must be to be suggested for a misspelt one."""
_SUCCESSORS = {"Provisioner": "NodePool", "Machine": "NodeClaim", "AWSNodeTemplate": "EC2NodeClass"}  # L-138
_CLUSTER_SCOPED = frozenset(
    [served.api.rpartition("/")[2] for kind in WATCHED if not kind.namespaced for served in kind.served]
    + ["EC2NodeClass", "KWOKNodeClass", "PriorityClass"]
)
NAMELESS = 'Say what it is, such as "apiVersion: karpenter.sh/v1" and "kind: NodePool"'
"""What to do with a document that does not say what it is."""
_MALFORMED = (msgspec.DecodeError, ValueError, RecursionError)


class _Head(Struct, rename="camel", gc=False):
    api_version: Any = ""
    kind: Any = ""


class _List(Struct, gc=False):
    items: list[Raw] = []


_read_head = msgspec.json.Decoder(_Head).decode
_read_list = msgspec.json.Decoder(_List).decode


def decode_object(document: bytes | Document, *, source: str = "", assume: str = "") -> Decoded:
    """Decodes one Kubernetes object. `assume` is its kind if it names none ("v1/Pod": an item of a typed list).

    Raises `ManifestError` (an `InputError`) with every violation found; `source` says where the document is from.
    """
    data = document if isinstance(document, bytes) else _to_json(document, source)
    name = _kind_of(data, source, assume)
    kind = KINDS.get(name)
    if kind is None:
        raise _unknown(data, name, source)
    report = Report(moved=kind.moved)
    if kind.convert is not None:
        data = msgspec.json.encode(kind.convert(_parse(data, source), report))
    try:
        read = _read(kind, data, report)
    except _MALFORMED as error:
        raise _malformed(str(error), source) from error
    if read is None or report.violations:
        written = _parse(data, source)
        violations = map(_asks_for_name, report.violations) if generates_name(written) else report.violations
        raise ManifestError(subject_of(written, name), violations, source=source)
    return Decoded(read.object, read.blobs, tuple(report.notes))


def decode_many(document: bytes | Document, *, source: str = "") -> tuple[list[Decoded], list[ManifestError]]:
    """Decodes one object, or the items of a list (v1 List, PodList, …). Returns the objects read and the refusals of
    the others.

    Raises `ManifestError` only for a document that is neither an object nor a list of objects.
    """
    data = document if isinstance(document, bytes) else _to_json(document, source)
    name = _kind_of(data, source, "")
    if not name.endswith("List"):
        items, assume = [data], ""
    else:
        items = _items(data, name, source)
        assume = "" if name == "v1/List" else name.removesuffix("List")
    decoded, refused = [], []
    for index, item in enumerate(items):
        try:
            where = f"{source}[{index}]" if name.endswith("List") else source
            decoded.append(decode_object(item, source=where, assume=assume))
        except ManifestError as error:
            refused.append(error)
    return decoded, refused


def _read(kind: Kind, data: bytes, report: Report) -> Read | None:
    """Reads a document; None if it could not be repaired. The report then says why."""
    try:
        return kind.read(data, report)
    except msgspec.ValidationError:
        repaired = repair(msgspec.json.decode(data), kind.wire, report)
        return kind.read(repaired, report) if repaired is not None else None


def generates_name(document: Document) -> str:
    """Returns the generateName of a document without a name, "" for others. Only the API server completes it."""
    metadata = document.get("metadata")
    begin = metadata.get("generateName") if isinstance(metadata, dict) and not metadata.get("name") else None
    return begin if isinstance(begin, str) else ""


def _asks_for_name(violation: Violation) -> Violation:
    if (violation.code, violation.path) != ("KERF304", "metadata.name"):
        return violation
    message = "Only the API server completes generateName: here the object needs a name"
    return Violation("KERF304", "metadata.name", message, "Write metadata.name")


def _items(data: bytes, name: str, source: str) -> list[bytes]:
    try:
        return [bytes(item) for item in _read_list(data).items]
    except _MALFORMED as error:
        violation = Violation("KERF303", "items", "Expected a list of objects")
        raise ManifestError(name.rpartition("/")[2], [violation], source=source) from error


def _to_json(document: object, source: str) -> bytes:
    """Returns parsed YAML as JSON: keys become texts, dates RFC 3339."""
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _malformed(str(error), source) from error


def _parse(data: bytes, source: str) -> Document:
    try:
        return msgspec.json.decode(data, type=Document)
    except _MALFORMED as error:
        raise _malformed(str(error), source) from error


def _kind_of(data: bytes, source: str, assume: str) -> str:
    """Returns "apiVersion/kind" of a document, or `assume` if it names neither."""
    try:
        head = _read_head(data)
    except _MALFORMED as error:
        raise _malformed(str(error), source) from error
    if not head.api_version and not head.kind:
        return assume
    return f"{head.api_version}/{head.kind}"


def _malformed(message: str, source: str) -> ManifestError:
    return ManifestError("document", [Violation("KERF301", "", message)], source=source)


def _unknown(data: bytes, name: str, source: str) -> ManifestError:
    hint = f"kerf reads {', '.join(near_kinds(name) or sorted(KINDS))}"
    if not name:
        violation = Violation("KERF302", "", "The document has no apiVersion and kind", NAMELESS)
    elif name.startswith("/"):
        versions = " or ".join(known.rpartition("/")[0] for known in near_kinds(name))
        hint = f"Write apiVersion: {versions}" if versions else hint
        violation = Violation("KERF302", "apiVersion", "apiVersion is missing", hint)
    else:
        violation = Violation("KERF302", "", f"{name} is no kind that kerf reads", hint)
    return ManifestError(subject_of(_parse(data, source), name), [violation], source=source)


def near_kinds(name: str) -> list[str]:
    """Returns the known kinds that an unknown "apiVersion/kind" may be meant to be: the same kind, or a similar
    spelling.
    """
    kind = name.rpartition("/")[2]
    same = sorted(known for known in KINDS if known.rpartition("/")[2] == _SUCCESSORS.get(kind, kind))
    alike = same or did_you_mean(name, KINDS, most=3, similarity=_MIN_SIMILARITY)
    return alike or sorted(known for known in KINDS if known.lower() == name.lower())


def subject_of(document: Document, name: str) -> str:
    """ "Kind/name", or "Kind/namespace/name" for a namespaced kind."""
    kind = name.rpartition("/")[2] or "object"
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    parts = [kind, named.get("name") or f"{generates_name(document)}?"]
    if kind not in _CLUSTER_SCOPED and named.get("namespace"):
        parts.insert(1, named["namespace"])
    return "/".join(map(str, parts))
