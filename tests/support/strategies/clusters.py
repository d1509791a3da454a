"""Random clusters for disruption, from seeds."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import strategies as st

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import price_of
from kerf.engine.model.karpenter.nodepools import Budget
from tests.support.scenarios.clusters import DAEMON, SIZES, cluster, node, pending, pod, pool

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
