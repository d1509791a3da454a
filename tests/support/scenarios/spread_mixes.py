"""Random ordinary mixes of workloads: some spread over zones, others that share nodes with them or stay apart."""

from __future__ import annotations

import random
from typing import Any

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.scenarios.problems import GI, ZONES, Workloads, instance_type, pool, problem, shape, spec, term

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
OTHERS = ("plain", "plain", "apart", "apart", "zone", "host", "near", "pinned", "capacity")
CPUS = (250, 500, 1000, 1500, 2000, 3000)


def spread_mix(seed: int, *, nominations: bool = False) -> Problem:
    """The mix of a seed: at most some 40 pods, a few types and NodePools, perhaps with nodes that exist."""
    rng = random.Random(seed)
    zones = ZONES[: rng.choice((2, 3, 3, 3))]
    work = Workloads()
    for number in range(rng.randint(1, 4)):
        name = f"w{number}"
        work.add(name, rng.randint(1, 9), _workload(rng, name, zones, spread=number == 0))
    nodes = [_node(rng, number, zones) for number in range(rng.choice((0, 0, 0, 1, 2, 4)))]
    present = [work.shapes[digest] for digest in sorted(work.shapes)]
    bound = [(rng.choice(present), node.name) for node in nodes for _ in range(rng.randint(0, 2))]
    return problem(
        work,
        Catalogue(tuple(_types(rng, zones))),
        *_pools(rng, zones),
        nodes=nodes,
        bound=bound,
        nominations=nominations,
    )


def _types(rng: random.Random, zones: tuple[str, ...]) -> list[InstanceType]:
    """Types of 2 to 16 cores; large ones are sometimes cheaper by the core, and not everything is everywhere."""
    cores = sorted(rng.sample((2, 4, 8, 16), rng.randint(1, 4)))
    capacity_types = rng.choice(((lbl.ON_DEMAND,), (lbl.ON_DEMAND, lbl.SPOT)))
    return [
        instance_type(
            f"t{core:02d}",
            core,
            price=0.05 * core * rng.choice((0.8, 1.0, 1.0, 1.1)),
            memory=4 * core * GI,
            zones=zones if rng.random() < 0.8 else rng.sample(zones, rng.randint(1, len(zones))),
            capacity_types=capacity_types,
        )
        for core in cores
    ]


def _pools(rng: random.Random, zones: tuple[str, ...]) -> list[NodePool]:
    first = pool("a", *([spec(lbl.ZONE, "In", *zones[:2])] if rng.random() < 0.1 else []))
    return [first, pool("b", weight=rng.choice((0, 10)))] if rng.random() < 0.2 else [first]


def _node(rng: random.Random, number: int, zones: tuple[str, ...]) -> NodeInput:
    cores = rng.choice((2, 4, 8))
    labels = {
        lbl.ZONE: rng.choice(zones),
        lbl.HOSTNAME: f"n{number}",
        lbl.ARCH: "amd64",
        lbl.OS: "linux",
        lbl.CAPACITY_TYPE: lbl.ON_DEMAND,
        lbl.INSTANCE_TYPE: f"t{cores:02d}",
        lbl.NODEPOOL: "a",
    }
    free = {"cpu": rng.choice((0, 500, 1000, 1000 * cores)), "memory": 2 * cores * GI, "pods": 50}
    return NodeInput(f"n{number}", f"c{number}", labels, (), free)


def _workload(rng: random.Random, name: str, zones: tuple[str, ...], *, spread: bool) -> PodShape:
    selector = Selector({"app": name})
    kind = "zone" if spread else rng.choice(OTHERS)
    spreads: list[SpreadConstraint] = []
    fields: dict[str, Any] = {}
    if kind in ("zone", "pinned"):
        rule, least = rng.choice(((HARD, None), (HARD, None), (HARD, 2), (HARD, 3), (SOFT, None), (SOFT, None)))
        spreads.append(SpreadConstraint(lbl.ZONE, rng.choice((1, 1, 2)), rule, selector, least))
    if kind == "host" or (kind == "zone" and rng.random() < 0.25):
        spreads.append(SpreadConstraint(lbl.HOSTNAME, rng.choice((1, 2, 3)), rng.choice((HARD, SOFT)), selector))
    if kind == "capacity":
        spreads.append(SpreadConstraint(lbl.CAPACITY_TYPE, 1, rng.choice((HARD, SOFT)), selector))
    if kind == "apart":
        fields["anti_affinity"] = (AffinityTerm(lbl.HOSTNAME, selector, weight=rng.choice((0, 0, 5))),)
    if kind == "near":
        fields["affinity"] = (AffinityTerm(rng.choice((lbl.ZONE, lbl.HOSTNAME)), selector),)
    if kind == "pinned":
        fields["required_terms"] = (term((lbl.ZONE, "In", tuple(rng.sample(zones, 2)))),)
    return shape(
        rng.choice(CPUS), rng.choice((0, GI // 2, 2 * GI)), labels={"app": name}, spread=tuple(spreads), **fields
    )
