"""Order the reasons of several NodePools: first that of the pool where least is missing for the pod's place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kerf.engine.model.labels import NODEPOOL, WELL_KNOWN
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
_BEFORE_LABELS = (SchedulingCode.NO_INSTANCE_TYPES, SchedulingCode.TOO_FEW_TYPES, SchedulingCode.TAINTS)
"""What a NodePool is ruled out for before the pod's labels are looked at."""
_BY_LABELS = (SchedulingCode.LABEL_UNDEFINED, SchedulingCode.REQUIREMENTS)
_OF_ANOTHER_POOL = -1.0
_RANK = {code.value: float(rank) for rank, step in enumerate(_BY_DISTANCE) for code in step}


def nearest_first(
    reasons: Iterable[Reason], gives: Callable[[str, Collection[str]], bool] | None = None
) -> list[Reason]:
    """Return the reasons by what is missing, the least first; equals in their order. `gives` says whether a NodePool's
    nodes have some labels as the pod asks for them, where that is at hand.

    A pod that selects a NodePool by its label is refused by all others for that label, or for one that they do not have
    at all. Those reasons come last. A pod
    that selects labels of the user's own as only one NodePool gives them is meant for that one: what that NodePool
    lacks, or the pod's toleration, comes before the labels of all others.
    """
    found = list(reasons)
    own = {key for reason in found if reason.code in _BY_LABELS for key in _keys(reason)} - WELL_KNOWN

    def rank(reason: Reason) -> float:
        pool = str(reason.params.get("node_pool", ""))
        if gives and reason.code in _BY_LABELS and not gives(pool, (NODEPOOL,)):
            return _OF_ANOTHER_POOL
        if gives and reason.code in _BEFORE_LABELS and own and gives(pool, own):
            return _RANK[SchedulingCode.REQUIREMENTS] + 0.5
        return _rank(reason)

    return sorted(found, key=rank, reverse=True)


def _rank(reason: Reason) -> float:
    if reason.code == SchedulingCode.REQUIREMENTS.value and NODEPOOL in _keys(reason):
        return _OF_ANOTHER_POOL
    return _RANK.get(reason.code, len(_BY_DISTANCE))


def _keys(reason: Reason) -> list[str]:
    keys = reason.params.get("keys")
    return list(keys) if isinstance(keys, list) else []
