"""Tags that kerf puts on what it makes (A-321, A-117). `karpenter.sh/nodeclaim` is kerf's own: an instance has it from
its launch on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

CLUSTER = "eks:eks-cluster-name"
NODECLAIM = "karpenter.sh/nodeclaim"
NODEPOOL = "karpenter.sh/nodepool"
NODECLASS = "karpenter.k8s.aws/ec2nodeclass"


_CLUSTERS = re.compile(r"kubernetes\.io/cluster/[0-9A-Za-z][A-Za-z0-9\-_]*")


def restricted(own: Mapping[str, str]) -> list[str]:
    """Whether a class may not set a tag itself, because the tag says whose a thing is (A-322)."""
    ours = (CLUSTER, NODECLAIM, NODEPOOL, NODECLASS)
    return sorted(key for key in own if key in ours or _CLUSTERS.fullmatch(key))


def owned(cluster: str, node_class: str, own: Mapping[str, str]) -> dict[str, str]:
    """The class's own tags, overridden by those that say whose a thing is."""
    return {
        **own,
        f"kubernetes.io/cluster/{cluster}": "owned",
        CLUSTER: cluster,
        NODECLASS: node_class,
    }


def launch_tags(
    cluster: str, node_class: str, node_pool: str, own: Mapping[str, str], claim: str = ""
) -> dict[str, str]:
    """The tags of a launch (A-321). With `claim` also the tag by which the instance is found after a crash or a lost
    answer."""
    tags = owned(cluster, node_class, own) | {NODEPOOL: node_pool}
    return tags | {NODECLAIM: claim} if claim else tags


def profile_tags(cluster: str, node_class: str, region: str, own: Mapping[str, str]) -> dict[str, str]:
    """The tags of an instance profile: the owner's, and the region (A-117)."""
    return owned(cluster, node_class, own) | {"topology.kubernetes.io/region": region}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tag_map(listed: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in listed or ()}


def specifications(kinds: Sequence[str], tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tag_list(tags)} for kind in kinds]
