"""What the API server refuses in a container of a pod beyond its schema, as a table.

A value of the wrong type is passed over: the schema reports it. An empty text counts as absent, as in Go.
"""

from __future__ import annotations

from typing import Any

from kerf.engine.model.manifests.rules import security
from kerf.engine.model.manifests.rules.checks import (
    INT32,
    INT64,
    Check,
    between,
    both,
    filled,
    needs,
    one_kind_of,
    one_of,
    one_of_given,
    port_name,
    relative_path,
    unique,
    unique_by,
    values_at,
)
from kerf.engine.model.manifests.rules.environment import RULES_OF_ENVIRONMENTS
from kerf.engine.model.manifests.rules.names import check_label_name
from kerf.engine.model.manifests.violations import Report

CONTAINERS = ("containers", "initContainers")
_PORT = 65_535
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_ONCE = ("livenessProbe", "startupProbe")
"""Probes of which one success is enough."""


def _port(report: Report, path: str, value: Any) -> None:
    """Report a port, by number or by name, that none is."""
    between(1, _PORT)(report, path, value)
    port_name(report, path, value)


def _once(report: Report, path: str, value: Any) -> None:
    between(0, 1)(report, path, value)


def _never(report: Report, path: str, value: Any) -> None:
    """Report a time to end in, which a container has that a probe ends."""
    report.add("KERF305", path, "A readinessProbe ends no container", "Leave it out")


def _mounts(report: Report, path: str, value: Any) -> None:
    """Report mounts without a path, or at the path of another one."""
    seen: dict[str, int] = {}
    for number, mount in enumerate(value if isinstance(value, list) else ()):
        at = mount.get("mountPath") if isinstance(mount, dict) else None
        if at in (None, "") and isinstance(mount, dict):
            report.add("KERF304", f"{path}[{number}].mountPath", "mountPath is required")
        elif isinstance(at, str) and seen.setdefault(at, number) != number:
            report.add("KERF321", f"{path}[{number}].mountPath", f"{at} stands at {path}[{seen[at]}]")


def _mount(report: Report, path: str, value: Any) -> None:
    """Report a mount without a volume, of two parts of it at once, or to be read only in depth and not at all."""
    needs("name")(report, path, value)
    if not isinstance(value, dict):
        return
    if value.get("subPath") and value.get("subPathExpr"):
        report.add("KERF309", f"{path}.subPathExpr", "subPathExpr stands beside subPath", "Leave out one of the two")
    if value.get("recursiveReadOnly") in ("IfPossible", "Enabled"):
        at = f"{path}.recursiveReadOnly"
        if value.get("readOnly") is not True:
            report.add("KERF305", at, "recursiveReadOnly needs readOnly: true")
        elif value.get("mountPropagation") not in (None, "None"):
            report.add("KERF305", at, "recursiveReadOnly needs mountPropagation: None")


def _restarts(report: Report, path: str, value: Any) -> None:
    """Report rules of restarts that have no policy to depart from."""
    if isinstance(value, dict) and value.get("restartPolicyRules") and not value.get("restartPolicy"):
        hint = "The rules depart from it"
        report.add("KERF304", f"{path}.restartPolicy", "restartPolicyRules need a restartPolicy", hint)


def _shared_into_the_node(report: Report, path: str, value: Any) -> None:
    """Report mounts that would show on the node, by a container without the right to that."""
    context = value.get("securityContext") if isinstance(value, dict) else None
    if not isinstance(context, dict | None) or (context or {}).get("privileged") is True:
        return
    for at, propagation in values_at(value, "volumeMounts[].mountPropagation", path):
        if propagation == "Bidirectional":
            report.add("KERF305", at, "Bidirectional is for privileged containers", "Write HostToContainer")


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
    ".terminationGracePeriodSeconds": between(1, INT64),
}
_OF_HOOKS: dict[str, Check] = {
    "": one_kind_of("The hook", "exec", *_TARGETS, "sleep"),
    **_OF_BOTH,
}
RULES_OF_CONTAINERS: dict[str, Check] = {
    "": both(needs("name", "image"), _restarts, _shared_into_the_node),
    ".name": check_label_name,
    ".imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    ".terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    ".restartPolicy": one_of_given("Always", "OnFailure", "Never"),
    **RULES_OF_ENVIRONMENTS,
    ".restartPolicyRules[]": needs("exitCodes"),
    ".restartPolicyRules[].action": one_of_given("Restart", "RestartAllContainers"),
    ".restartPolicyRules[].exitCodes.operator": one_of_given("In", "NotIn"),
    ".resizePolicy": unique_by("resourceName"),
    ".resizePolicy[]": needs("resourceName", "restartPolicy"),
    ".resizePolicy[].resourceName": one_of("cpu", "memory"),
    ".resizePolicy[].restartPolicy": one_of("NotRequired", "RestartContainer"),
    ".ports": unique,
    ".ports[].containerPort": between(1, _PORT),
    ".ports[].hostPort": between(0, _PORT),  # 0 is none
    ".ports[].protocol": one_of("TCP", "UDP", "SCTP"),
    ".ports[].name": port_name,
    ".volumeMounts": _mounts,
    ".volumeMounts[]": _mount,
    ".volumeMounts[].subPath": relative_path,
    ".volumeMounts[].subPathExpr": relative_path,
    ".volumeMounts[].mountPropagation": one_of_given("None", "HostToContainer", "Bidirectional"),
    ".volumeMounts[].recursiveReadOnly": one_of_given("Disabled", "IfPossible", "Enabled"),
    ".volumeDevices[]": needs("name", "devicePath"),
    **{f".{probe}{field}": check for probe in (*_ONCE, "readinessProbe") for field, check in _OF_PROBES.items()},
    **{f".{probe}.successThreshold": _once for probe in _ONCE},
    ".readinessProbe.terminationGracePeriodSeconds": _never,
    **{f".lifecycle.{hook}{field}": check for hook in ("postStart", "preStop") for field, check in _OF_HOOKS.items()},
    **security.RULES_OF_CONTAINERS,
}
"""What each field of a container has to be; `[]` stands for every entry of a list."""
