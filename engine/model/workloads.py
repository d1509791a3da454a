"""Deployments, ReplicaSets and StatefulSets: where pods come from when a manifest is planned or simulated."""

from __future__ import annotations

from msgspec import Struct


class Workload(Struct, frozen=True, omit_defaults=True):
    """`kind` is with its group and version, as in `Owner` ("apps/v1/Deployment"). `shape` is the digest of
    the PodShape of its template. `created` in milliseconds since the epoch, 0 when absent."""

    kind: str
    namespace: str
    name: str
    shape: str
    uid: str = ""
    replicas: int = 1
    labels: dict[str, str] = {}
    template_labels: dict[str, str] = {}
    template_annotations: dict[str, str] = {}
    created: int = 0
