"""What the API server refuses in the environment of a container beyond its schema, as a table.

A value of the wrong type is passed over: the schema reports it.
"""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.manifests.rules.checks import Check, domain_name, needs, one_kind_of
from kerf.engine.model.manifests.rules.names import check_domain_name
from kerf.engine.model.manifests.violations import Report

_NAME = re.compile(r"[ -<>-~]+")
"""What is printed of ASCII, but no =."""
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_ONE_LABEL = re.compile(r"metadata\.(labels|annotations)\['.*'\]")
_AMOUNTS = tuple(
    f"{holder}.{resource}" for holder in ("limits", "requests") for resource in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_KEYS = ("configMapKeyRef", "secretKeyRef")


def _variable(report: Report, path: str, value: Any) -> None:
    """Report a variable without a name, with two values, or with none of the sources that it names."""
    needs("name")(report, path, value)
    source = value.get("valueFrom") if isinstance(value, dict) else None
    if not isinstance(source, dict):
        return
    if value.get("value"):
        report.add("KERF309", f"{path}.valueFrom", "valueFrom stands beside value", "Leave out one of the two")
    elif len(given := [name for name, part in source.items() if part is not None]) != 1:
        hint = "It needs one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"
        report.add("KERF309", f"{path}.valueFrom", f"valueFrom has {len(given)} sources", hint)


def _name(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and value and not _NAME.fullmatch(value):
        report.add("KERF312", path, f"{value!r} is not the name of a variable", "Letters and digits of ASCII, and no =")


def _field_path(report: Report, path: str, value: Any) -> None:
    """Report a field of the pod that no variable can hold."""
    if isinstance(value, str) and value and value not in _FIELDS and not _ONE_LABEL.fullmatch(value):
        hint = is_it(did_you_mean(value, _FIELDS)) or f"Write one of {', '.join(_FIELDS)}, or metadata.labels['KEY']"
        report.add("KERF305", path, f"{value!r} is no field that a variable can hold", hint)


def _amount(report: Report, path: str, value: Any) -> None:
    """Report an amount of a container that no variable can hold."""
    if isinstance(value, str) and value and not value.startswith(_HUGE_PAGES):
        report.one_of(path, value, _AMOUNTS)


def _key(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and value and not _KEY.fullmatch(value):
        report.add("KERF312", path, f"{value!r} is not a key of a ConfigMap or a Secret", "Letters, digits, -, _ and .")


def _object(report: Report, path: str, value: Any) -> None:
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        check_domain_name(report, f"{path}.name", value["name"])
    needs("key")(report, path, value)


RULES_OF_ENVIRONMENTS: dict[str, Check] = {
    ".env[]": _variable,
    ".env[].name": _name,
    ".env[].valueFrom.fieldRef.fieldPath": _field_path,
    ".env[].valueFrom.resourceFieldRef.resource": _amount,
    **{f".env[].valueFrom.{source}": _object for source in _KEYS},
    **{f".env[].valueFrom.{source}.key": _key for source in _KEYS},
    ".envFrom[]": one_kind_of("It", "configMapRef", "secretRef"),
    ".envFrom[].prefix": _name,
    **{f".envFrom[].{source}": needs("name") for source in ("configMapRef", "secretRef")},
    **{f".envFrom[].{source}.name": domain_name for source in ("configMapRef", "secretRef")},
}
