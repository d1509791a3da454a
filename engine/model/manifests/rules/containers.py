"""What the API server refuses in a container of a pod beyond its schema, as a table.

A value of the wrong type is passed over: the schema reports it. An empty text counts as absent, as in Go.
"""

from __future__ import annotations

from typing import Any

from kerf.engine.model.manifests.rules.checks import (
    INT32,
    Check,
    between,
    domain_name,
    filled,
    needs,
    one_kind_of,
    one_of,
    port_name,
)
from kerf.engine.model.manifests.rules.names import check_label_name
from kerf.engine.model.manifests.violations import Report

CONTAINERS = ("containers", "initContainers")
_PORT = 65_535
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_ONCE = ("livenessProbe", "startupProbe")
"""Probes of which one success is enough."""


def _value_source(report: Report, path: str, value: Any) -> None:
    """Report an environment variable with two values, or with none of the sources that it names."""
    source = value.get("valueFrom") if isinstance(value, dict) else None
    if not isinstance(source, dict):
        return
    if value.get("value"):
        report.add("KERF309", f"{path}.valueFrom", "valueFrom stands beside value", "Leave out one of the two")
    elif len(given := [name for name, part in source.items() if part is not None]) != 1:
        hint = "It needs one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"
        report.add("KERF309", f"{path}.valueFrom", f"valueFrom has {len(given)} sources", hint)


def _port(report: Report, path: str, value: Any) -> None:
    """Report a port, by number or by name, that none is."""
    between(1, _PORT)(report, path, value)
    port_name(report, path, value)


def _once(report: Report, path: str, value: Any) -> None:
    between(0, 1)(report, path, value)


def _mounts(report: Report, path: str, value: Any) -> None:
    """Report mounts without a path, or at the path of another one."""
    seen: dict[str, int] = {}
    for number, mount in enumerate(value if isinstance(value, list) else ()):
        at = mount.get("mountPath") if isinstance(mount, dict) else None
        if at in (None, "") and isinstance(mount, dict):
            report.add("KERF304", f"{path}[{number}].mountPath", "mountPath is required")
        elif isinstance(at, str) and seen.setdefault(at, number) != number:
            report.add("KERF321", f"{path}[{number}].mountPath", f"{at} stands at {path}[{seen[at]}]")


_TARGETS = ("httpGet", "tcpSocket")
_OF_BOTH: dict[str, Check] = {
    ".exec": needs("command"),
    ".exec.command": filled,
    **{f".{target}.port": _port for target in _TARGETS},
    ".httpGet.scheme": one_of("HTTP", "HTTPS"),
}
_OF_PROBES: dict[str, Check] = {
    "": one_kind_of("The probe", "exec", *_TARGETS, "grpc"),
    **_OF_BOTH,
    ".grpc.port": between(1, _PORT),
    **{f".{field}": between(0, INT32) for field in _COUNTS},
}
_OF_HOOKS: dict[str, Check] = {
    "": one_kind_of("The hook", "exec", *_TARGETS, "sleep"),
    **_OF_BOTH,
}
RULES_OF_CONTAINERS: dict[str, Check] = {
    ".name": check_label_name,
    ".imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    ".terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    ".restartPolicy": one_of("Always", "OnFailure", "Never"),
    ".env[]": _value_source,
    ".envFrom[]": one_kind_of("It", "configMapRef", "secretRef"),
    **{f".envFrom[].{source}.name": domain_name for source in ("configMapRef", "secretRef")},
    ".ports[].containerPort": between(1, _PORT),
    ".ports[].hostPort": between(0, _PORT),  # 0 is none
    ".ports[].protocol": one_of("TCP", "UDP", "SCTP"),
    ".ports[].name": port_name,
    ".volumeMounts": _mounts,
    ".volumeMounts[].mountPropagation": one_of("None", "HostToContainer", "Bidirectional"),
    ".volumeMounts[].recursiveReadOnly": one_of("Disabled", "IfPossible", "Enabled"),
    **{f".{probe}{field}": check for probe in (*_ONCE, "readinessProbe") for field, check in _OF_PROBES.items()},
    **{f".{probe}.successThreshold": _once for probe in _ONCE},
    **{f".lifecycle.{hook}{field}": check for hook in ("postStart", "preStop") for field, check in _OF_HOOKS.items()},
    **{f".securityContext.{field}": between(0, INT32) for field in ("runAsUser", "runAsGroup")},
}
"""What each field of a container has to be; `[]` stands for every entry of a list."""
