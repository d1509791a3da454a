"""What the errors in a fleet's answer mean (A-290…A-314). Pure."""

from __future__ import annotations

from collections.abc import Sequence

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
SERVICE_LINKED_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

_AUTHORISATION = ("UnauthorizedOperation", "AccessDenied", "AuthFailure")
_REASONS: tuple[tuple[str, str], ...] = (
    ("iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid"),
    ("InvalidLaunchTemplateId.NotFound", "LaunchTemplateNotFound"),
    ("User data is limited to", "UserDataSizeLimitExceeded"),
    ("InvalidAMIID.Malformed", "InvalidAMIID"),
    ("InvalidAMIID.NotFound", "AMINotFound"),
    ("RequestLimitExceeded", "RequestLimitExceeded"),
    ("InternalError", "InternalError"),
    ("not eligible for Free Tier", "FreeTierIneligible"),
    ("MaxFleetCountExceeded", "FleetQuotaExceeded"),
    ("PendingVerification", "AccountPendingVerification"),
    ("MaxSpotInstanceCountExceeded", "SpotQuotaExceeded"),
    ("VcpuLimitExceeded", "VCPULimitExceeded"),
    ("InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"),
)


def reason(text: str) -> str:
    """The reason for an error's "code: message" text: the first that matches (A-299…A-313)."""
    if SERVICE_LINKED_ROLE in text:
        return "SpotSLRCreationFailed"
    if any(code in text for code in _AUTHORISATION):
        return "AMIAuthorizationFailure" if "Not authorized for images" in text else "Unauthorized"
    if "InvalidParameter" in text and "belong to different networks" in text:
        return "SecurityGroupSubnetVPCMismatch"
    return next((found for part, found in _REASONS if part in text), "LaunchFailed")


def refusal(intent: str, claim: str, errors: Sequence[LaunchError]) -> LaunchAnswered:
    """The answer to a fleet that started nothing (A-291). No errors at all is no lack of capacity (A-448)."""
    text = "; ".join(dict.fromkeys(f"{error.code}: {error.message}" for error in errors))
    exhausted = bool(errors) and all(e.code in UNFULFILLABLE or e.code == SERVICE_LINKED_ROLE for e in errors)
    return LaunchAnswered(
        intent=intent,
        claim=claim,
        kind="insufficient-capacity" if exhausted else "error",
        code="InsufficientCapacity" if exhausted else reason(text),
        message=text or "the fleet started nothing and named no error",
        errors=tuple(errors),
    )


def failure(intent: str, claim: str, code: str, message: str, kind: str = "error") -> LaunchAnswered:
    """The answer to a launch that never became a fleet (A-218, A-314)."""
    return LaunchAnswered(intent=intent, claim=claim, kind=kind, code=code, message=message)
