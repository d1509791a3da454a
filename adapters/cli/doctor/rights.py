"""What kerf must be allowed to do on the API server, by mode (L-343 to L-354). The chart's roles give exactly this."""

from __future__ import annotations

from msgspec import Struct

READ = ("get", "list", "watch")
NODE_CLASSES = {"kwok": ("karpenter.kwok.sh", "kwoknodeclasses"), "aws": ("karpenter.k8s.aws", "ec2nodeclasses")}
"""API group and resource, by provider."""
_WATCHED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("karpenter.sh", ("nodepools", "nodeclaims", "nodeoverlays")),
    ("autoscaling.x-k8s.io", ("capacitybuffers",)),
    ("", ("pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "replicationcontrollers", "namespaces",
          "podtemplates", "services")),
    ("storage.k8s.io", ("storageclasses", "csinodes", "volumeattachments")),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
    ("policy", ("poddisruptionbudgets",)),
    ("resource.k8s.io", ("deviceclasses", "resourceclaims", "resourceslices")),
)  # fmt: skip
_WRITTEN: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("karpenter.sh", "nodeclaims", ("create", "patch", "delete")),
    ("karpenter.sh", "nodeclaims/status", ("patch",)),
    ("karpenter.sh", "nodepools", ("patch",)),
    ("karpenter.sh", "nodepools/status", ("patch",)),
    ("karpenter.sh", "nodeoverlays/status", ("patch",)),
    ("autoscaling.x-k8s.io", "capacitybuffers/status", ("patch",)),
    ("", "nodes", ("patch", "delete")),
    ("", "pods/eviction", ("create",)),
    ("", "pods", ("delete",)),
    ("", "pods/status", ("patch",)),
    ("", "events", ("create", "patch")),
)


class Right(Struct, frozen=True, order=True):
    """`resource` may have a subresource behind a slash; `namespace` and `name` are empty for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" {self.namespace}/{self.name}".rstrip("/") if self.namespace else ""
        return f"{self.verb} {place}{where}"


def needed(mode: str, provider: str, *, lease_namespace: str, lease_name: str) -> list[Right]:
    """All of them, in a fixed order."""
    group, resource = NODE_CLASSES[provider]
    watched = (*_WATCHED, (group, (resource,)))
    rights = [Right(group, each, verb) for group, resources in watched for each in resources for verb in READ]
    if mode == "observe":
        return sorted(rights)
    rights += [Right(group, each, verb) for group, each, verbs in _WRITTEN for verb in verbs]
    if provider == "kwok":
        rights.append(Right("", "nodes", "create"))
    else:  # finalizer and hash; status
        rights += [Right(group, each, "patch") for each in (resource, f"{resource}/status")]
    leases = ("coordination.k8s.io", "leases")
    rights.append(Right(*leases, "create", lease_namespace))
    rights += [Right(*leases, verb, lease_namespace, lease_name) for verb in ("get", "update")]
    return sorted(rights)
