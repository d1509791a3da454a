"""Objects of Kubernetes with one field changed at random, made from the schema that an API server publishes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

Document = dict[str, Any]
Path = tuple[str | int, ...]
Schema = dict[str, Any]
TEXTS = (
    "", "a", "A_b", "a b", "a/b", "a.b/c", "x" * 64, "x" * 254, "-a", "1", "0", "-1", "metadata.name", "/abs", "é",
    "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "NoExecute", "Always", "Never",
    "OnFailure", "ReadWriteOnce", "TCP", "100m", "1Gi",
)  # fmt: skip
NUMBERS = (-1, 0, 1, 2, 3, 99, 100, 101, 65_535, 65_536, (1 << 31) - 1)
QUANTITIES = ("1", "0", "-1", "1Gi", "100m", "0.5", "1e3", "5E", 2, -2)
NUMBERS_OR_TEXTS = (-1, 0, 1, "0%", "50%", "101%", "abc", "http", "1")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "storage", "pods")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal")
OWN = {"name", "labels", "annotations", "generateName", "finalizers", "ownerReferences"}
"""What is changed of metadata. The API server sets the rest."""
FIXED = {"apiVersion", "kind", "status"}
_VALUES = re.compile(r'`"([^"]*)"`')
"""How descriptions list the values of a field."""
_DEEP = 5


class RandomObjects:
    """Makes them, of one kind or another. `components`: the schemas by name, as in /openapi/v3."""

    def __init__(self, components: Mapping[str, Schema], seed: int) -> None:
        self._components, self._random = components, Random(seed)

    def changed(self, base: Document, schema: Schema) -> tuple[str, Document]:
        """A copy of `base` with one field set, or taken away, and which one it is."""
        document = copy.deepcopy(base)
        path, field = self._random.choice(list(self._fields(schema, base, ())))
        _put(document, path, self._value(field, str(path[-1]), 2))
        return ".".join(map(str, path)), document

    def _fields(self, schema: Schema, value: Any, at: Path) -> Iterator[tuple[Path, Schema]]:
        """Every field that could be set, with its schema."""
        schema = self._resolved(schema)
        if isinstance(value, dict):
            named = schema.get("properties") or dict.fromkeys(value, schema.get("additionalProperties") or {})
            for name, field in named.items():
                if (at == () and name in FIXED) or (at == ("metadata",) and name not in OWN):
                    continue
                yield (*at, name), field
                if name in value:
                    yield from self._fields(field, value[name], (*at, name))
        elif isinstance(value, list):
            for number in range(len(value) + 1):
                yield (*at, number), schema["items"]
            for number, part in enumerate(value):
                yield from self._fields(schema["items"], part, (*at, number))

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema or "allOf" in schema:
            inner = schema["allOf"][0] if "allOf" in schema else self._components[schema["$ref"].rpartition("/")[2]]
            schema = {**inner, "description": schema.get("description", inner.get("description", ""))}
        return schema

    def _value(self, schema: Schema, name: str, depth: int) -> Any:
        """Something of the field's type, or None."""
        schema = self._resolved(schema)
        random, described = self._random, schema.get("description", "")
        if random.random() < 0.03:
            return None
        if "oneOf" in schema or schema.get("format") == "int-or-string":
            return random.choice(QUANTITIES if "number" in json.dumps(schema.get("oneOf", "")) else NUMBERS_OR_TEXTS)
        match schema.get("type"):
            case "string":
                known = _VALUES.findall(described) or (OPERATORS if name == "operator" else ())
                return random.choice(known if known and random.random() < 0.8 else TEXTS)
            case "integer" | "number":
                return random.choice(NUMBERS)
            case "boolean":
                return random.random() < 0.5
            case "array":
                made = [self._value(schema["items"], name, depth + 1) for _ in range(random.choice((0, 1, 1, 2)))]
                return [part for part in made if part is not None]
            case "object":
                return self._object(schema, name, depth)
            case _:
                return None

    def _object(self, schema: Schema, name: str, depth: int) -> Document:
        random, fields = self._random, schema.get("properties", {})
        if not fields and schema.get("additionalProperties"):
            keys = RESOURCES if name in ("requests", "limits", "capacity") else TEXTS
            named = [random.choice(keys) for _ in range(random.choice((0, 1, 2)))]
            return {key: self._value(schema["additionalProperties"], key, depth + 1) for key in named}
        share = 2 / len(fields) if depth < _DEEP and fields else 0.05
        chosen = [key for key in fields if key in schema.get("required", ()) or random.random() < share]
        made = {key: self._value(fields[key], key, depth + 1) for key in chosen}
        return {key: value for key, value in made.items() if value is not None}


def _put(document: Any, path: Path, value: Any) -> None:
    """Set a field, or take it away for None."""
    for step in path[:-1]:
        document = document[step]
    last = path[-1]
    if isinstance(document, list) and last == len(document):
        document.append(value)
    elif value is None:
        document.pop(last, None) if isinstance(document, dict) else document.pop(last)
    else:
        document[last] = value
