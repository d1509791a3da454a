"""Whether the nodes of a NodePool register at all (L-182…L-187): the latest outcomes and what is said of them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

RING = 4
"""So many of the latest outcomes count."""
FAILURES = 2
"""So many failures among them are too many."""
UNKNOWN, HEALTHY, UNHEALTHY = "Unknown", "True", "False"


class PoolHealth(Struct, frozen=True, omit_defaults=True):
    """`ring`: the latest outcomes, oldest first, True for a node that registered. `status`, `reason`, `message` and
    `since` (ms) are those of the condition NodeRegistrationHealthy. `pool` and `node_class` tell one version of these
    from the next."""

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
    """L-184: with one more outcome. Success says so as soon as failures are few enough, and takes nothing back; a
    failure says so when they are too many, and gives the reason of the first that was."""
    ring = (*health.ring, success)[-RING:]
    bad = ring.count(False) >= FAILURES
    if success and not bad and health.status != HEALTHY:
        return replace(health, ring=ring, status=HEALTHY, reason="NodeRegistrationHealthy", message="", since=now)
    if not success and bad and health.status != UNHEALTHY:
        return replace(health, ring=ring, status=UNHEALTHY, reason=reason, message=message, since=now)
    return replace(health, ring=ring)


def anew(health: PoolHealth, now: int) -> PoolHealth:
    """L-185: the NodePool or its NodeClass is another: what happened before says nothing."""
    since = health.since if health.status == UNKNOWN else now
    return replace(health, ring=(), status=UNKNOWN, reason="AwaitingReconciliation", message="", since=since)
