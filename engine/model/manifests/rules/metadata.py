"""What the API server refuses in the metadata of any object beyond its schema: labels, annotations, finalizers, owners.

A value of the wrong type is passed over: the schema reports it.
"""

from __future__ import annotations

from typing import Any

from kerf.engine.model.karpenter.nodepool_validation import qualified
from kerf.engine.model.manifests.rules.checks import check_labels
from kerf.engine.model.manifests.violations import Report

_MOST_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations together, keys and values."""
_OWNED_BY = ("apiVersion", "kind", "name", "uid")
_HOW_TO_DELETE = ("orphan", "foregroundDeletion")
"""Finalizers of which an object has one at most."""
_WITHOUT_DOMAIN = ("kubernetes", *_HOW_TO_DELETE)
"""The finalizers without a domain that Kubernetes knows."""
_HINT = "Letters, digits, -, _ and ., at most 63, with or without a DNS domain and / before them"


def check_metadata_rules(metadata: Any, path: str, report: Report, *, with_domains: bool = False) -> None:
    """Report what an object of any kind cannot have in its metadata. `with_domains`: finalizers that Kubernetes does
    not know need a domain."""
    check_template_metadata(metadata, path, report)
    if isinstance(metadata, dict):
        _check_finalizers(metadata.get("finalizers"), f"{path}.finalizers", report, with_domains)
        _check_owners(metadata.get("ownerReferences"), f"{path}.ownerReferences", report)


def check_template_metadata(metadata: Any, path: str, report: Report) -> None:
    """Report what pods of a template cannot have in their metadata. What else stands there is not looked at."""
    if isinstance(metadata, dict):
        check_labels(report, f"{path}.labels", metadata.get("labels"))
        _check_annotations(metadata.get("annotations"), f"{path}.annotations", report)


def _check_annotations(value: Any, path: str, report: Report) -> None:
    found = value if isinstance(value, dict) else {}
    for key in found:
        if isinstance(key, str) and not qualified(key.lower()):
            report.add("KERF312", f"{path}[{key}]", f"{key!r} is not the key of an annotation", _HINT)
    texts = [part for pair in found.items() for part in pair if isinstance(part, str)]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if size > _MOST_ANNOTATIONS:
        message = f"All annotations together have at most {_MOST_ANNOTATIONS} bytes, not {size}"
        report.add("KERF309", path, message, "Keep what is long in a ConfigMap")


def _check_finalizers(value: Any, path: str, report: Report, with_domains: bool) -> None:
    found = [(index, name) for index, name in enumerate(_entries(value)) if isinstance(name, str)]
    for index, name in found:
        if not qualified(name):
            report.add("KERF312", f"{path}[{index}]", f"{name!r} is not the name of a finalizer", _HINT)
        elif with_domains and "/" not in name and name not in _WITHOUT_DOMAIN:
            hint = f"Write a domain and / before it; only {', '.join(_WITHOUT_DOMAIN)} have none"
            report.add("KERF312", f"{path}[{index}]", f"The finalizer {name!r} has no domain", hint)
    if {name for _, name in found}.issuperset(_HOW_TO_DELETE):
        report.add("KERF309", path, f"An object has at most one of {' and '.join(_HOW_TO_DELETE)}")


def _check_owners(value: Any, path: str, report: Report) -> None:
    owners = [(index, owner) for index, owner in enumerate(_entries(value)) if isinstance(owner, dict)]
    for index, owner in owners:
        for name in _OWNED_BY:
            if owner.get(name) == "":
                report.add("KERF304", f"{path}[{index}].{name}", "The text may not be empty")
    once = [(index, owner) for index, owner in owners if value.index(owner) == index]  # what stands twice is dropped
    in_control = [index for index, owner in once if owner.get("controller") is True]
    for index in in_control[1:]:
        at = f"{path}[{index}].controller"
        report.add("KERF309", at, f"An object has one controller, and that is {path}[{in_control[0]}]")


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
