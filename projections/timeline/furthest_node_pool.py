"""Pick, of the reasons of several NodePools, the one that says most: that of the pool where the pod got furthest."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.labels import NODEPOOL
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.reasons import SchedulingCode

_CODES_BY_STEP: tuple[tuple[SchedulingCode, ...], ...] = (
    (SchedulingCode.NO_NODE_POOL, SchedulingCode.NO_INSTANCE_TYPES, SchedulingCode.TOO_FEW_TYPES),
    (SchedulingCode.TAINTS,),
    (SchedulingCode.LABEL_UNDEFINED,),
    (SchedulingCode.REQUIREMENTS,),
    (SchedulingCode.TYPES_REQUIREMENTS,),
    (SchedulingCode.LIMITS, SchedulingCode.NODE_LIMIT),
)
"""The steps of packing in their order. Codes that are not named here come last."""

_RANK = {code.value: rank for rank, step in enumerate(_CODES_BY_STEP) for code in step}


def furthest_reason(reasons: Sequence[Reason]) -> Reason | None:
    """Return the reason of the NodePool where the pod got furthest; the first of several.

    A pod that selects a NodePool by its label is refused by all others for that label. Those reasons say least.
    """
    return max(reasons, key=_rank, default=None)


def _rank(reason: Reason) -> int:
    keys = reason.params.get("keys")
    if reason.code == SchedulingCode.REQUIREMENTS.value and isinstance(keys, list) and NODEPOOL in keys:
        return -1
    return _RANK.get(reason.code, len(_CODES_BY_STEP))
