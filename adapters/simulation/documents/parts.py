"""Parts of a document that have to be mappings where they are there: an empty one stands for any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]


def part_of(document: Document, key: str) -> Document:
    part = document.get(key)
    return part if isinstance(part, Mapping) else {}


def template_of(document: Document) -> Document:
    """The pod template of a workload."""
    return part_of(part_of(document, "spec"), "template")


def annotations_of(document: Document) -> Document:
    return part_of(part_of(document, "metadata"), "annotations")
