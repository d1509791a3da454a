"""Whether a NodePool's nodes register (L-182…L-187): the latest outcomes, and the condition made from them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

RING = 4
"""How many of the latest outcomes count."""
FAILURES = 2
"""How many failures among them make the NodePool unhealthy."""
UNKNOWN, HEALTHY, UNHEALTHY = "Unknown", "True", "False"


class PoolHealth(Struct, frozen=True, omit_defaults=True):
    """The registration health of a NodePool. `ring` holds the latest outcomes, oldest first; True is a registered node.

    `status`, `reason`, `message` and `since` (ms) are those of the condition NodeRegistrationHealthy. `pool` and
    `node_class` identify the versions of both that the outcomes belong to.
    """

    uid: str = ""
    first_seen: int = 0
    pool: str = ""
    node_class: str = ""
    ring: tuple[bool, ...] = ()
    status: str = UNKNOWN
    reason: str = "AwaitingReconciliation"
    message: str = ""
    since: int = 0


def after(health: PoolHealth, success: bool, now: int, *, reason: str = "", message: str = "") -> PoolHealth:
    """Returns the health after one more outcome (L-184).

    A success makes the condition True if there are few enough failures, but never takes it back. A failure makes it
    False if there are too many, with the reason of the failure that was one too many.
    """
    ring = (*health.ring, success)[-RING:]
    bad = ring.count(False) >= FAILURES
    if success and not bad and health.status != HEALTHY:
        return replace(health, ring=ring, status=HEALTHY, reason="NodeRegistrationHealthy", message="", since=now)
    if not success and bad and health.status != UNHEALTHY:
        return replace(health, ring=ring, status=UNHEALTHY, reason=reason, message=message, since=now)
    return replace(health, ring=ring)


def anew(health: PoolHealth, now: int) -> PoolHealth:
    """Returns the health after a change of the NodePool or its NodeClass: earlier outcomes no longer count (L-185)."""
    since = health.since if health.status == UNKNOWN else now
    return replace(health, ring=(), status=UNKNOWN, reason="AwaitingReconciliation", message="", since=since)
