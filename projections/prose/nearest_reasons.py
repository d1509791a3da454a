"""Order the reasons of several NodePools: first that of the pool where least is missing for the pod's place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kerf.engine.model.labels import NODEPOOL
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.reasons import SchedulingCode

_BY_DISTANCE: tuple[tuple[SchedulingCode, ...], ...] = (
    (SchedulingCode.NO_NODE_POOL, SchedulingCode.NO_INSTANCE_TYPES, SchedulingCode.TOO_FEW_TYPES),
    (SchedulingCode.TAINTS,),
    (SchedulingCode.LABEL_UNDEFINED,),
    (SchedulingCode.REQUIREMENTS,),
    (SchedulingCode.TYPES_REQUIREMENTS,),
    (SchedulingCode.TYPES_COMBINED,),
    (SchedulingCode.TYPES_RESOURCES, SchedulingCode.HOST_PORTS),
    (SchedulingCode.TYPES_OFFERINGS,),
    (SchedulingCode.NODE_LIMIT,),
    (SchedulingCode.LIMITS,),
)
"""What is missing, from the most to the least: a pool of other nodes, one without a type that would do, one whose
limits are used up. Codes that are not named here come nearest: a type would do, and something else stands in its way.
"""
_RANK = {code.value: float(rank) for rank, step in enumerate(_BY_DISTANCE) for code in step}


def nearest_first(reasons: Iterable[Reason], defines: Callable[[str], Collection[str]] | None = None) -> list[Reason]:
    """Return the reasons by what is missing, the least first; equals in their order. `defines` gives the labels that a
    NodePool's nodes have, where it is at hand.

    A pod that selects a NodePool by its label is refused by all others for that label. Those reasons come last. A pod
    that selects a label which only a tainted NodePool gives is meant for that one: it lacks the toleration alone.
    """
    found = list(reasons)
    undefined = {key for reason in found if reason.code == SchedulingCode.LABEL_UNDEFINED for key in _keys(reason)}

    def rank(reason: Reason) -> float:
        pool = str(reason.params.get("node_pool", ""))
        if reason.code == SchedulingCode.TAINTS and undefined and defines and undefined.issubset(defines(pool)):
            return _RANK[SchedulingCode.LABEL_UNDEFINED] + 0.5
        return _rank(reason)

    return sorted(found, key=rank, reverse=True)


def _rank(reason: Reason) -> float:
    if reason.code == SchedulingCode.REQUIREMENTS.value and NODEPOOL in _keys(reason):
        return -1
    return _RANK.get(reason.code, len(_BY_DISTANCE))


def _keys(reason: Reason) -> list[str]:
    keys = reason.params.get("keys")
    return list(keys) if isinstance(keys, list) else []
