"""Namespaces, whose labels affinity terms select."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.names import LabelMap, NamespaceName


class Namespace(Struct, frozen=True, omit_defaults=True):
    name: NamespaceName
    labels: LabelMap = {}
