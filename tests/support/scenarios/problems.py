"""Small planning problems for tests: types of so many cores, pods of so many milli-CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, PodShape, PreferredNodeTerm, Resources
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod, PoolInput, Problem

GI = 2**30
ZONES = ("z1", "z2", "z3")
NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")


def instance_type(
    name: str,
    cpu: int,
    *,
    memory: int | None = None,
    pods: int = 110,
    price: float | None = None,
    extra: Resources | None = None,
    zones: Sequence[str] = ZONES,
    capacity_types: Sequence[str] = (lbl.ON_DEMAND, lbl.SPOT),
    labels: Mapping[str, tuple[str, ...]] | None = None,
    available: bool = True,
    offerings: tuple[Offering, ...] | None = None,
) -> InstanceType:
    """`cpu` in whole cores, 2 Gi of memory per core unless given; on-demand costs 0.1 a core, spot 0.03."""
    base = 0.1 * cpu if price is None else price
    if offerings is None:
        offerings = tuple(
            Offering(zone, kind, base if kind == lbl.ON_DEMAND else 0.3 * base, available)
            for kind in capacity_types
            for zone in zones
        )
    requirements = {
        lbl.INSTANCE_TYPE: (name,),
        lbl.ARCH: ("amd64",),
        lbl.OS: ("linux",),
        lbl.ZONE: tuple(zones),
        lbl.CAPACITY_TYPE: tuple(sorted({offering.capacity_type for offering in offerings})),
        **(labels or {}),
    }
    capacity = {"cpu": 1000 * cpu, "memory": 2 * cpu * GI if memory is None else memory, "pods": pods, **(extra or {})}
    return InstanceType(name, capacity, {}, requirements, offerings)


def ladder(*cores: int) -> Catalogue:
    """Types t<cores>."""
    return Catalogue(tuple(instance_type(f"t{core:02d}", core) for core in cores))


def dear_giant() -> Catalogue:
    """Up to 16 cores a core costs 0.1, on 64 it costs 1."""
    small = [instance_type(f"t{cores:02d}", cores) for cores in (2, 4, 8, 16)]
    return Catalogue((*small, instance_type("t64", 64, price=64.0)))


def pool(name: str = "default", *requirements: RequirementSpec, **fields: Any) -> NodePool:
    return NodePool(name, NODE_CLASS, requirements=requirements, **fields)


def spec(key: str, operator: str, *values: str, least: int | None = None) -> RequirementSpec:
    return RequirementSpec(key, operator, values, least)


def term(*entries: tuple[str, str, tuple[str, ...]]) -> NodeTerm:
    return NodeTerm(tuple(Expression(*entry) for entry in entries))


def preferred(weight: int, *entries: tuple[str, str, tuple[str, ...]]) -> PreferredNodeTerm:
    return PreferredNodeTerm(weight, term(*entries))


def shape(cpu: int = 100, memory: int = 0, **fields: Any) -> PodShape:
    requests = {"cpu": cpu, **({"memory": memory} if memory else {}), **fields.pop("extra", {})}
    return PodShape(requests=requests, **fields)


class Workloads:
    """Pods of a problem, added workload by workload: names are <workload>-<index>, uids the same."""

    def __init__(self) -> None:
        self.pods: list[PendingPod] = []
        self.shapes: dict[str, PodShape] = {}

    def add(self, name: str, count: int, given: PodShape, created: int = 0, namespace: str = "default") -> Workloads:
        digest = self.shape(given)
        self.pods += [PendingPod(f"{name}-{i}", namespace, f"{name}-{i}", digest, created) for i in range(count)]
        return self

    def shape(self, given: PodShape) -> str:
        digest, _ = content(given)
        self.shapes[digest] = given
        return digest


def problem(
    workloads: Workloads,
    catalogue: Catalogue,
    *pools: NodePool,
    nodes: Sequence[NodeInput] = (),
    bound: Sequence[tuple[PodShape, str]] = (),
    namespaces: Sequence[Namespace] = (),
    daemons: Sequence[PodShape] = (),
    usage: Mapping[str, Resources] | None = None,
    unavailable: frozenset[tuple[str, str, str]] = frozenset(),
    **settings: Any,
) -> Problem:
    """One catalogue for all NodePools; one pool named default if none is given. `bound`: (shape, node)."""
    digest, _ = content(catalogue)
    inputs = tuple(
        PoolInput(node_pool, digest, (usage or {}).get(node_pool.name, {})) for node_pool in pools or (pool(),)
    )
    digests = tuple(workloads.shape(daemon) for daemon in daemons)
    return Problem(
        pods=tuple(workloads.pods),
        shapes=workloads.shapes,
        pools=inputs,
        catalogues={digest: catalogue},
        nodes=tuple(nodes),
        daemons=digests,
        namespaces=(Namespace("default"), *namespaces),
        unavailable=unavailable,
        settings=Settings(**settings),
        bound=tuple(
            BoundPod(f"bound-{number}", "default", workloads.shape(given), node)
            for number, (given, node) in enumerate(bound)
        ),
    )
