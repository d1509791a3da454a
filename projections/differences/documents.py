"""Objects of the record as documents with the names of their manifests, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.quantities import format_quantity
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.observations import NodeClassSeen
from kerf.projections.differences.field_changes import field_changes
from kerf.projections.differences.node_pool_document import node_pool_document

Document = dict[str, Any]
_IDENTITY = frozenset(
    ["name", "namespace", "uid", "generation", "created", "hash", "hash_version", "digest", "ready_since"]
)
"""Fields that say which object it is, or follow from the others."""
_OF_ONE_POD = frozenset(
    [
        "pod-template-hash", "controller-revision-hash", "pod-template-generation", "controller-uid", "job-name",
        "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index",
    ]
)  # fmt: skip
"""Labels by which a controller tells the pods of a workload apart."""
_SHAPE_FIELDS = {kind.struct: kind.digest_field for kind in WATCHED if kind.digest_field}
_SELECTORS = (
    "ami_selector_terms", "subnet_selector_terms", "security_group_selector_terms",
    "capacity_reservation_selector_terms",
)  # fmt: skip
Shapes = Callable[[str], PodShape]
"""The shape of a digest. Raises BlobMissing."""
Classes = Callable[[str], EC2NodeClass | None]
"""The EC2NodeClass of a digest; None where it is not known."""


def document_of(obj: Struct, shapes: Shapes | None = None, classes: Classes | None = None) -> Document:
    """Return an object as a document: what a user may have changed in it, and what its status says. `shapes` tell what
    its pods ask for, and `classes` what a NodeClass selects by, where only a digest stands in the object."""
    if isinstance(obj, NodeClassSeen):
        return _node_class(obj, classes(obj.digest) if classes is not None and obj.digest else None)
    special = _SPECIAL.get(type(obj))
    if special is not None:
        return special(obj)
    document = {camel_case(name): part for name, part in _fields(obj).items() if name not in _IDENTITY}
    digest = getattr(obj, _SHAPE_FIELDS.get(type(obj), ""), "")
    with suppress(BlobMissing):
        if digest and shapes is not None:
            template = shape_document(shapes(digest))
            del document[_SHAPE_FIELDS[type(obj)]]
            document["template"] = template
    return document


def shape_document(shape: PodShape) -> Document:
    """Return what pods ask for as a document, without the labels by which controllers tell them apart."""
    document = {camel_case(name): _set(part) for name, part in _fields(shape).items()}
    document["requests"] = {name: format_quantity(amount, name) for name, amount in shape.requests.items()}
    document["labels"] = {key: value for key, value in shape.labels.items() if key not in _OF_ONE_POD}
    for terms in (document["affinity"], document["antiAffinity"]):
        for term in terms:
            if not term["weight"]:
                del term["weight"]  # a required term: manifests give it no weight
    return document


def pod_document(pod: Pod, shape: PodShape) -> Document:
    """Return what a pod asks for, without what it has for itself among the pods of its workload."""
    shared = [replace(volume, claim="") if pod.name in volume.claim else volume for volume in shape.volumes]
    document = shape_document(replace(shape, volumes=tuple(shared)))
    return {**document, "doNotDisrupt": pod.do_not_disrupt or None}


def _set(part: Any) -> Any:
    """Leave out of maps, at any depth, what is not set: None, and empty lists and maps."""
    if isinstance(part, list):
        return [_set(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {name: _set(value) for name, value in part.items() if value not in (None, [], {})}


def changed_fields(was: Struct, now: Struct, shapes: Shapes | None = None, classes: Classes | None = None) -> list[str]:
    """Return the fields in which an object differs, in words: "spec.weight 10 → 20"."""
    if was == now:
        return []
    return [change.words for change in field_changes(*(document_of(one, shapes, classes) for one in (was, now)))]


def camel_case(name: str) -> str:
    """Write a field as manifests do: "consolidate_after" is "consolidateAfter"."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _fields(obj: Struct) -> dict[str, Any]:
    """Return the fields of a struct as plain values, those with defaults too. An empty text is one that is not set."""
    parts = {name: getattr(obj, name) for name in obj.__struct_fields__}
    parts = {name: bool(part) if name == "deleting" else part for name, part in parts.items()}
    return {name: None if part == "" else _plain(part) for name, part in parts.items()}


def _plain(part: Any) -> Any:
    """Return a value without structs. Keys of maps are data and stay as they are."""
    if isinstance(part, Struct):
        return {camel_case(name): value for name, value in _fields(part).items()}
    if isinstance(part, list | tuple):
        return [_plain(item) for item in part]
    return {name: _plain(value) for name, value in part.items()} if isinstance(part, dict) else part


def _node_pool(pool: NodePool) -> Document:
    status = {"ready": pool.ready, "deleting": bool(pool.deleting)}
    return {"spec": node_pool_document(pool)["spec"], "status": status}


def _node_class(seen: NodeClassSeen, known: EC2NodeClass | None) -> Document:
    """Return what a NodeClass asks of its instances (its terms), and whether it is ready. Where it is `known`, also how
    it selects images, subnets and the like, and the images' names."""
    terms = seen.terms
    spec: Document = {}
    for path, text in (terms.static if terms is not None else {}).items():
        field, _, key = path.partition(" ")
        item, _, rest = key.partition(" ")
        if rest:
            spec.setdefault(field, {}).setdefault(item, {})[rest] = text
        elif key:
            spec.setdefault(field, {})[key] = text
        else:
            spec[field] = text
    names = {image.id: image.name for image in known.status.amis} if known is not None else {}
    images = dict.fromkeys(image.id for image in terms.images) if terms is not None else {}  # one for each use
    if known is not None:
        spec |= {camel_case(name): to_builtins(found) for name in _SELECTORS if (found := getattr(known.spec, name))}
    resolved = {
        "amis": [f"{names[image]} ({image})" if names.get(image) else image for image in images],
        "subnets": list(terms.subnets),
        "securityGroups": list(terms.security_groups),
        "capacityReservations": list(terms.reservations),
        "placementGroup": terms.placement_group,
    } if terms is not None else {}  # fmt: skip
    told = {name: value for name, value in resolved.items() if value}
    return {"spec": spec, "status": {"ready": seen.ready, "reason": seen.reason, **told}}


_SPECIAL: dict[type[Struct], Callable[[Any], Document]] = {NodePool: _node_pool}
