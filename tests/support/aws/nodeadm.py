"""The schema of nodeadm's NodeConfig, cut to what kerf and its tests write.

Made from nodeadm/crds/node.eks.aws_nodeconfigs.yaml of awslabs/amazon-eks-ami (commit fb145175), and for what stands
under `config` from KubeletConfiguration v1beta1 of k8s.io/kubelet v0.36. A member that neither has is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXT, _NUMBER, _TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_TEXTS, _MAP = {"type": "array", "items": _TEXT}, {"type": "object", "additionalProperties": _TEXT}


def _of(members: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "additionalProperties": False}


_TAINT = _of({"key": _TEXT, "value": _TEXT, "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}})
_KUBELET = _of({
    "clusterDNS": _TEXTS, "cpuCFSQuota": _TRUTH, "evictionHard": _MAP, "evictionMaxPodGracePeriod": _NUMBER,
    "evictionSoft": _MAP, "evictionSoftGracePeriod": _MAP, "imageGCHighThresholdPercent": _NUMBER,
    "imageGCLowThresholdPercent": _NUMBER, "kubeReserved": _MAP, "maxPods": _NUMBER, "podsPerCore": _NUMBER,
    "registerWithTaints": {"type": "array", "items": _TAINT}, "systemReserved": _MAP,
})  # fmt: skip
_STRATEGIES = {"enum": ["RAID0", "RAID10", "Mount"]}
NODE_CONFIG: dict[str, Any] = _of({
    "apiVersion": {"const": "node.eks.aws/v1alpha1"},
    "kind": {"const": "NodeConfig"},
    "metadata": {"type": "object"},
    "spec": _of({
        "cluster": _of({
            "apiServerEndpoint": _TEXT, "certificateAuthority": _TEXT | {"pattern": "^[A-Za-z0-9+/]*={0,2}$"},
            "cidr": _TEXT, "enableOutpost": _TRUTH, "id": _TEXT, "name": _TEXT,
        }),
        "containerd": _of({"baseRuntimeSpec": {"type": "object"}, "config": _TEXT}),
        "featureGates": {"type": "object", "additionalProperties": _TRUTH},
        "instance": _of({"localStorage": _of({"strategy": _STRATEGIES})}),
        "kubelet": _of({"config": _KUBELET, "flags": _TEXTS}),
    }),
}) | {"required": ["apiVersion", "kind"]}  # fmt: skip
