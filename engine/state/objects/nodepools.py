"""The fold of NodePools."""

from __future__ import annotations

from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.record.entries import Entry
from kerf.engine.state.nodeclaims.drift import keep_nodepool_template
from kerf.engine.state.objects import nodepool_health
from kerf.engine.state.objects.kept import ObjectRules, keeping
from kerf.engine.state.objects.static_nodepools import forget_pool, look_at_all_pools, look_at_pool
from kerf.engine.state.provisioning_window import free_capacity_changed, note_disruption_change
from kerf.engine.state.state import State


def nodepool_seen(state: State, pool: NodePool, entry: Entry) -> None:
    if state.facts.pools.get(pool.name) == pool:
        return
    state.facts.pools[pool.name] = pool
    keep_nodepool_template(state, pool)
    nodepool_health.pool_seen(state, pool, entry)
    _touch_pool(state, pool.name, entry)
    look_at_pool(state, pool.name)
    free_capacity_changed(state, entry.at)


def _touch_pool(state: State, name: str, entry: Entry) -> None:
    for claim in state.facts.claims.values():
        if claim.node_pool == name:
            state.indexes.touched[claim.name] = entry.position


def nodepool_gone(state: State, name: str, entry: Entry) -> None:
    facts = state.facts
    forget_pool(state, name)
    facts.health.pop(name, None)
    if facts.pools.pop(name, None) is not None:
        _touch_pool(state, name, entry)
        note_disruption_change(facts, entry.at)


def overlay_rules(kind: WatchedKind) -> ObjectRules:
    """NodeOverlays are kept. What static NodePools can launch may be other than before: an overlay may name the price
    that a type lacked (A-208, A-218)."""
    kept = keeping(kind)

    def seen(state: State, overlay: NodeOverlay, entry: Entry) -> None:
        kept.seen(state, overlay, entry)
        look_at_all_pools(state)

    def gone(state: State, key: str, entry: Entry) -> None:
        kept.gone(state, key, entry)
        look_at_all_pools(state)

    return ObjectRules(seen, gone)
