"""The schemas that Kubernetes publishes, read from the file that deploy/make_schemas.py writes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from kerf.engine.model.crds.published import PublishedSchemas


def published_schemas(version: str = "") -> PublishedSchemas:
    """The schemas of a version of Kubernetes ("1.34"); "" is the newest. Raises `UnknownVersion` (KERF346)."""
    return PublishedSchemas(_document(), version)


@cache
def _document() -> dict[str, Any]:
    data = files("kerf.adapters.kubernetes").joinpath("data/schemas.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Any])
