"""What the API server demands of the metadata of a custom resource, whatever its definition says."""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.crds.check import check
from kerf.engine.model.crds.schema import Schema, flag, integer, list_of, map_of, object_of, text
from kerf.engine.model.manifests.rules.metadata import check_metadata_rules
from kerf.engine.model.manifests.rules.names import check_label_name
from kerf.engine.model.manifests.violations import Report

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
_TIMES = ("creationTimestamp", "deletionTimestamp")
_OWNED_BY = ("apiVersion", "kind", "name", "uid")
_OWNER = object_of(
    {**dict.fromkeys(_OWNED_BY, text()), "controller": flag(), "blockOwnerDeletion": flag()}, required=_OWNED_BY
)
_METADATA = object_of(
    {
        **dict.fromkeys(_TEXTS, text()),
        **dict.fromkeys(_TIMES, text(format="date-time")),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), integer()),
        **dict.fromkeys(("labels", "annotations"), map_of(text())),
        "finalizers": list_of(text()),
        "ownerReferences": list_of(_OWNER),
        "managedFields": list_of(Schema(type="object", open=True)),
    }
)


def check_metadata(metadata: Any, report: Report, *, namespaced: bool, strict: bool) -> None:
    """Reports what the API server would refuse; `strict`: an unknown field, too. An object that is in no namespace may
    name any: it is dropped."""
    metadata = {} if metadata is None else metadata
    check(_METADATA, metadata, report, "metadata", strict=strict)
    if not isinstance(metadata, dict):
        return
    check_metadata_rules(metadata, "metadata", report)
    if namespaced:
        check_label_name(report, "metadata.namespace", metadata.get("namespace"))
    _check_name(metadata.get("name"), metadata.get("generateName"), report)


def _check_name(name: Any, generated_from: Any, report: Report) -> None:
    if name is None and generated_from:
        return
    if not name:
        report.add("KERF304", "metadata.name", "An object needs a name")
    elif isinstance(name, str) and (len(name) > 253 or not _NAME.fullmatch(name)):
        hint = "Lower-case letters, digits, - and ., at most 253"
        report.add("KERF312", "metadata.name", f"{name[:253]!r} is not a name", hint)
