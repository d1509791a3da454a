"""Say of which NodePools no node is launched for waiting pods, and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.state import State
from kerf.projections.status.nodepool import NodePoolStatus, nodepool_status
from kerf.replay.history.histories import Histories

NOT_READY, STATIC, DELETING, GONE = "not-ready", "static", "deleting", "gone"
LATELY = 86_400_000
"""A NodePool that was deleted within this time (ms) may be why pods wait."""


class PoolNotAsked(Struct, frozen=True):
    """A NodePool that is left out of provisioning, as one of the words above. `wrong` are the conditions that are not
    met, each with its reason. `gone` is when it was deleted (ms since the epoch), 0 if it was not."""

    node_pool: str
    why: str
    wrong: tuple[Reason, ...] = ()
    gone: int = 0


def pools_not_asked(state: State, reasons: Sequence[Reason]) -> tuple[PoolNotAsked, ...]:
    """Return the NodePools that are left out now, by name, as far as these `reasons` of pods that wait say that it
    matters: none of a record that does not tell whether they are ready."""
    all_of_them = any(reason.code == SchedulingCode.NO_NODE_POOL for reason in reasons)
    named = {reason.params.get("node_pool") for reason in reasons if reason.code == SchedulingCode.NOT_READY}
    if state.facts.tells_history:
        return ()
    found = []
    for name, pool in sorted(state.facts.pools.items()):
        if not all_of_them and name not in named:
            continue
        status = nodepool_status(state, name)
        if pool.deleting:
            found.append(PoolNotAsked(name, DELETING))
        elif pool.replicas is not None:
            found.append(PoolNotAsked(name, STATIC))
        elif not status.ready:
            found.append(PoolNotAsked(name, NOT_READY, conditions_not_met(status)))
    return tuple(found)


def pools_gone(histories: Histories, state: State) -> tuple[PoolNotAsked, ...]:
    """Return the NodePools that were deleted lately and are not there again, by name."""
    facts = state.facts
    ends = ((name, histories.pool_gone(name, facts.position)) for name in sorted(histories.ended_pools))
    return tuple(
        PoolNotAsked(name, GONE, gone=end.at)
        for name, end in ends
        if end is not None and name not in facts.pools and facts.at - end.at <= LATELY
    )


def conditions_not_met(status: NodePoolStatus) -> tuple[Reason, ...]:
    """Return why a NodePool is not ready: the conditions behind Ready that say no."""
    return tuple(
        Reason(condition.reason, {"message": condition.message})
        for condition in status.conditions
        if condition.status == "False" and condition.type != "Ready"
    )
