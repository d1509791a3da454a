"""Put into words what was refused of what would do, and when that is asked for again."""

from __future__ import annotations

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.refused_offerings import RefusedZones
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.prose.amounts import moment


def refused_in_words(reason: Reason, refused: RefusedZones | None) -> str:
    """What follows the sentence of a reason; "" where refusals are not why. A spread or affinity does not name the
    zones that it needs."""
    if refused is None:
        return ""
    if reason.code == SchedulingCode.IN_DOUBT:
        return f"; this is planned again at {moment(refused.again)} at the latest"
    zones = f" in {', '.join(refused.zones)}" if reason.code == SchedulingCode.TOPOLOGY else ""
    return f"; there was no capacity{zones} when last asked for: tried again at {moment(refused.again)}"
