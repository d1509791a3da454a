"""Small clusters for tests of disruption: one NodePool, one zone, three sizes that cost as much as they hold."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape, Resources
from kerf.engine.scheduling.matching.resources import added, total
from kerf.engine.scheduling.problem.problem import NodeInput, PoolInput, Problem

NOW = 1_768_478_400_000
SIZES = {"small": 2_000, "medium": 4_000, "large": 8_000}
DAEMON = Owner("apps/v1/DaemonSet", "agent")
REPLICAS = Owner("apps/v1/ReplicaSet", "web")
ON_DEMAND = RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand",))


def price(size: str, kind: str = "on-demand") -> float:
    """USD per hour: 0.1 for each 2 CPUs, half of it on spot."""
    return SIZES[size] / 20_000 * (0.5 if kind == "spot" else 1)


def sized(name: str, cpu: int, on_demand: float) -> InstanceType:
    return InstanceType(
        name,
        capacity(cpu),
        requirements={lbl.CAPACITY_TYPE: ("on-demand", "spot"), lbl.ZONE: ("a",)},
        offerings=(Offering("a", "on-demand", on_demand), Offering("a", "spot", on_demand / 2)),
    )


def capacity(cpu: int) -> Resources:
    return {"cpu": cpu, "memory": cpu * 4 << 20, "pods": 50}


CATALOGUE = Catalogue(tuple(sized(name, cpu, price(name)) for name, cpu in SIZES.items()))
SHAPES: dict[str, PodShape] = {}


def shape(cpu: int = 500, **changes: Any) -> str:
    made = PodShape(requests={"cpu": cpu, "memory": cpu << 20}, **changes)
    digest = content(made)[0]
    SHAPES[digest] = made
    return digest


def pod(name: str, cpu: int = 500, *, owner: Owner | None = REPLICAS, **changes: Any) -> Pod:
    """A running pod; fields of its shape may be among the changes."""
    own = {key: changes.pop(key) for key in tuple(changes) if key in PodShape.__struct_fields__}
    known = {"phase": "Running", "ready": True, "started": NOW - 3_600_000, **changes}
    return Pod(f"uid-{name}", "default", name, shape(cpu, **own), owner=owner, **known)


def pending(name: str, cpu: int = 500) -> Pod:
    return pod(name, cpu, phase="Pending", ready=False, unschedulable=True)


def node(
    name: str, size: str = "large", *pods: Pod, kind: str = "on-demand", pool: str = "default", **changes: Any
) -> ClusterNode:
    labels = {
        lbl.NODEPOOL: pool,
        lbl.INSTANCE_TYPE: size,
        lbl.CAPACITY_TYPE: kind,
        lbl.ZONE: "a",
        lbl.HOSTNAME: name,
        **changes.pop("labels", {}),
    }
    here = tuple(msgspec.structs.replace(waiting, node=name) for waiting in pods)
    used = total({**SHAPES[waiting.shape].requests, "pods": 1} for waiting in here)
    place = NodeInput(
        name,
        f"claim-{name}",
        {key: value for key, value in labels.items() if value},
        (),
        added(capacity(SIZES.get(size, 1_000)), used, -1),
        initialized=changes.pop("initialized", True),
    )
    made = ClusterNode(place, here, capacity=capacity(SIZES.get(size, 1_000)), consolidatable=True)
    return msgspec.structs.replace(made, **changes)


def pool(name: str = "default", **changes: Any) -> NodePool:
    known = {"requirements": (ON_DEMAND,), "budgets": (Budget("100%"),), **changes}
    return NodePool(name, NodeClassRef("g", "K", "default"), **known)


def cluster(*nodes: ClusterNode, pools: tuple[NodePool, ...] | None = None, **changes: Any) -> Cluster:
    catalogue = changes.pop("catalogue", CATALOGUE)
    digest = content(catalogue)[0]
    given = tuple(PoolInput(node_pool, digest) for node_pool in pools or (pool(),))
    base = Problem((), dict(SHAPES), given, {digest: catalogue})
    return Cluster(NOW, nodes, base, **changes)
