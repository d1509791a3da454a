"""What one disruption method finds about one claim."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.reasons import Reason, ReasonCode

LIFECYCLE = "lifecycle"
"""The method of a finding about a claim that no method looks at: it is not launched yet, or on its way out."""


class Finding(Struct, frozen=True):
    """`due` is when the finding may change by itself (ms since the epoch, 0 for never). `told`: to be recorded although
    the claim stays."""

    method: str  # a DisruptionReason, or LIFECYCLE
    reason: Reason
    remove: bool = False
    due: int = 0
    told: bool = False


def keep(
    method: DisruptionReason, code: ReasonCode, *, due: int = 0, **params: str | int | float | list[str]
) -> Finding:
    return Finding(method.value, Reason.of(code, **params), due=due)


def remove(method: DisruptionReason, code: ReasonCode, **params: str | int | float | list[str]) -> Finding:
    return Finding(method.value, Reason.of(code, **params), remove=True)
