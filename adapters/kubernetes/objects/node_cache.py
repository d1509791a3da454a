"""Keeps the lists of each Node that a patch replaces as a whole: a write needs them beside the engine's own Node."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from kerf.engine.record.errors import UNDECODABLE


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""
    labels: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []


class _Spec(Struct):
    taints: list[dict[str, Any]] = []


class NodeParts(Struct):
    """The lists as they stand in the object; taints with all their fields."""

    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)


_read = msgspec.json.Decoder(NodeParts).decode


def read_parts(data: bytes | Raw) -> NodeParts:
    """Reads the lists from a Node's JSON. Raises msgspec.DecodeError."""
    return _read(data)


class NodeCache:
    """Keeps these lists of all Nodes from the watch, so that a write takes one request instead of two."""

    def __init__(self) -> None:
        self._parts: dict[str, NodeParts] = {}

    def seen(self, name: str, data: Raw | None) -> None:
        """Takes a Node's bytes from a reflector (its `raw`), or None when the Node is gone."""
        self._parts.pop(name, None)
        if data is not None:
            self.put(name, bytes(data))

    def put(self, name: str, data: bytes) -> None:
        try:
            self._parts[name] = read_parts(data)
        except UNDECODABLE:
            self._parts.pop(name, None)

    def get(self, name: str) -> NodeParts | None:
        return self._parts.get(name)

    def drop(self, name: str) -> None:
        self._parts.pop(name, None)
