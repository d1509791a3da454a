"""Namespaces, whose labels affinity terms select."""

from __future__ import annotations

from msgspec import Struct


class Namespace(Struct, frozen=True, omit_defaults=True):
    name: str
    labels: dict[str, str] = {}
