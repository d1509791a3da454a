"""Volumes of a conformance scenario: PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.model.pods import Expression, NodeTerm
from kerf.engine.model.volumes import EBS, IN_TREE, StorageClass, Volume, VolumeClaim, VolumeFacts

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
Document = Mapping[str, Any]


def volume_facts(
    claims: Iterable[Document], volumes: Iterable[Document], classes: Iterable[Document], nodes: Iterable[Document]
) -> VolumeFacts:
    """The facts that the four lists of a scenario hold. Raises AttributeError or TypeError for another form."""
    known = [_claim(each) for each in claims]
    return VolumeFacts(
        claims={f"{each.namespace}/{each.name}": each for each in known},
        volumes={each.name: each for each in map(_volume, volumes)},
        classes={each.name: each for each in map(_storage_class, classes)},
        limits={_metadata(each)["name"]: _limits(each) for each in nodes},
    )


def _metadata(document: Document) -> Document:
    return document.get("metadata") or {}


def _spec(document: Document) -> Document:
    return document.get("spec") or {}


def _claim(document: Document) -> VolumeClaim:
    metadata, spec = _metadata(document), _spec(document)
    return VolumeClaim(
        namespace=metadata.get("namespace") or "default",
        name=metadata["name"],
        volume=spec.get("volumeName") or "",
        storage_class=spec.get("storageClassName") or "",
        phase=(document.get("status") or {}).get("phase") or "Pending",
        bind_completed=BIND_COMPLETED in (metadata.get("annotations") or {}),
        deleting=int(bool(metadata.get("deletionTimestamp"))),
    )


def _volume(document: Document) -> Volume:
    spec = _spec(document)
    csi = spec.get("csi") or {}
    affinity = (spec.get("nodeAffinity") or {}).get("required") or {}
    return Volume(
        name=_metadata(document)["name"],
        driver=csi.get("driver") or (EBS if spec.get("awsElasticBlockStore") else ""),
        terms=tuple(_term(each.get("matchExpressions")) for each in affinity.get("nodeSelectorTerms") or []),
        local=bool(spec.get("local") or spec.get("hostPath")),
        deleting=int(bool(_metadata(document).get("deletionTimestamp"))),
    )


def _storage_class(document: Document) -> StorageClass:
    provisioner = document.get("provisioner") or ""
    topologies = document.get("allowedTopologies") or []
    return StorageClass(
        name=_metadata(document)["name"],
        driver=IN_TREE.get(provisioner, provisioner),
        immediate=(document.get("volumeBindingMode") or "Immediate") == "Immediate",
        topologies=tuple(_term(each.get("matchLabelExpressions")) for each in topologies),
    )


def _term(expressions: Iterable[Document] | None) -> NodeTerm:
    return NodeTerm(
        tuple(
            Expression(each["key"], each.get("operator") or "In", tuple(each.get("values") or ()))
            for each in expressions or ()
        )
    )


def _limits(document: Document) -> dict[str, int]:
    """S-159: no allocatable, no limit; allocatable without a count is 0."""
    drivers = _spec(document).get("drivers") or []
    limited = [each for each in drivers if each.get("allocatable") is not None]
    return {each["name"]: int(each["allocatable"].get("count") or 0) for each in limited}
