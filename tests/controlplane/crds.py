"""The custom resources of a test's control plane."""

from __future__ import annotations

import time
from typing import Any

from tests.controlplane.plane import ControlPlane

_KINDS = (
    ("karpenter.sh", "v1", "NodePool", "nodepools"),
    ("karpenter.sh", "v1", "NodeClaim", "nodeclaims"),
    ("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses"),
)


def install(plane: ControlPlane) -> None:
    """Returns when the API server serves them."""
    for kind in _KINDS:
        plane.apply(_definition(*kind))
    for group, version, _, plural in _KINDS:
        until = time.monotonic() + 30
        while plane.request("GET", f"/apis/{group}/{version}/{plural}")[0] != 200:
            assert time.monotonic() < until, f"{plural}.{group} is not served"
            time.sleep(0.05)


def _definition(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    """One that takes everything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
