"""Workloads for the scheduling benchmark: the reference's own, its plain pods against EC2's types, and NodeOverlays."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.offerings import offline_catalogue
from kerf.engine.model import labels
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    NodeTerm,
    PodShape,
    PreferredNodeTerm,
    Selector,
    SpreadConstraint,
)
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod, PoolInput, Problem

CPU = (100, 250, 500, 1000, 1500)  # milli-CPU
MEMORY = (100, 256, 512, 1024, 2048, 4096)  # Mi
APPS = "abcdefg"
MIB = 2**20
REFERENCE_TYPES = 400
EC2_TYPES = 800
SEED = 42
NODES = 5_000
LABEL = "my-label"
FAMILY = "karpenter.k8s.aws/instance-family"
NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
Pods = tuple[tuple[PendingPod, ...], dict[str, PodShape]]
"""Pods and their shapes by digest."""
Offered = tuple[NodePool, str, Catalogue]
"""A NodePool, and the digest and catalogue of its NodeClass."""


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


def overlaid(pools: int, overlays: int, run: int, *, apart: bool) -> tuple[list[NodeOverlay], list[Offered]]:
    """NodePools of all of EC2's types, and overlays with a percentage each: `apart`, every one is of a NodePool; else
    every one is of a family of types. Those of another `run` are other ones."""
    catalogue = offline_catalogue()
    families = sorted({
        family for each in catalogue.types for family in each.requirements.get(FAMILY, ())
    })  # fmt: skip
    known = [f"pool-{number}" for number in range(pools)]
    key, values = (labels.NODEPOOL, known) if apart else (FAMILY, families)
    made = [
        NodeOverlay(
            f"overlay-{number}",
            requirements=(RequirementSpec(key, "In", (values[number % len(values)],)),),
            adjustment=Adjustment(-1.0 - number - run / 1000, percent=True),
            weight=number + 1,
        )
        for number in range(overlays)
    ]
    digest = content(catalogue)[0]
    return made, [(NodePool(name, NODE_CLASS), digest, catalogue) for name in known]


def requests(draw: random.Random) -> dict[str, int]:
    return {"cpu": draw.choice(CPU), "memory": draw.choice(MEMORY) * MIB}


def plain_pods(count: int) -> Pods:
    """Pods with requests and one label each, drawn at random with a fixed seed."""
    draw = random.Random(SEED)
    return _pods([plain(draw) for _ in range(count)])


def diverse_pods(count: int) -> Pods:
    """The reference's mix, in fifths: plain; zone spread; hostname spread; zone affinity to their own label; hostname
    anti-affinity, all of one label."""
    draw = random.Random(SEED)
    kinds = (plain, zone_spread, host_spread, own_affinity, apart)
    sizes = [count // len(kinds)] * (len(kinds) - 1)
    sizes.append(count - sum(sizes))
    return _pods([kind(draw) for kind, size in zip(kinds, sizes, strict=True) for _ in range(size)])


def plain(draw: random.Random) -> PodShape:
    return PodShape(requests=requests(draw), labels={LABEL: draw.choice(APPS)})


def zone_spread(draw: random.Random) -> PodShape:
    return _spread(draw, labels.ZONE)


def host_spread(draw: random.Random) -> PodShape:
    return _spread(draw, labels.HOSTNAME)


def _spread(draw: random.Random, key: str) -> PodShape:
    """Label and selector are drawn apart from each other."""
    selector = Selector({LABEL: draw.choice(APPS)})
    return PodShape(
        requests=requests(draw), labels={LABEL: draw.choice(APPS)}, spread=(SpreadConstraint(key, selector=selector),)
    )


def own_affinity(draw: random.Random) -> PodShape:
    own = {"my-affinity": draw.choice(APPS)}
    return PodShape(requests=requests(draw), labels=own, affinity=(AffinityTerm(labels.ZONE, Selector(own)),))


def apart(draw: random.Random) -> PodShape:
    own = {"app": "nginx"}
    return PodShape(requests=requests(draw), labels=own, anti_affinity=(AffinityTerm(labels.HOSTNAME, Selector(own)),))


def preference_pods(count: int) -> Pods:
    """A zone that can be had, a zonal anti-affinity that cannot for long, and a hostname anti-affinity that can."""
    draw = random.Random(SEED)
    own = {"app": "nginx"}
    zone = PreferredNodeTerm(1, NodeTerm((Expression(labels.ZONE, "In", ("test-zone-1",)),)))
    return _pods(
        [
            PodShape(
                requests=requests(draw),
                labels=own,
                preferred_terms=(zone,),
                anti_affinity=(
                    AffinityTerm(labels.ZONE, Selector(own), weight=10),
                    AffinityTerm(labels.HOSTNAME, Selector(own), weight=1),
                ),
            )
            for _ in range(count)
        ]
    )


def unique_pods(count: int) -> Pods:
    """The diverse mix with requests of which no two are alike: every pod is a class of its own."""
    pods, shapes = diverse_pods(count)
    own = [
        replace(shapes[pod.shape], requests={"cpu": shapes[pod.shape].requests["cpu"] + number % 97,
                                             "memory": shapes[pod.shape].requests["memory"] + number * 4096})
        for number, pod in enumerate(pods)
    ]  # fmt: skip
    return _pods(own)


def _pods(drawn: list[PodShape]) -> Pods:
    shapes: dict[str, PodShape] = {}
    pods = []
    for number, shape in enumerate(drawn):
        digest = content(shape)[0]
        shapes[digest] = shape
        pods.append(PendingPod(f"uid-{number:07d}", "default", f"pod-{number:07d}", digest))
    return tuple(pods), shapes


def problem(count: int, types: Callable[[], Catalogue], drawn: Callable[[int], Pods] = plain_pods) -> Problem:
    pods, shapes = drawn(count)
    catalogue = types()
    digest = content(catalogue)[0]
    pool = NodePool("default", NODE_CLASS)
    return Problem(pods, shapes, (PoolInput(pool, digest),), {digest: catalogue})


def beside_nodes(count: int) -> Problem:
    """The diverse mix beside 5,000 nodes, each with two bound pods and room for a few more."""
    draw = random.Random(SEED)
    asked = problem(count, reference_types, diverse_pods)
    drawn = [plain(draw) for _ in range(40)]
    shapes = {content(shape)[0]: shape for shape in drawn}
    nodes = tuple(
        NodeInput(
            f"node-{number:05d}",
            "",
            {
                labels.ZONE: f"test-zone-{1 + number % 3}",
                labels.CAPACITY_TYPE: labels.ON_DEMAND,
                labels.HOSTNAME: f"node-{number:05d}",
            },
            (),
            {"cpu": draw.choice((0, 200, 400, 800, 1600)), "memory": draw.choice((256, 1024, 2048)) * MIB, "pods": 20},
        )
        for number in range(NODES)
    )
    bound = tuple(
        BoundPod(f"bound-{number:05d}", "default", draw.choice(sorted(shapes)), nodes[number % NODES].name)
        for number in range(2 * NODES)
    )
    return replace(asked, shapes={**asked.shapes, **shapes}, nodes=nodes, bound=bound)


SHAPES: dict[str, Callable[[int], Problem]] = {
    "plain": lambda count: problem(count, reference_types),
    "plain-ec2": lambda count: problem(count, ec2_types),
    "diverse": lambda count: problem(count, reference_types, diverse_pods),
    "preferences": lambda count: problem(count, reference_types, preference_pods),
    "beside-nodes": beside_nodes,
    "unique": lambda count: problem(count, reference_types, unique_pods),
}
"""What can be measured."""
