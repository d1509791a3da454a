"""A small storm from one seed, for tests of one part under faults. Whole random clusters: tests/dst."""

from __future__ import annotations

import random
from typing import Any

from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.engine.record.store import Store
from tests.support.simulation.run import HOUR, ZONES, Run, workshop

QUIET_FROM = 61  # minutes: capacity is back, then every workload is scaled to nothing


def deployment(name: str, dice: random.Random) -> dict[str, Any]:
    requests = {"cpu": f"{dice.choice([100, 500, 900])}m", "memory": f"{dice.choice([256, 1024, 3000])}Mi"}
    pod = {
        "nodeSelector": {"type": "karpenter"},
        "terminationGracePeriodSeconds": dice.choice([0, 10, 30]),
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": dice.randint(0, 6), "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "other"},
        "spec": spec,
    }


def action(minute: int, names: list[str], dice: random.Random) -> dict[str, Any]:
    kind = dice.choice(["scale", "scale", "scale", "interrupt", "vanish", "reclaim", "capacity", "restore-capacity"])
    if kind == "scale":
        return scaled(minute, dice.choice(names), dice.randint(0, 12))
    found: dict[str, Any] = {"at": f"{minute}m", "action": kind}
    if kind == "capacity":
        found |= {"capacityType": "spot", "zone": dice.choice(ZONES)}
    return found


def scaled(minute: int, name: str, replicas: int) -> dict[str, Any]:
    return {"at": f"{minute}m", "action": "scale", "namespace": "other", "name": name, "replicas": replicas}


def faults(dice: random.Random) -> FaultPlan:
    """Each kind of fault is in about every third plan. Nodes that never become ready are left out: without node
    repair nothing ends them (L-176)."""

    def maybe(chance: float) -> float:
        return dice.choice([0.0, 0.0, chance])

    points = list(KillPoint)
    kills = tuple(Kill(i, dice.choice(points)) for i in sorted(dice.sample(range(1, 80), dice.randint(0, 5))))
    return FaultPlan(
        watch_late=maybe(0.1), watch_twice=maybe(0.1), watch_gap=maybe(0.05), no_capacity=maybe(0.2),
        launch_error=maybe(0.2), throttled=maybe(0.1), answer_lost=maybe(0.3), never_join=maybe(0.1),
        slow_join=maybe(0.2), message_twice=maybe(0.3), kills=kills,
    )  # fmt: skip


def chaos(seed: int, store: Store | None = None) -> Run:
    """An hour of random actions under faults, then everything is scaled to nothing and left alone. Recorded in memory,
    or in `store`."""
    dice = random.Random(seed)
    names = [f"d{i}" for i in range(dice.randint(1, 4))]
    actions = [action(minute, names, dice) for minute in range(1, QUIET_FROM, 4)]
    actions.append({"at": f"{QUIET_FROM}m", "action": "restore-capacity"})
    actions += [scaled(QUIET_FROM + 4, name, 0) for name in names]
    *manifests, timeline = workshop(*actions, capacity_type="spot")
    given = [*manifests, *(deployment(name, dice) for name in names), timeline]
    return Run(given, until=8 * HOUR, seed=seed, faults=faults(dice), store=store)
