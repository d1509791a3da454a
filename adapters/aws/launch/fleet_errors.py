"""What the errors in a fleet's answer mean (A-290…A-314). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.karpenter.launch_reasons import NO_SPOT_ROLE, launch_reason
from kerf.engine.record.observations import LaunchAnswered, LaunchError

UNFULFILLABLE = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    }
)
"""The error codes that say that an offering lacks capacity (A-290)."""


def refusal(intent: str, claim: str, errors: Sequence[LaunchError]) -> LaunchAnswered:
    """The answer to a fleet that started nothing (A-291). No errors at all is no lack of capacity (A-448)."""
    text = "; ".join(dict.fromkeys(f"{error.code}: {error.message}" for error in errors))
    exhausted = bool(errors) and all(e.code in UNFULFILLABLE or e.code == NO_SPOT_ROLE for e in errors)
    return LaunchAnswered(
        intent=intent,
        claim=claim,
        kind="insufficient-capacity" if exhausted else "error",
        code="InsufficientCapacity" if exhausted else launch_reason(text),
        message=text or "the fleet started nothing and named no error",
        errors=tuple(errors),
    )


def failure(intent: str, claim: str, code: str, message: str, kind: str = "error") -> LaunchAnswered:
    """The answer to a launch that never became a fleet (A-218, A-314)."""
    return LaunchAnswered(intent=intent, claim=claim, kind=kind, code=code, message=message)
