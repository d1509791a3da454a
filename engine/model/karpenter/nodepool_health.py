"""Whether a NodePool's launches give what they are for: whether its nodes register (L-182…L-187), and whether they have
the labels that it and its pods ask for (D-125)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.names import FreeText, KeyedHash, Plain

RING = 4
"""How many of the latest outcomes count."""
FAILURES = 2
"""How many failures among them make the NodePool unhealthy."""
MAX_VAIN_LAUNCHES = 3
"""After so many launches in a row that did not give a label, no more are made for it: a claim is replaced twice."""
UNKNOWN, HEALTHY, UNHEALTHY = "Unknown", "True", "False"
REGISTRATION_FAILED = "RegistrationFailed"
"""The reason of what was launched and did not register (L-184). A launch that failed has the code of its error."""


class VainLaunches(Struct, frozen=True):
    """How many launches in a row were made for a requirement and did not meet it."""

    requirement: RequirementSpec
    launches: int


class PoolHealth(Struct, frozen=True, omit_defaults=True):
    """What came of a NodePool's launches. `ring` holds the latest outcomes, oldest first; True is a registered node.

    `status`, `reason`, `message` and `since` (ms) are those of the condition NodeRegistrationHealthy. `pool` and
    `node_class` identify the versions of both that the outcomes belong to. `in_vain` counts launches since `changed`
    (ms), when one of them was changed last although launches had been in vain.
    """

    uid: Plain = ""
    first_seen: int = 0
    pool: KeyedHash = ""
    node_class: KeyedHash = ""
    ring: tuple[bool, ...] = ()
    status: Plain = UNKNOWN
    reason: Plain = "AwaitingReconciliation"
    message: FreeText = ""
    since: int = 0
    changed: int = 0
    in_vain: tuple[VainLaunches, ...] = ()

    @property
    def withheld(self) -> tuple[RequirementSpec, ...]:
        """The requirements that no more launches are made for."""
        return tuple(vain.requirement for vain in self.in_vain if vain.launches >= MAX_VAIN_LAUNCHES)


def after_launch(health: PoolHealth, unmet: Iterable[RequirementSpec], met: Iterable[RequirementSpec]) -> PoolHealth:
    """Returns the health after a launch that gave what it was asked for, or did not."""
    counts = {vain.requirement: vain.launches for vain in health.in_vain}
    for requirement in met:
        counts.pop(requirement, None)
    for requirement in unmet:
        counts[requirement] = counts.get(requirement, 0) + 1
    found = tuple(VainLaunches(requirement, launches) for requirement, launches in counts.items())
    return health if found == health.in_vain else replace(health, in_vain=found)


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
    return replace(
        health,
        ring=(),
        status=UNKNOWN,
        reason="AwaitingReconciliation",
        message="",
        since=since,
        changed=now if health.in_vain else health.changed,
        in_vain=(),
    )
