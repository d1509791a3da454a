"""The worked cases of drift and of static NodePools (W-65 to W-69)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import DAEMONSET, Owner, Pod, PodShape
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from kerf.engine.record.observations import CatalogueSeen, Observation
from tests.support.lives import claim_of
from tests.support.world import CATALOGUE, World
from tests.support.worlds.drift import HOUR, KEY, change, found, in_service
from tests.support.worlds.static_nodepools import by_instance, put, static, working


@pytest.mark.parametrize(
    ("requirements", "drifted"),
    [
        ((RequirementSpec(lbl.ZONE, "In", ("us-west-2b",)),), True),
        ((RequirementSpec(lbl.ZONE, "In", ("us-west-2a", "us-west-2b", "us-west-2c")),), False),
        ((RequirementSpec(lbl.ZONE, "In", ("us-west-2a", "us-west-2b")), RequirementSpec("team", "Exists")), True),
    ],
)
def test_w65_a_requirement_that_is_narrowed_or_new_drifts_and_a_wider_one_does_not(
    requirements: tuple[RequirementSpec, ...], drifted: bool
) -> None:
    world = in_service()
    assert claim_of(world).labels[lbl.ZONE] == "us-west-2a"
    change(world, requirements=(RequirementSpec(lbl.ZONE, "In", ("us-west-2a", "us-west-2b")),))
    assert found(world)[0] == ""
    change(world, requirements=requirements)
    assert found(world)[0] == ("requirements-drifted" if drifted else "")


@pytest.mark.parametrize("capacity_type", [lbl.RESERVED, lbl.ON_DEMAND])
@pytest.mark.parametrize(("sold", "drifted"), [(lbl.ON_DEMAND, False), (lbl.SPOT, True)])
def test_w66_a_node_whose_reservation_is_over_stays_where_its_type_is_sold_on_demand(
    capacity_type: str, sold: str, drifted: bool
) -> None:
    """D-126: before its label says so (reserved) as after."""
    world = in_service()
    claim_of(world).labels[lbl.CAPACITY_TYPE] = capacity_type
    change(world, requirements=(RequirementSpec(lbl.CAPACITY_TYPE, "In", (lbl.RESERVED, lbl.ON_DEMAND)),))
    left = Catalogue(
        tuple(
            replace(kind, offerings=tuple(o for o in kind.offerings if o.capacity_type == sold))
            for kind in CATALOGUE.types
        )
    )
    digest, _ = content(left)
    world.see(Observation(CatalogueSeen(KEY, digest), {digest: left}))
    world.after(HOUR - 10_000)
    assert found(world)[0] == ""
    world.after(20_000)
    assert found(world)[0] == ("instance-type-not-found" if drifted else "")


# ── static NodePools ───────────────────────────────────────────────────────────────────────────────────────────────


def running(replicas: int, nodes: int, **changes: object) -> World:
    """A NodePool of which so many nodes run, each of the template before `changed`."""
    world = World(static_capacity=True)
    world.prepare(hashed(static(nodes, budgets=(Budget("100%"),), **changes)))
    working(world, nodes)
    if replicas != nodes:
        world.see(Observation(hashed(static(replicas, budgets=(Budget("0"),), **changes))))
    return world


def edited(world: World, **changes: object) -> list[ProposedMovesResult]:
    """The template gets another label; the passes that follow."""
    before = len(world.store.entries)
    given: NodePool = next(iter(world.runtime.state.facts.pools.values()))
    world.see(Observation(hashed(replace(given, labels={"team": "b"}, **changes))))
    world.after(10_000)
    made = [e.payload.result for e in world.store.entries[before:] if isinstance(e.payload, Decision)]
    return [result for result in made if isinstance(result, ProposedMovesResult)]


def steady(world: World) -> list[NodeClaim]:
    return [claim for claim in world.runtime.state.facts.claims.values() if claim.state in STEADY]


@pytest.mark.parametrize(("limit", "replaced"), [(5, 0), (6, 1), (7, 2), (None, 5)])
def test_w67_the_limit_on_nodes_bounds_how_many_are_replaced_at_a_time(limit: int | None, replaced: int) -> None:
    world = running(5, 5, limits={} if limit is None else {"nodes": limit})
    passes = edited(world)
    assert sum(len(result.proposed) for result in passes) == replaced
    assert len(world.runtime.state.facts.claims) == 5 + replaced


def test_w68_a_pool_that_is_too_large_gets_smaller_before_it_drifts() -> None:
    world = World(static_capacity=True)
    world.prepare(hashed(static(2, budgets=(Budget("100%"),))))
    working(world, 2)
    passes = edited(world, replicas=1)
    whys = {claim.why: claim.name for claim in world.runtime.state.facts.claims.values() if claim.why}
    (move,) = (move for result in passes for move in result.proposed)
    assert move.claims == (whys["drifted"],), "of the one that is left"
    tainted = [entry.payload.why for entry in world.store.entries if entry.type == "claim.tainted"]
    assert tainted == ["overprovisioned", "drifted"]


def test_w69_the_unlaunched_and_the_one_with_daemons_alone_go_first() -> None:
    world = World(static_capacity=True)
    world.prepare(static(3))
    working(world, 3)
    shape = PodShape(requests={"cpu": 1}, grace=0)
    digest, _ = content(shape)
    daemon = Pod(
        "uid-ds", "kube-system", "agent", digest, created=world.now, node="n1", phase="Running", ready=True,
        owner=Owner(DAEMONSET, "agent", "uid-agent"),
    )  # fmt: skip
    world.see(Observation(daemon, {digest: shape}))
    put(world, "kept", "n2", do_not_disrupt="true")
    put(world, "web", "n3")
    world.see(Observation(static(4)))
    assert sorted(claim.state for claim in world.runtime.state.facts.claims.values())[-1] == "requested"
    world.see(Observation(static(2)))
    states = by_instance(world)
    assert {instance: state for instance, state in states.items() if state == "tainted"} == {"i-1": "tainted"}
    assert set(states) == {"i-1", "i-2", "i-3"}, "the unlaunched one is over"
