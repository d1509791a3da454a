"""What the cloud refused of what would do (A-290): of which zones that is told, and when it is asked for again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import HOSTNAME, ZONE
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.refused_offerings import RefusedZones, refused_zones, replaced_again_at
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from tests.support.lives import claim_of, half_empty
from tests.support.world import CATALOGUE, World

A, B = "us-west-2a", "us-west-2b"
MINUTE = 60_000
TYPES = tuple(kind.name for kind in CATALOGUE.types)
SMALL = PodShape(requests={"cpu": 100})


def refusing(*zones: str, types: tuple[str, ...] = TYPES) -> World:
    """Everything of these types was refused in these zones, that of the second type a minute later than the first."""
    world = World()
    world.prepare()
    for zone in zones:
        for number, kind in enumerate(types):
            for capacity_type in ("spot", "on-demand"):
                until = world.now + (3 + number) * MINUTE
                world.runtime.state.facts.unavailable[f"{capacity_type}|{kind}|{zone}"] = until
    return world


def told(world: World, why: Reason, shape: PodShape = SMALL) -> RefusedZones | None:
    digest, _ = content(shape)
    world.runtime.state.indexes.blobs.offer(digest, shape)
    return refused_zones(world.runtime.state, world.now, why, digest)


def topology(rule: str, *domains: str, key: str = ZONE) -> Reason:
    return reason(SchedulingCode.TOPOLOGY, node_pool="default", rule=rule, key=key, domains=list(domains))


@pytest.mark.parametrize(
    ("rule", "domains", "zones"),
    [
        ("spread", (f"{A}=2", f"{B}=1"), (B,)),
        ("spread", (f"{A}=1", f"{B}=1"), (A, B)),
        ("affinity", (f"{A}=2",), (A,)),
        ("anti-affinity", (f"{A}=1",), (B,)),
    ],
)
def test_of_a_rule_over_zones_those_are_told_that_it_needs(rule: str, domains: tuple[str, ...], zones: object) -> None:
    world = refusing(A, B)
    assert told(world, topology(rule, *domains)) == RefusedZones(zones, world.now + 3 * MINUTE)  # type: ignore[arg-type]


def test_a_zone_that_sells_anything_large_enough_is_no_refused_one() -> None:
    world = refusing(B, types=TYPES[:-1])
    assert told(world, topology("spread", f"{A}=2", f"{B}=1")) is None
    world = refusing(B, types=("m5.xlarge",))
    large = PodShape(requests={"cpu": 3_000})
    assert told(world, topology("spread", f"{A}=2", f"{B}=1"), large) == RefusedZones((B,), world.now + 3 * MINUTE)


@pytest.mark.parametrize(
    ("allowed", "zones"),
    [((f"{ZONE} In [{B}]",), (B,)), ((f"{ZONE} In [{A} {B}], x In [y]",), (A, B)), (("x In [y]",), ())],
)
def test_of_volumes_the_zones_are_told_in_which_they_are(allowed: tuple[str, ...], zones: tuple[str, ...]) -> None:
    world = refusing(A, B)
    why = reason(SchedulingCode.VOLUME_TOPOLOGY, node_pool="default", allowed=list(allowed))
    assert told(world, why) == (RefusedZones(zones, world.now + 3 * MINUTE) if zones else None)


def test_where_nothing_is_on_offer_any_more_all_zones_are_told() -> None:
    world = refusing(A, B)
    for code in (SchedulingCode.TYPES_OFFERINGS, SchedulingCode.NO_INSTANCE_TYPES):
        why = reason(code, node_pool="default", types=4)
        assert told(world, why) == RefusedZones((A, B), world.now + 3 * MINUTE)


def test_what_has_other_causes_is_not_put_down_to_refusals() -> None:
    world = refusing(A, B)
    assert told(world, topology("spread", "n1=1", key=HOSTNAME)) is None
    assert told(world, reason(SchedulingCode.LIMITS, node_pool="default")) is None
    assert told(World(), topology("spread", f"{A}=1")) is None, "no NodePool of that name"
    world.after(10 * MINUTE)
    assert told(world, topology("spread", f"{A}=2", f"{B}=1")) is None, "it counts as available again"


def test_a212_a_zone_is_refused_when_all_subnets_that_the_class_has_there_are_full() -> None:
    world = refusing()
    facts = world.runtime.state.facts
    ((key, known),) = facts.node_classes.items()
    facts.node_classes[key] = replace(known, terms=NodeClassTerms(zones={A: ("s1",), B: ("s2", "s3")}))
    facts.full_subnets |= {"s2": world.now + 2 * MINUTE}
    why = topology("spread", f"{A}=2", f"{B}=1")
    assert told(world, why) is None
    facts.full_subnets |= {"s3": world.now + MINUTE}
    assert told(world, why) == RefusedZones((B,), world.now + MINUTE), "until one of them has addresses again"


def test_a_node_is_looked_at_again_when_something_cheaper_is_in_doubt_no_more() -> None:
    world = half_empty()
    facts, claim = world.runtime.state.facts, claim_of(world)
    assert replaced_again_at(world.runtime.state, world.now, claim) == 0
    cheapest, dearest = "on-demand|c5.large|" + A, "on-demand|m5.xlarge|" + A
    facts.unavailable[dearest] = world.now + MINUTE
    assert replaced_again_at(world.runtime.state, world.now, claim) == 0, "nothing cheaper"
    facts.unavailable[cheapest] = facts.refused_since[cheapest] = world.now + 2 * MINUTE
    assert replaced_again_at(world.runtime.state, world.now, claim) == world.now + 5 * MINUTE, "with its doubt"
