"""Why a claim is to go: the closed list, by strength. A stronger reason replaces a weaker one (ReasonRaised)."""

from __future__ import annotations

UNDERUTILIZED = "underutilized"
EMPTY = "empty"
DRIFTED = "drifted"
OVERPROVISIONED = "overprovisioned"  # more than the spec.replicas of a static NodePool (D-165)
EXPIRED = "expired"
REGISTRATION_TIMEOUT = "registration-timeout"
LAUNCH_TIMEOUT = "launch-timeout"
DELETED = "deleted"
UNHEALTHY = "unhealthy"
INTERRUPTED = "interrupted"

STRENGTH: dict[str, int] = {
    reason: rank
    for rank, reason in enumerate(
        (
            UNDERUTILIZED,
            EMPTY,
            DRIFTED,
            OVERPROVISIONED,
            EXPIRED,
            REGISTRATION_TIMEOUT,
            LAUNCH_TIMEOUT,
            DELETED,
            UNHEALTHY,
            INTERRUPTED,
        )
    )
}
"""The further right, the stronger: it leaves less choice. Only the first three may be taken back (Untainted)."""
