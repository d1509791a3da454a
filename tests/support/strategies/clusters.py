"""Random clusters for disruption, from seeds."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import price_of
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from tests.support.scenarios.clusters import DAEMON, ON_DEMAND, SIZES, cluster, node, pending, pod, pool

SEEDS = st.integers(0, 1 << 32)
POLICIES = ("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced", "WhenEmpty")


def made(seed: int) -> Cluster:
    """A cluster of up to nine nodes in one or two NodePools, some of them held by something."""
    dice = random.Random(seed)
    pools = tuple(
        pool(
            name, consolidation_policy=dice.choice(POLICIES), budgets=(Budget(dice.choice(["100%", "50%", "2", "1"])),)
        )
        for name in ("default", "other")[: dice.randint(1, 2)]
    )
    nodes = []
    for number in range(dice.randint(1, 9)):
        size = dice.choice(list(SIZES))
        pods, left = [], SIZES[size]
        for index in range(dice.randint(0, 5)):
            cpu = dice.choice([100, 300, 700, 1_500])
            if cpu <= left:
                left -= cpu
                shield = "true" if dice.random() < 0.04 else ""
                owner = {"owner": DAEMON} if dice.random() < 0.1 else {}
                cost = dice.choice([0, 0, 0, 134_217_728])
                pods.append(pod(f"p{number}-{index}", cpu, do_not_disrupt=shield, deletion_cost=cost, **owner))
        changes: dict[str, Any] = {
            "nominated": dice.random() < 0.05,
            "marked": dice.random() < 0.05,
            "consolidatable": dice.random() < 0.9,
            "ready": dice.random() < 0.95,
        }
        nodes.append(node(f"n{number}", size, *pods, pool=dice.choice(pools).name, **changes))
    waiting = tuple(pending(f"w{index}", dice.choice([300, 3_000])) for index in range(dice.choice([0, 0, 0, 1, 2])))
    return cluster(*nodes, pools=pools, pending=waiting)


def bill(given: Cluster) -> float:
    return math.fsum(price_of(cluster_node, given.types()) for cluster_node in given.nodes if not cluster_node.marked)


def of_different_pools(seed: int) -> Cluster:
    """A cluster whose NodePools differ: one may launch spot nodes, one has a taint and no small nodes, one launches a
    single size. Few of the pods may run in all of them."""
    dice = random.Random(seed)
    taint, tolerated = Taint("team", "NoSchedule", "a"), Toleration("team", "Exists")
    kinds = RequirementSpec(CAPACITY_TYPE, "In", ("on-demand", "spot"))
    pools = (
        pool("any-kind", requirements=(kinds,)),
        pool("tainted", taints=(taint,), requirements=(_sizes("medium", "large"), dice.choice([kinds, ON_DEMAND]))),
        pool("single", requirements=(_sizes(dice.choice(list(SIZES))), ON_DEMAND)),
    )
    nodes = []
    for number in range(dice.randint(2, 8)):
        at, size = dice.choice(pools[: dice.randint(1, 3)]), dice.choice(list(SIZES))
        pods, left = [], SIZES[size]
        for index in range(dice.randint(1, 5)):
            cpu = dice.choice([100, 300, 700, 1_500])
            if cpu <= left:
                left -= cpu
                tolerations = (tolerated,) if at.name == "tainted" or dice.random() < 0.2 else ()
                selector = {CAPACITY_TYPE: "spot"} if at.name == "any-kind" and dice.random() < 0.1 else {}
                pods.append(pod(f"p{number}-{index}", cpu, tolerations=tolerations, node_selector=selector))
        kind = dice.choice(["spot", "spot", "on-demand"]) if at.name == "any-kind" else "on-demand"
        made_node = node(f"n{number}", size, *pods, pool=at.name, kind=kind)
        nodes.append(replace(made_node, place=replace(made_node.place, taints=at.taints)))
    waiting = [
        pod(f"w{index}", dice.choice([300, 3_000]), phase="Pending", unschedulable=True, tolerations=(tolerated,))
        for index in range(dice.choice([0, 0, 1]))
    ]
    return cluster(*nodes, pools=pools, pending=tuple(waiting), spot_to_spot=dice.random() < 0.3)


def _sizes(*names: str) -> RequirementSpec:
    return RequirementSpec(INSTANCE_TYPE, "In", names)
