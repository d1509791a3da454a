"""Workloads for the scheduling benchmark: the plain part of the reference's own, and its pods against EC2's types."""

from __future__ import annotations

import random
from collections.abc import Callable

from kerf.adapters.aws.catalogue import offline_catalogue
from kerf.adapters.aws.facts import tables
from kerf.engine.model import labels
from kerf.engine.model.instances import Catalogue, InstanceType, Offering
from kerf.engine.model.pods import PodShape
from kerf.engine.model.pools import NodeClassRef, NodePool
from kerf.engine.record.digest import content
from kerf.engine.scheduling.problem import PendingPod, PoolInput, Problem

CPU = (100, 250, 500, 1000, 1500)  # milli-CPU
MEMORY = (100, 256, 512, 1024, 2048, 4096)  # Mi
APPS = "abcdefg"
MIB = 2**20
REFERENCE_TYPES = 400
EC2_TYPES = 800
SEED = 42


def reference_types() -> Catalogue:
    """400 types: i CPUs, 2i Gi, 10i pods; spot in two zones, on-demand in three; 0.1 per CPU and per 10^9 bytes."""
    zones = ("test-zone-1", "test-zone-2", "test-zone-3")
    types = []
    for i in range(1, REFERENCE_TYPES + 1):
        memory = 2 * i * 1024 * MIB
        price = 0.1 * i + 0.1 * memory / 1e9
        offerings = [Offering(zone, labels.SPOT, price) for zone in zones[:2]]
        offerings += [Offering(zone, labels.ON_DEMAND, price) for zone in zones]
        requirements = {
            labels.INSTANCE_TYPE: (f"fake-it-{i}",),
            labels.ARCH: ("amd64",),
            labels.OS: ("linux",),
            labels.ZONE: zones,
            labels.CAPACITY_TYPE: (labels.ON_DEMAND, labels.SPOT),
        }
        capacity = {"cpu": 1000 * i, "memory": memory, "pods": 10 * i}
        types.append(InstanceType(f"fake-it-{i}", capacity, {}, requirements, tuple(offerings)))
    return Catalogue(tuple(types), source="the reference benchmark's")


def ec2_types() -> Catalogue:
    """800 of EC2's types from the committed tables, taken evenly over their names."""
    known = tables()
    names = sorted(name for name in known.types if name in known.prices)
    chosen = [names[i * len(names) // EC2_TYPES] for i in range(EC2_TYPES)]
    return offline_catalogue(names=chosen)


def plain_pods(count: int) -> tuple[tuple[PendingPod, ...], dict[str, PodShape]]:
    """Pods with requests and one label each, drawn at random with a fixed seed."""
    draw = random.Random(SEED)
    shapes: dict[str, PodShape] = {}
    pods = []
    for number in range(count):
        requests = {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY) * MIB}
        shape = PodShape(requests=requests, labels={"my-label": draw.choice(APPS)})
        digest = content(shape)[0]
        shapes[digest] = shape
        pods.append(PendingPod(f"uid-{number:07d}", "default", f"pod-{number:07d}", digest))
    return tuple(pods), shapes


def problem(count: int, types: Callable[[], Catalogue]) -> Problem:
    pods, shapes = plain_pods(count)
    catalogue = types()
    digest = content(catalogue)[0]
    pool = NodePool("default", NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default"))
    return Problem(pods, shapes, (PoolInput(pool, digest),), {digest: catalogue})


SHAPES: dict[str, Callable[[int], Problem]] = {
    "plain": lambda count: problem(count, reference_types),
    "plain-ec2": lambda count: problem(count, ec2_types),
}
"""What can be measured now."""

NOT_YET: dict[str, str] = {
    "diverse": "needs topology spread and pod (anti-)affinity",
    "spread": "needs topology spread",
    "affinity": "needs pod affinity",
    "anti-affinity": "needs pod anti-affinity",
}
"""Shapes of the reference's benchmark that this version cannot place, and why."""
