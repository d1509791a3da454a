"""Makes schemas of what Kubernetes publishes, for the kinds that Kubernetes itself defines.

The document is adapters/kubernetes/data/schemas.json, which deploy/make_schemas.py writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.engine.errors import InputError
from kerf.engine.model.crds.schema import Schema


class UnknownVersion(InputError):
    """The version of Kubernetes is none that the published schemas know."""

    code = "KERF346"


class PublishedSchemas:
    """The schemas of one version of Kubernetes, made when they are asked for.

    `version` is written "1.34"; "" takes the newest. Raises `UnknownVersion`.
    """

    def __init__(self, document: Mapping[str, Any], version: str = "") -> None:
        self._document = document
        self._made: dict[str, Schema] = {}
        self.version = _numbers(document, version)

    def schema(self, api: str) -> Schema | None:
        """The schema of a kind ("apps/v1/Deployment"); None of one that is not among them."""
        name = self._document["kinds"].get(api)
        return self._definition(name) if name else None

    def _definition(self, name: str) -> Schema:
        if name not in self._made:
            later = {
                field: f"It came with Kubernetes {since}"
                for field, since in self._document["since"].get(name, {}).items()
                if _parsed(since) > self.version
            }
            self._made[name] = self._schema(self._document["definitions"][name], later)
        return self._made[name]

    def _schema(self, document: Mapping[str, Any], later: Mapping[str, str] | None = None) -> Schema:
        """`later`: fields that this version does not have yet, with what to say of them."""
        if "$ref" in document:
            return self._definition(document["$ref"])
        later = later or {}
        fields = {name: field for name, field in document.get("properties", {}).items() if name not in later}
        return Schema(
            type=document["type"],
            format=document.get("format", ""),
            properties={name: self._schema(field) for name, field in fields.items()},
            required=tuple(document.get("required", ())),
            values=self._schema(document["values"]) if "values" in document else None,
            items=self._schema(document["items"]) if "items" in document else None,
            open=document["type"] == "object" and not fields,
            later=dict(later),
        )


def _numbers(document: Mapping[str, Any], version: str) -> tuple[int, ...]:
    oldest, newest = document["oldest"], document["newest"]
    try:
        asked = _parsed((version or newest).removeprefix("v"))[:2]
    except ValueError:
        asked = ()
    if len(asked) < 2 or not _parsed(oldest) <= asked:
        hint = f"Write a version from {oldest} to {newest}, such as {newest}"
        raise UnknownVersion(f"{version!r} is no version of Kubernetes that kerf knows", hint=hint)
    return asked


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
