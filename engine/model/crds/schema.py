"""Declares fields of the API, and renders them for a CustomResourceDefinition.

A `Schema` holds both what the API server enforces (OpenAPI keywords and CEL rules) and how a violation is reported
offline (code, message, hint). A `Rule` is CEL with its equivalent in Python: tests/controlplane compare the two on the
API server.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType


class Fault(NamedTuple):
    """A violation of a rule. `at` is the path below the field that has the rule: "", ".key", "[3].values"."""

    at: str
    code: str
    message: str
    hint: str = ""


class Rule(Struct, frozen=True):
    """A rule on a value. `faults` takes a value of the right types and yields why CEL would refuse it.

    CEL also refuses a value when a rule fails with an error. Without `faults` it is a rule about updates, which
    compares with `oldSelf`.
    """

    cel: str
    message: str
    faults: Callable[[Any], Iterable[Fault]] | None = None


class Schema(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One field. `type` is OpenAPI's, or "quantity" (an integer or a string), or "amount" (any number or a string).

    The other names are OpenAPI's, except for maps: `values` is the schema of a map's values, and `open` keeps unknown
    fields. `what` ends the sentence "… is not" if the pattern does not match, and `code` is the code of that violation.
    """

    type: str
    description: str = ""
    properties: dict[str, Schema] = {}
    required: tuple[str, ...] = ()
    values: Schema | None = None
    items: Schema | None = None
    enum: tuple[str, ...] = ()
    pattern: str = ""
    format: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    default: Any = UNSET
    rules: tuple[Rule, ...] = ()
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    open: bool = False
    what: str = "of this form"
    code: str = "KERF312"
    hint: str = ""
    missing: str = ""
    """The hint if the field is required and absent."""
    later: dict[str, str] = {}
    """Fields that this version does not have yet, with the hint for who writes them."""


QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$"

_KEYWORDS = {
    "description": "description", "pattern": "pattern", "format": "format", "minimum": "minimum", "maximum": "maximum",
    "min_length": "minLength", "max_length": "maxLength", "min_items": "minItems", "max_items": "maxItems",
    "max_properties": "maxProperties", "list_type": "x-kubernetes-list-type", "map_type": "x-kubernetes-map-type",
}  # fmt: skip


def text(description: str = "", **keywords: Any) -> Schema:
    return Schema(type="string", description=description, **keywords)


def integer(description: str = "", **keywords: Any) -> Schema:
    return Schema(type="integer", description=description, **keywords)


def flag(description: str = "", **keywords: Any) -> Schema:
    return Schema(type="boolean", description=description, **keywords)


def quantity(description: str = "") -> Schema:
    return Schema(
        type="quantity", description=description, pattern=QUANTITY, what="a quantity", code="KERF306",
        hint='Write a number with or without a unit: "500m", "1.5Gi", 3',
    )  # fmt: skip


def object_of(properties: dict[str, Schema], description: str = "", **keywords: Any) -> Schema:
    return Schema(type="object", description=description, properties=properties, **keywords)


def map_of(values: Schema, description: str = "", **keywords: Any) -> Schema:
    return Schema(type="object", description=description, values=values, **keywords)


def list_of(items: Schema, description: str = "", **keywords: Any) -> Schema:
    return Schema(type="array", description=description, items=items, **keywords)


def openapi(schema: Schema) -> dict[str, Any]:
    """Returns the schema as a structural schema of a CustomResourceDefinition."""
    found: dict[str, Any] = {}
    if schema.type == "quantity":
        found |= {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    else:
        found["type"] = schema.type
    for name, keyword in _KEYWORDS.items():
        if (value := getattr(schema, name)) not in {"", None}:
            found[keyword] = value
    if schema.properties:
        found["properties"] = {name: openapi(field) for name, field in sorted(schema.properties.items())}
    if schema.required:
        found["required"] = sorted(schema.required)
    if schema.values is not None:
        found["additionalProperties"] = openapi(schema.values)
    if schema.items is not None:
        found["items"] = openapi(schema.items)
    if schema.enum:
        found["enum"] = list(schema.enum)
    if not isinstance(schema.default, UnsetType):
        found["default"] = schema.default
    if schema.map_keys:
        found["x-kubernetes-list-map-keys"] = list(schema.map_keys)
    if schema.open:
        found["x-kubernetes-preserve-unknown-fields"] = True
    if schema.rules:
        found["x-kubernetes-validations"] = [{"rule": rule.cel, "message": rule.message} for rule in schema.rules]
    return found


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern of OpenAPI with Go's meaning: it may match a part of the text, and `$` is the very end of the
    text.
    """
    return re.compile(re.sub(r"\$(?=\)*$|\||\))", r"\\Z", pattern), re.ASCII)


class FieldPlace(NamedTuple):
    """The path of a field ("spec.template.spec.taints", "spec.volumes[].name"), and its schema."""

    path: str
    schema: Schema


class FieldPlaces:
    """Finds the fields of a schema by name. They are collected when the first one is asked for."""

    def __init__(self, schema: Schema, path: str = "") -> None:
        self._schema, self._path = schema, path

    def where(self, name: str) -> list[FieldPlace]:
        """All places of a field of this name, but for those in a status, which nobody writes."""
        return self._by_name.get(name, [])

    @cached_property
    def _by_name(self) -> dict[str, list[FieldPlace]]:
        found: dict[str, list[FieldPlace]] = defaultdict(list)
        left = [FieldPlace(self._path, self._schema)]
        while left:
            path, schema = left.pop()
            for name, field in schema.properties.items():
                if (place := FieldPlace(below(path, name), field)).path != "status":
                    found[name].append(place)
                    left.append(place)
            if schema.items is not None:
                left.append(FieldPlace(f"{path}[]", schema.items))
        return found


def below(path: str, name: str) -> str:
    """The path of a field of what stands at a path."""
    return f"{path}.{name}" if path else name
