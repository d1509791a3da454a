"""What one disruption method finds about one claim."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.reasons import Reason, ReasonCode

LIFECYCLE = "lifecycle"
"""The method of a finding about a claim that no method looks at: it is not launched yet, or on its way out."""


class Finding(Struct, frozen=True):
    """Whether the claim has to go, and why or why not.

    `due` is when the finding may change by itself (ms since the epoch, 0 for never). With `note` it is recorded
    although the claim stays.
    """

    method: str  # a DisruptionReason, or LIFECYCLE
    reason: Reason
    remove: bool = False
    due: int = 0
    note: bool = False


def keep(
    method: DisruptionReason, code: ReasonCode, *, due: int = 0, **params: str | int | float | list[str]
) -> Finding:
    """The claim stays, as far as this method is concerned."""
    return Finding(method.value, Reason.of(code, **params), due=due)


def remove(method: DisruptionReason, code: ReasonCode, **params: str | int | float | list[str]) -> Finding:
    """The claim has to go."""
    return Finding(method.value, Reason.of(code, **params), remove=True)
