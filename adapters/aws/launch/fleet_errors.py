"""What the errors in a fleet's answer mean (A-290…A-314). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.karpenter.launch_reasons import (
    NO_ADDRESSES,
    NO_CAPACITY,
    NO_SPOT_ROLE,
    UNAUTHORIZED,
    launch_reason,
)
from kerf.engine.record.observations import LaunchAnswered, LaunchError

SPREAD_LIMIT = "limit of instances in this spread placement group"
"""What EC2 says of a spread placement group that takes no more instances in a zone (A-295)."""
_POLICIES = (
    "permissions boundary",
    "service control policy",
    "resource control policy",
    "VPC endpoint policy",
    "session policy",
    "resource-based policy",
    "identity-based policy",
)
"""What AWS says that a right is missing in, or denied by."""


def denied_by(text: str) -> str:
    """ " by a permissions boundary" and the like, where AWS says what forbids the call; else "" (A-301)."""
    return next((f" by a{'n' * (name[0] == 'i')} {name}" for name in _POLICIES if name in text), "")


def explained(text: str) -> str:
    """The message for an error's "code: message" text: what forbids the call comes first, since conditions and Events
    have only the beginning (A-301)."""
    by = denied_by(text) if launch_reason(text) == UNAUTHORIZED else ""
    return f"not allowed{by}: {text}" if by else text


def says_used_up(code: str, message: str) -> bool:
    """Whether an error means that nothing is left of the reservation that was launched into (A-297)."""
    return code in NO_CAPACITY - {NO_ADDRESSES} and SPREAD_LIMIT not in message


def refusal(intent: str, claim: str, errors: Sequence[LaunchError]) -> LaunchAnswered:
    """The answer to a fleet that started nothing (A-291). No errors at all is no lack of capacity (A-448)."""
    text = "; ".join(dict.fromkeys(f"{error.code}: {error.message}" for error in errors))
    exhausted = bool(errors) and all(e.code in NO_CAPACITY or e.code == NO_SPOT_ROLE for e in errors)
    return LaunchAnswered(
        intent=intent,
        claim=claim,
        kind="insufficient-capacity" if exhausted else "error",
        code="InsufficientCapacity" if exhausted else launch_reason(text),
        message=explained(text) or "the fleet started nothing and named no error",
        errors=tuple(errors),
    )


def failure(intent: str, claim: str, code: str, message: str, kind: str = "error") -> LaunchAnswered:
    """The answer to a launch that never became a fleet (A-218, A-314)."""
    return LaunchAnswered(intent=intent, claim=claim, kind=kind, code=code, message=message)
