"""Karpenter's names for why EC2 refuses a launch (A-299 to A-313): reasons of conditions, labels of metrics."""

from __future__ import annotations

NO_SPOT_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
"""EC2's code for a service-linked role of spot that is missing, and that kerf may not make (A-296)."""
NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"
"""EC2's code for a subnet that has no address left (A-293)."""
NO_CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        NO_ADDRESSES,
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    }
)
"""EC2's codes for an offering that lacks capacity: it is avoided for a while (A-290)."""
SPOT_ROLE_FAILED = "SpotSLRCreationFailed"
UNAUTHORIZED = "Unauthorized"
LAUNCH_FAILED = "LaunchFailed"
"""The reason for all that has no other (A-313)."""

_NO_RIGHTS = ("UnauthorizedOperation", "AccessDenied", "AuthFailure")
_BY_PART: tuple[tuple[str, str], ...] = (
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
    (NO_ADDRESSES, NO_ADDRESSES),
)
"""A part of the error's text, and the reason that it stands for."""
_NO_IMAGE_RIGHTS = "AMIAuthorizationFailure"
_OTHER_NETWORK = "SecurityGroupSubnetVPCMismatch"
LAUNCH_REASONS = frozenset(
    {SPOT_ROLE_FAILED, _NO_IMAGE_RIGHTS, UNAUTHORIZED, _OTHER_NETWORK, *(reason for _, reason in _BY_PART)}
)
"""All of them but LaunchFailed."""


def launch_reason(text: str) -> str:
    """The reason for an error's "code: message" text: the first that matches (A-299…A-313)."""
    if NO_SPOT_ROLE in text:
        return SPOT_ROLE_FAILED
    if any(code in text for code in _NO_RIGHTS):
        return _NO_IMAGE_RIGHTS if "Not authorized for images" in text else UNAUTHORIZED
    if "InvalidParameter" in text and "belong to different networks" in text:
        return _OTHER_NETWORK
    return next((reason for part, reason in _BY_PART if part in text), LAUNCH_FAILED)
