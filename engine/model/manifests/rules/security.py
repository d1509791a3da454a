"""What the API server refuses in the security contexts of pods and containers beyond their schema, as a table.

A value of the wrong type is passed over: the schema reports it.
"""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.manifests.rules.checks import (
    INT32,
    Check,
    between,
    both,
    needs,
    one_of,
    one_of_given,
    relative_path,
    unique,
)
from kerf.engine.model.manifests.violations import Report

_IDS = between(0, INT32)
_NOT_OF_NODES = ("RuntimeDefault", "Unconfined")
_PROFILES = one_of("Localhost", *_NOT_OF_NODES)
_SYSCTL_PART = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"({_SYSCTL_PART}[./])*{_SYSCTL_PART}")
_LONGEST_SYSCTL = 253
_ALL_OF_ROOT = "CAP_SYS_ADMIN"


def _profile(report: Report, path: str, value: Any) -> None:
    """Report a profile of the node that is not named, or is named for one that is not the node's."""
    if not isinstance(value, dict):
        return
    kind, name = value.get("type"), value.get("localhostProfile")
    if kind == "Localhost" and name in (None, ""):
        report.add("KERF304", f"{path}.localhostProfile", "localhostProfile is required", "Name the node's profile")
    elif kind in _NOT_OF_NODES and name is not None:
        message = "localhostProfile is for the type Localhost"
        report.add("KERF305", f"{path}.localhostProfile", message, "Leave it out, or write type: Localhost")


def _escalation(report: Report, path: str, value: Any) -> None:
    """Report a container that may not escalate its privileges, and has them all."""
    if not isinstance(value, dict) or value.get("allowPrivilegeEscalation") is not False:
        return
    capabilities = value.get("capabilities")
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    beside = "privileged" if value.get("privileged") is True else ""
    if isinstance(added, list) and _ALL_OF_ROOT in added:
        beside = _ALL_OF_ROOT
    if beside:
        message = f"allowPrivilegeEscalation is false beside {beside}"
        report.add("KERF309", f"{path}.allowPrivilegeEscalation", message, "Leave out one of the two")


def _sysctl(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and value and not (len(value) <= _LONGEST_SYSCTL and _SYSCTL.fullmatch(value)):
        hint = "Lower-case letters, digits, - and _ between dots, such as net.core.somaxconn"
        report.add("KERF312", path, f"{value[:_LONGEST_SYSCTL]!r} is not the name of a sysctl", hint)


_OF_BOTH: dict[str, Check] = {
    **dict.fromkeys(("runAsUser", "runAsGroup"), _IDS),
    **{f"{kind}.type": _PROFILES for kind in ("seccompProfile", "appArmorProfile")},
    **dict.fromkeys(("seccompProfile", "appArmorProfile"), both(needs("type"), _profile)),
    "seccompProfile.localhostProfile": relative_path,
}
RULES_OF_PODS: dict[str, Check] = {
    f"securityContext.{field}": check
    for field, check in {
        **_OF_BOTH,
        "fsGroup": _IDS,
        "supplementalGroups[]": _IDS,
        "fsGroupChangePolicy": one_of_given("OnRootMismatch", "Always"),
        "supplementalGroupsPolicy": one_of_given("Merge", "Strict"),
        "seLinuxChangePolicy": one_of_given("MountOption", "Recursive"),
        "sysctls": unique,
        "sysctls[]": needs("name"),
        "sysctls[].name": _sysctl,
    }.items()
}
RULES_OF_CONTAINERS: dict[str, Check] = {
    ".securityContext": _escalation,
    **{f".securityContext.{field}": check for field, check in _OF_BOTH.items()},
    ".securityContext.procMount": one_of_given("Default", "Unmasked"),
}
