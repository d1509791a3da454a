"""What is watched: for each kind its path, how its objects are read, and what they are called in the record."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kerf.engine.model.nodes import DaemonSet, Namespace, Node, PodDisruptionBudget
from kerf.engine.model.pods import Pod
from kerf.engine.model.pools import NodePool


class Resource(Struct, frozen=True):
    """One kind. `kind` as in ObjectGone; `api` as in kerf.engine.model.manifests.decode.KINDS; `needed` is whether kerf
    waits for it before it acts (a kind whose CRD is not installed has no objects)."""

    kind: str
    api: str
    path: str
    key: Callable[[Struct], str]
    needed: bool = True
    page: int = 500


def _uid(item: Struct) -> str:
    assert isinstance(item, Pod | DaemonSet | PodDisruptionBudget)
    return item.uid


def _name(item: Struct) -> str:
    name: str = item.name  # type: ignore[attr-defined]
    return name


NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"

PODS = Resource("pod", "v1/Pod", "/api/v1/pods", _uid)
NODES = Resource("node", "v1/Node", "/api/v1/nodes", _name)
NODECLAIMS = Resource("nodeclaim", "karpenter.sh/v1/NodeClaim", NODE_CLAIMS, _name)
KWOK_NODE_CLASSES = Resource(
    "nodeclass", "karpenter.kwok.sh/v1alpha1/KWOKNodeClass", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", _name
)
EC2_NODE_CLASSES = Resource(
    "nodeclass", "karpenter.k8s.aws/v1/EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses", _name
)
OBSERVED: tuple[Resource, ...] = (
    Resource("namespace", "v1/Namespace", "/api/v1/namespaces", _name),
    Resource("nodepool", "karpenter.sh/v1/NodePool", "/apis/karpenter.sh/v1/nodepools", _name),
    Resource("daemonset", "apps/v1/DaemonSet", "/apis/apps/v1/daemonsets", _uid),
    Resource("pdb", "policy/v1/PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", _uid),
    NODES,
    PODS,
)
"""Kinds whose objects are observations as they are, in the order in which a first list should be told."""

OBSERVED_TYPES: dict[type[Struct], str] = {
    Namespace: "namespace",
    NodePool: "nodepool",
    DaemonSet: "daemonset",
    PodDisruptionBudget: "pdb",
    Node: "node",
    Pod: "pod",
}
