"""A world of two nodes in service."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.karpenter.nodepools import Budget
from tests.support.lives import UNREGISTERED
from tests.support.world import Mi, World, pool


def two_nodes(cpu: int = 0, **changes: Any) -> World:
    """`n1` and `n2` are in service, a pod (of `cpu` milli-CPU) fills each; the budgets let both go."""
    world = World()
    world.prepare(pool(budgets=(Budget("100%"),), **changes))
    for number, name in enumerate("ab", 1):
        world.pending(name, cpu=cpu, memory=6_000 * Mi)
        world.after(1_000)
        ((ref, order),) = world.launches()
        world.answer_launch(ref, order, instance=f"i-{number}")
        (claim,) = (
            node_claim
            for node_claim in world.runtime.state.facts.claims.values()
            if node_claim.instance == f"i-{number}"
        )
        world.node(f"n{number}", claim.provider_id, taints=(UNREGISTERED,))
        world.answer_all()
        world.node(f"n{number}", claim.provider_id, registered="true")
        world.answer_all()
        world.node(f"n{number}", claim.provider_id, registered="true", initialized="true")
        world.bind(name, f"n{number}")
    world.after(60_000)
    return world
