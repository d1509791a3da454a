"""How many nodes of each NodePool count for its disruption budgets, by the state (D-49, D-50)."""

from __future__ import annotations

from kerf.engine.disruption.budgets import Use
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.effect_keys import TERMINATE
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State


def budget_use(state: State) -> dict[str, Use]:
    """Return what counts, by NodePool: initialized nodes whose instance is not being ended. Those that go or are not
    ready consume."""
    use_of_pool: dict[str, Use] = {}
    for claim in state.facts.claims.values():
        if claim.initialized and not _ends(claim):
            use = use_of_pool.get(claim.node_pool, Use())
            node = node_of(claim, state)
            busy = claim.state in GOING or node is None or not node.ready
            use_of_pool[claim.node_pool] = Use(use.total + 1, use.consuming + busy)
    return use_of_pool


def _ends(claim: NodeClaim) -> bool:
    """Whether the cloud has accepted to end the claim's instance, or has ended it (D-158)."""
    effect = claim.effect(TERMINATE)
    return claim.instance_status in ENDED or (effect is not None and bool(effect.ok))
