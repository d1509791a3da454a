"""Strategies for two problems of which one has more to choose from."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint, Taint, Toleration
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import GI, Workloads, instance_type, pool, shape, spec, term
from tests.support.scenarios.problems import problem as problem_of


def workload(rng: random.Random, apps: Sequence[str]) -> PodShape:
    """Of one size; most spread by themselves, some follow another app or keep away from it, some ask for a zone."""
    own = rng.choice(apps)

    def key() -> str:
        return rng.choice([lbl.ZONE, lbl.HOSTNAME, lbl.CAPACITY_TYPE])

    def whom(own_share: float) -> Selector:
        return Selector({"app": own if rng.random() < own_share else rng.choice(apps)})

    zone = term((lbl.ZONE, "In", (rng.choice(["z1", "z2", "z3"]),)))
    return shape(
        rng.choice([100, 500, 900, 2000, 3500, 7000]),
        rng.choice([0, GI // 2, GI, 3 * GI]),
        labels={"app": own},
        tolerations=rng.choice([(), (Toleration("t", "Exists"),)]),
        required_terms=rng.choice([(), (), (), (), (zone,)]),
        spread=tuple(
            SpreadConstraint(key(), rng.choice([1, 1, 2]), "DoNotSchedule", whom(0.9))
            for _ in range(rng.choice([0, 0, 1, 1, 2]))
        ),
        affinity=tuple(AffinityTerm(key(), whom(0.4)) for _ in range(rng.choice([0, 0, 0, 1]))),
        anti_affinity=tuple(AffinityTerm(key(), whom(0.4)) for _ in range(rng.choice([0, 0, 0, 1]))),
    )


def offered(rng: random.Random, name: str) -> InstanceType:
    cores = rng.choice([1, 2, 4, 8, 16])
    return instance_type(
        name,
        cores,
        memory=cores * rng.choice([1, 2, 4]) * GI,
        pods=rng.choice([3, 8, 30]),
        zones=rng.choice([("z1",), ("z1", "z2"), ("z1", "z2", "z3")]),
        capacity_types=rng.choice([("on-demand",), ("on-demand", "spot")]),
    )


def allowed(rng: random.Random, name: str) -> NodePool:
    zones = spec(lbl.ZONE, "In", *rng.choice([("z1",), ("z3",), ("z1", "z2")]))
    requirements = rng.choice([(), (), (zones,), (spec(lbl.CAPACITY_TYPE, "NotIn", "spot"),)])
    return pool(name, *requirements, taints=rng.choice([(), (), (Taint("t", "NoSchedule"),)]))


def pair(seed: int, workloads: int, replicas: int) -> tuple[Problem, Problem]:
    """A problem, and the same with further types and NodePools."""
    rng = random.Random(seed)
    apps = [f"app{number}" for number in range(max(3, workloads // 2))]
    work = Workloads()
    for number in range(workloads):
        work.add(f"w{number}", rng.randint(1, replicas), workload(rng, apps), created=rng.randint(0, 1))
    types = [offered(rng, f"t{number}") for number in range(rng.randint(1, 6))]
    given_pools = [allowed(rng, name) for name in "pqr"[: rng.randint(1, 3)]]
    more = [offered(rng, f"x-{number}") for number in range(rng.choice([0, 1, 3, 5, 12]))]
    further = [allowed(rng, f"{rng.choice('az')}-{number}") for number in range(rng.choice([0, 1, 2, 4]))]
    return (
        problem_of(work, Catalogue(tuple(types)), *given_pools),
        problem_of(work, Catalogue((*types, *more)), *given_pools, *further),
    )
