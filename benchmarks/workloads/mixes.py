"""Random clusters: Deployments of many kinds that are scaled at random times over two days."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.workloads.days import Document, deployment, disruption_budget, timeline
from benchmarks.workloads.disruption import before, node_class

DAYS = 2
CPUS = ("100m", "250m", "500m", "1", "1500m", "2", "3")
MEMORY_PER_CPU = (0.5, 1, 2, 4, 8)
"""GiB."""
REPLICAS = (3, 60)
TIMES = (4, 14)
"""How often each Deployment is scaled in both days, at least and at most."""


def random_mix(seed: int, budget: str) -> list[Document]:
    """Five to twelve Deployments, on the NodePool of the scale-in."""
    dice = random.Random(seed)
    pool = next(document for document in before(budget) if document["kind"] == "NodePool")
    made, actions, budgets = [], [], []
    for number in range(dice.randint(5, 12)):
        name, cpu = f"app-{number}", dice.choice(CPUS)
        memory = round(1024 * dice.choice(MEMORY_PER_CPU) * _cpus(cpu))
        made.append(deployment(name, dice.randint(*REPLICAS), cpu, f"{memory}Mi", _more(dice, name)))
        if dice.random() < 0.3:
            budgets.append(disruption_budget(name))
        for _ in range(dice.randint(*TIMES)):
            minute = dice.randrange(20, DAYS * 24 * 60 - 60)
            actions.append((minute, name, dice.randint(*REPLICAS)))
    scaled = [
        {"at": f"{minute}m", "action": "scale", "name": name, "replicas": count}
        for minute, name, count in sorted(actions)
    ]
    return [pool, *node_class(), *made, *budgets, timeline(scaled)]


def _cpus(quantity: str) -> float:
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def _more(dice: random.Random, name: str) -> dict[str, Any]:
    """What half of the Deployments ask for besides: a spread, hard or soft, over zones or hosts, or to be alone."""
    kind = dice.randrange(6)
    if kind >= 3:
        return {}
    if kind == 2:
        selector = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}}
    key = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")[kind]
    hard = dice.choice(("DoNotSchedule", "ScheduleAnyway"))
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": hard}]}
