"""Make waiting pods of manifests: of Pods, and of the workloads that make Pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.engine.errors import InputError
from kerf.engine.model.durations import format_time
from kerf.replay.errors import ChangeRefused
from kerf.replay.scenarios.pods import with_defaults
from kerf.replay.what_if.manifest_fields import Document

_REPLICAS = {"Deployment": "replicas", "ReplicaSet": "replicas", "StatefulSet": "replicas",
             "ReplicationController": "replicas", "Job": "parallelism"}  # fmt: skip
_OWNERS = {"Deployment": ("apps/v1", "ReplicaSet")}
MAX_PODS = 100_000


def pods_of(document: Document, now: int) -> Iterator[Document]:
    """Give the Pods that a manifest stands for, as kube-scheduler has just refused them. Raises ChangeRefused for a
    kind that makes no pods."""
    kind = str(document.get("kind"))
    metadata = _mapping(document, "metadata")
    if kind == "Pod":
        yield with_defaults(document, format_time(now), bound=False)
        return
    if kind not in _REPLICAS:
        hint = f"Give Pods, or one of {', '.join(_REPLICAS)}"
        if "kind" not in document:
            raise ChangeRefused("a document has no kind, so it makes no pods", hint=hint)
        raise ChangeRefused(f"a {kind} makes no pods here", where=f"{kind} {metadata.get('name', '?')}", hint=hint)
    spec = _mapping(document, "spec")
    template = _mapping(spec, "template")
    for number in range(_count(spec, kind, metadata)):
        yield with_defaults(_replica(template, kind, metadata, number, document), format_time(now), bound=False)


def _count(spec: Mapping[str, Any], kind: str, metadata: Mapping[str, Any]) -> int:
    field = _REPLICAS[kind]
    count = spec.get(field, 1)
    if not isinstance(count, int) or not 0 <= count <= MAX_PODS:
        where = f"{kind} {metadata.get('name', '?')}: spec.{field}"
        raise InputError(f"{count!r} is no number of pods", where=where, hint=f"0 to {MAX_PODS:,}", code="KERF303")
    return count


def _replica(
    template: Mapping[str, Any], kind: str, metadata: Mapping[str, Any], number: int, document: Document
) -> Document:
    own = _mapping(template, "metadata")
    name, namespace = metadata.get("name", "what-if"), metadata.get("namespace") or "default"
    version, owner = _OWNERS.get(kind, (document.get("apiVersion", "apps/v1"), kind))
    reference = {
        "apiVersion": version,
        "kind": owner,
        "name": name,
        "uid": f"what-if/{kind}/{name}",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": namespace,
            "labels": own.get("labels") or {},
            "annotations": own.get("annotations") or {},
            "ownerReferences": [reference],
        },
        "spec": template.get("spec") or {},
    }


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = document.get(key)
    return part if isinstance(part, Mapping) else {}
