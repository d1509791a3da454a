"""Worlds in which a NodePool or a NodeClass is edited."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodeclass_terms import Image, NodeClassTerms
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import LaunchAnswered, NodeClassSeen, Observation
from tests.support.lives import PODS, PROVIDER, claim_of, joins
from tests.support.world import NODE_CLASS, World, pool

HOUR = 3_600_000
KEY = f"{NODE_CLASS.group}/{NODE_CLASS.kind}/{NODE_CLASS.name}"
TERMS = NodeClassTerms(
    hash="h1", static={"role": "old", "tags team": "a"}, images=(Image("ami-1"),), subnets=("subnet-1",),
    security_groups=("sg-1",),
)  # fmt: skip


def node_class(terms: NodeClassTerms | None = TERMS, **changes: Any) -> Observation:
    known: dict[str, Any] = {"ready": True, "terms": terms} | changes
    return Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, **known))


def in_service(answer: dict[str, Any] | None = None, **changes: Any) -> World:
    """The node `n1` runs pods a to e; its NodePool has a hash, its NodeClass says what it asks for. The budget lets no
    move follow from a verdict."""
    world = World()
    world.prepare(hashed(pool(budgets=(Budget("0"),), **changes)))
    world.see(node_class())
    world.pending(*PODS)
    world.after(1_000)
    ((ref, order),) = world.launches()
    offer = order.offers[0]
    known: dict[str, Any] = {"image": "ami-1", "subnet": "subnet-1", "security_groups": ("sg-1",)} | (answer or {})
    world.see(
        Observation(
            LaunchAnswered(
                ref, order.claim, "i-1", PROVIDER, offer.instance_type, offer.zone,
                capacity_type=order.capacity_type, **known,
            )
        )
    )  # fmt: skip
    joins(world)
    return world


def pool_now(world: World) -> NodePool:
    return world.runtime.state.facts.pools["default"]


def change(world: World, **changes: Any) -> NodeClaim:
    """The NodePool is edited, and read again."""
    world.see(Observation(hashed(replace(pool_now(world), **changes))))
    return claim_of(world)


def found(world: World) -> tuple[str, tuple[Difference, ...]]:
    claim = claim_of(world)
    return (claim.drift.code if claim.drift is not None else "", claim.differences)
