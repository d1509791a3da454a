"""Kinds in an application's folder that a simulation does not need. They are ignored with a note, not refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BUILT_IN: dict[str, frozenset[str]] = {
    "": frozenset(
        {
            "ConfigMap", "Endpoints", "Event", "LimitRange", "ResourceQuota", "Secret", "Service", "ServiceAccount",
        }
    ),
    "admissionregistration.k8s.io": frozenset(
        {
            "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        }
    ),
    "apiextensions.k8s.io": frozenset({"CustomResourceDefinition"}),
    "apiregistration.k8s.io": frozenset({"APIService"}),
    "autoscaling": frozenset({"HorizontalPodAutoscaler"}),
    "autoscaling.k8s.io": frozenset({"VerticalPodAutoscaler"}),
    "batch": frozenset({"CronJob", "Job"}),
    "coordination.k8s.io": frozenset({"Lease"}),
    "discovery.k8s.io": frozenset({"EndpointSlice"}),
    "gateway.networking.k8s.io": frozenset({"Gateway", "GatewayClass", "GRPCRoute", "HTTPRoute", "ReferenceGrant"}),
    "networking.k8s.io": frozenset({"Ingress", "IngressClass", "NetworkPolicy"}),
    "rbac.authorization.k8s.io": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "snapshot.storage.k8s.io": frozenset({"VolumeSnapshot", "VolumeSnapshotClass"}),
    "storage.k8s.io": frozenset({"CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"}),
}  # fmt: skip
"""Group → kinds of Kubernetes, in any version. Kinds whose absence would mislead, such as ReplicaSets, are not among
them."""


def is_ignored_kind(document: Mapping[str, Any]) -> bool:
    """Whether a simulation ignores documents of this kind."""
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return False
    group = "" if version == "v1" else version.partition("/")[0]
    return kind in _BUILT_IN.get(group, ()) or _is_foreign_custom_resource(group, kind)


def _is_foreign_custom_resource(group: str, kind: str) -> bool:
    """Whether it is a custom resource that belongs neither to Karpenter (of any provider), nor Kubernetes, nor kerf."""
    ours = "karpenter" in group or group == "kerf.dev" or group.endswith("k8s.io")
    return bool(kind) and "." in group and not ours and not kind.endswith(("NodeClass", "NodePool", "NodeClaim"))
