"""Refuses names of objects that the API server refuses, for the kinds that Kubernetes itself defines.

A name of the wrong type, or none, is passed over: the schema and the decoding report it.
"""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.manifests.violations import Report

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_AS_LABEL, _AS_DOMAIN = re.compile(_LABEL), re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_LABEL, _LONGEST_DOMAIN = 63, 253
_AT_ITS_END = re.compile(r".-$")
"""What the API server does not look at in a generateName: letters and digits follow it."""
_LONGEST_OF_CRON_JOBS = 52
"""A CronJob's Jobs are named after it, with eleven characters more."""
_NAMED_AS_LABELS = frozenset({"Namespace", "Service"})
_WITHOUT_NAMESPACE = frozenset(
    {"Namespace", "Node", "PersistentVolume", "PriorityClass", "CSINode", "StorageClass", "VolumeAttachment"}
)
_NAMED_AS_PATHS = "PodDisruptionBudget"
"""The kind of which the API server takes any name that may stand in a path."""


def check_label_name(report: Report, path: str, value: Any) -> None:
    """Report a text that is no DNS label, which names of namespaces, containers and volumes are."""
    if isinstance(value, str) and value and not _is_name(value, _AS_LABEL, _LONGEST_LABEL):
        hint = f"Lower-case letters, digits and -, at most {_LONGEST_LABEL}"
        report.add("KERF312", path, f"{value[:_LONGEST_DOMAIN]!r} is not a name", hint)


def check_names(kind: str, document: dict[str, Any], report: Report) -> None:
    """Report a name, or a namespace, that an object of this kind cannot have."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict | None):
        return
    metadata = metadata or {}
    if metadata.get("name") in (None, ""):
        report.add("KERF304", "metadata.name", "An object needs a name")
    if kind not in _WITHOUT_NAMESPACE:  # of others the API server drops it
        check_label_name(report, "metadata.namespace", metadata.get("namespace"))
    begin = metadata.get("generateName")
    if kind == _NAMED_AS_PATHS:
        _check_path_name(report, begin, "metadata.generateName")
    elif isinstance(begin, str) and begin:
        check_domain_name(report, "metadata.generateName", _AT_ITS_END.sub("a", begin))
    name = metadata.get("name")
    if kind == _NAMED_AS_PATHS:
        _check_path_name(report, name)
        return
    if kind in _NAMED_AS_LABELS:
        check_label_name(report, "metadata.name", name)
        return
    longest = _LONGEST_OF_CRON_JOBS if kind == "CronJob" else _LONGEST_DOMAIN
    if name:
        check_domain_name(report, "metadata.name", name, longest)


def _check_path_name(report: Report, name: Any, path: str = "metadata.name") -> None:
    if isinstance(name, str) and (name in (".", "..") or "/" in name or "%" in name):
        report.add("KERF312", path, f"{name!r} is not a name", "It may not be . or .., or contain / or %")


def check_domain_name(report: Report, path: str, value: Any, longest: int = _LONGEST_DOMAIN) -> None:
    """Report a text that is no DNS subdomain, which names of Nodes and most other objects are."""
    if isinstance(value, str) and not _is_name(value, _AS_DOMAIN, longest):
        hint = f"Lower-case letters, digits, - and ., at most {longest}"
        report.add("KERF312", path, f"{value[:_LONGEST_DOMAIN]!r} is not a name", hint)


def _is_name(text: str, form: re.Pattern[str], longest: int) -> bool:
    return len(text) <= longest and form.fullmatch(text) is not None
