"""Karpenter's names for why EC2 refuses a launch (A-299 to A-313): reasons of conditions, labels of metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

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


INSUFFICIENT_CAPACITY, CLASS_NOT_READY, OTHER_ERROR = "insufficient-capacity", "nodeclass-not-ready", "error"
_NOTHING_LEFT = ("insufficient capacity", "all requested instance types were unavailable")
_NOT_READY = re.compile(r"node ?class.{0,200}not ?ready", re.IGNORECASE | re.DOTALL)
_FLEET_ERRORS = "with fleet error(s), "
_FLEET_ERROR = re.compile(r"(?:^|; |, )([A-Z][A-Za-z]+(?:\.[A-Za-z]+)*): ")
_OFFERING = re.compile(r"sufficient (\S{1,60}) capacity in the Availability Zone you requested \((\S{1,60})\)")


class FleetError(NamedTuple):
    """One of the errors that a message of Karpenter's lists: EC2's code, and type and zone if EC2 names them."""

    code: str
    instance_type: str = ""
    zone: str = ""


def launch_failure_kind(text: str) -> str:
    """The kind, as in LaunchAnswered, of a failed launch of which only Karpenter's message is known (F-68)."""
    if any(part in text for part in _NOTHING_LEFT) or any(error.code in NO_CAPACITY for error in fleet_errors(text)):
        return INSUFFICIENT_CAPACITY
    return CLASS_NOT_READY if _NOT_READY.search(text) else OTHER_ERROR


def fleet_errors(text: str) -> tuple[FleetError, ...]:
    """The errors of offerings that a message of Karpenter's lists, each once; none if it lists none."""
    _, found, errors = text.partition(_FLEET_ERRORS)
    if not found:
        return ()
    starts = [*_FLEET_ERROR.finditer(errors)]
    ends = [*(match.start() for match in starts[1:]), len(errors)]
    told = []
    for match, end in zip(starts, ends, strict=True):
        offering = _OFFERING.search(errors, match.end(), end)
        told.append(FleetError(match[1], *(offering.groups() if offering else ())))
    return tuple(dict.fromkeys(told))
