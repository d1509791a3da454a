"""What only shows when manifests are read together: names that lead nowhere, and what nothing can ever meet.

The API server accepts all of it, so these are notes. A file may hold a part of what a cluster has: a NodeClass or a
taint is missed only where the files hold objects of that kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.simulate.market import catalogues, zones_of
from kerf.engine.errors import InputError, KerfError
from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape, Taint, Toleration
from kerf.engine.model.labels import CAPACITY_TYPE, OF_RESERVATIONS, OS, REGION, TENANCY, WINDOWS_BUILD, normalise
from kerf.engine.model.manifests.decode import decode_object, generates_name, subject_of
from kerf.engine.scheduling.matching.taints import tolerates

Document = dict[str, Any]

_SYSTEM = ("node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Taints of these domains are set by Kubernetes, a cloud or kerf, and by no NodePool."""
_ACCOUNTS_OWN = frozenset({CAPACITY_TYPE, REGION, TENANCY, *OF_RESERVATIONS})
"""Whether a type meets these depends on the account: its region, reservations and prices. No file says so."""
_CLASSES_OWN = frozenset({OS, WINDOWS_BUILD})
_NODE_CLASSES = {"EC2NodeClass": "karpenter.k8s.aws", "KWOKNodeClass": "karpenter.kwok.sh"}


class _Read(Struct, frozen=True):
    number: int
    object: Struct
    shapes: tuple[PodShape, ...]


def notes_across(documents: Sequence[Document]) -> dict[int, list[str]]:
    """The notes on each document, by its number. Documents that cannot be read have none: they are refused."""
    read = [found for number, document in enumerate(documents) if (found := _read(number, document)) is not None]
    pools = [(entry.number, entry.object) for entry in read if isinstance(entry.object, NodePool)]
    classes = {ref: document for document in documents if (ref := _class_ref(document)) is not None}
    taints = [taint for _, pool in pools for taint in (*pool.taints, *pool.startup_taints)]
    notes: dict[int, list[str]] = {}
    for number, first in _repeated(documents):
        notes.setdefault(number, []).append(f"metadata.name: {first} stands in these files twice; the last one counts")
    for number, pool in pools:
        notes.setdefault(number, []).extend((*_dangling(pool, classes), *_without_types(pool, classes, documents)))
    for entry in read if pools else ():
        for shape in entry.shapes:
            notes.setdefault(entry.number, []).extend(_without_taint(shape.tolerations, taints))
    return notes


def pools_of(documents: Iterable[Document]) -> list[NodePool]:
    """The NodePools among documents, as far as they can be read."""
    read = (_read(number, document) for number, document in enumerate(documents) if document.get("kind") == "NodePool")
    return [found.object for found in read if found is not None and isinstance(found.object, NodePool)]


def _read(number: int, document: Document) -> _Read | None:
    try:
        decoded = decode_object(document)
    except KerfError:
        return None
    shapes = tuple(blob for blob in decoded.blobs.values() if isinstance(blob, PodShape))
    return _Read(number, decoded.object, shapes)


def repeated_documents(documents: Sequence[Document]) -> list[Document]:
    """Documents that come after one of the same kind and name."""
    return [documents[number] for number, _ in _repeated(documents)]


def _repeated(documents: Sequence[Document]) -> Iterator[tuple[int, str]]:
    """The objects that came before, each with its number and what it is."""
    seen: set[str] = set()
    for number, document in enumerate(documents):
        if generates_name(document):
            continue  # each gets a name of its own
        kind = f"{document.get('apiVersion')}/{document.get('kind')}"
        subject = subject_of(document, kind)
        if f"{kind} {subject}" in seen:
            yield number, subject
        seen.add(f"{kind} {subject}")


def _class_ref(document: Document) -> NodeClassRef | None:
    """What a nodeClassRef to this document says; None if it is no NodeClass."""
    kind, metadata = document.get("kind"), document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    group = _NODE_CLASSES.get(kind) if isinstance(kind, str) else None
    return NodeClassRef(group, str(kind), name) if group and isinstance(name, str) else None


def _dangling(pool: NodePool, classes: Iterable[NodeClassRef]) -> Iterator[str]:
    ref, names = pool.node_class, [known.name for known in classes]
    if names and ref not in classes:
        near = is_it(did_you_mean(ref.name, names)).strip()
        what = f"spec.template.spec.nodeClassRef: there is no {ref.kind} {ref.name} in these files"
        yield f"{what}. {near}" if near else what


def _without_types(
    pool: NodePool, classes: dict[NodeClassRef, Document], documents: Sequence[Document]
) -> Iterator[str]:
    """A note for a NodePool whose requirements leave no EC2 instance type: it can launch nothing."""
    if pool.node_class.group != _NODE_CLASSES["EC2NodeClass"]:
        return
    unknown = _ACCOUNTS_OWN if pool.node_class in classes else _ACCOUNTS_OWN | _CLASSES_OWN
    specs = [spec for spec in pool.requirements if normalise(spec.key) not in unknown]
    labels = {key: value for key, value in dict(pool.labels).items() if normalise(key) not in unknown}
    catalogue = _catalogue(classes.get(pool.node_class), documents)
    wanted = Requirements.of_specs(specs).merged(Requirements.of_labels(labels))
    offered = [
        Requirements.of_specs(
            RequirementSpec(key, "In" if values else "DoesNotExist", values)
            for key, values in instance_type.requirements.items()
        )
        for instance_type in catalogue.types
    ]
    if any(not requirements.conflicts(wanted) for requirements in offered):
        return
    alone = [
        f"{spec.key} {spec.operator} {', '.join(spec.values)}".rstrip()
        for spec in specs
        if all(requirements.conflicts(Requirements.of_specs([spec])) for requirements in offered)
    ]
    why = f"{alone[0]} alone leaves none" if alone else "together they leave none"
    yield f"spec.template.spec.requirements: of {len(offered)} EC2 instance types {why}, so nothing can be launched"


def _catalogue(node_class: Document | None, documents: Sequence[Document]) -> Catalogue:
    """What a class could launch. One whose kubelet is refused counts as a class without settings: a kubelet takes no
    type away (A-50)."""
    sold = catalogues(*zones_of(documents))
    try:
        return sold(_settings(node_class))
    except InputError:
        return sold(None)


def _settings(document: Document | None) -> Struct | None:
    """The class as kerf reads it, or None: a class without settings."""
    if document is None:
        return None
    try:
        node_class = decode_object(document).object
    except KerfError:
        return None
    return node_class if isinstance(node_class, EC2NodeClass) else None


def _without_taint(tolerations: Iterable[Toleration], taints: Sequence[Taint]) -> Iterator[str]:
    for toleration in tolerations:
        system = not toleration.key or toleration.key.startswith(_SYSTEM)
        if system or any(tolerates(taint, toleration) for taint in taints):
            continue
        value = f"={toleration.value}" if toleration.value else ""
        effect = f":{toleration.effect}" if toleration.effect else ""
        near = is_it(did_you_mean(toleration.key, [taint.key for taint in taints])).strip()
        what = f"tolerations: no NodePool in these files has a taint {toleration.key}{value}{effect}"
        yield f"{what}. {near}" if near else what
