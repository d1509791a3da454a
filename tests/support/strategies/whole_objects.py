"""Objects of the API with every field that their schema has, and a secret of its own in each text."""

from __future__ import annotations

from itertools import count
from typing import Any

from kerf.engine.model.crds.schema import Schema

_RESOURCES = ("requests", "limits", "capacity", "allocatable", "overhead")
_OPERATORS = {"tolerations": "Equal"}
READ_ANNOTATIONS = ("karpenter.sh/do-not-disrupt", "resource.kubernetes.io/pod-claim-name")
_TIME = "2026-01-01T00:00:00Z"


class WholeObjects:
    """Makes the objects. `where`: the path of each secret that was put into one."""

    def __init__(self) -> None:
        self.where: dict[str, str] = {}
        self._numbers = count(1)

    def secret(self, path: str) -> str:
        text = f"qz{next(self._numbers):05d}xy"
        self.where[text] = path
        return text

    def document(self, api: str, schema: Schema) -> dict[str, Any]:
        """Returns one object of a kind: apiVersion and kind, and all that the schema has."""
        version, _, kind = api.rpartition("/")
        return {**self._value(schema, "", frozenset()), "apiVersion": version, "kind": kind}

    def _value(self, schema: Schema, path: str, within: frozenset[int]) -> Any:
        name = path.rpartition(".")[2].removesuffix("[]")
        if id(schema) in within:
            return {}
        if schema.type == "array":
            assert schema.items is not None
            return [self._value(schema.items, f"{path}[]", within)]
        if schema.type in ("object", ""):
            return self._object(schema, path, name, within | {id(schema)})
        if schema.type == "string":
            return self._text(schema, path, name)
        plain: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": True}
        return plain[schema.type] if schema.type in plain else self.secret(path)

    def _text(self, schema: Schema, path: str, name: str) -> str:
        if schema.format == "date-time" or name.endswith("Timestamp"):
            return _TIME
        if name == "operator":
            return next((operator for part, operator in _OPERATORS.items() if part in path), "In")
        return self.secret(path)

    def _object(self, schema: Schema, path: str, name: str, within: frozenset[int]) -> dict[str, Any]:
        if name in _RESOURCES:
            return {"cpu": "1", f"{self.secret(path)}.example/x": "1"}
        if name == "annotations":
            read = {key: self.secret(f"{path}[{key}]") for key in READ_ANNOTATIONS}
            return {**read, self.secret(path): self.secret(path)}
        if schema.values is not None:
            return {self.secret(path): self._value(schema.values, path, within)}
        if not schema.properties:
            return {self.secret(path): self.secret(path)}
        return {
            field: self._value(part, f"{path}.{field}" if path else field, within)
            for field, part in schema.properties.items()
        }
