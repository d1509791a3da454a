"""Content addresses: equal content has the same digest in every process and on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def content(value: Struct | Mapping[str, Any]) -> tuple[str, bytes]:
    """Returns the digest of an object's canonical MessagePack bytes (32 hex digits of BLAKE2b), and those bytes."""
    encoded = _encoder.encode(value)
    return blake2b(encoded, digest_size=16).hexdigest(), encoded


def deviation(value: Struct) -> str:
    """Returns a digest (32 hex digits) of the fields that differ from their defaults.

    So a recorded value keeps its digest when its struct gets a further field with a default.
    """
    fields = msgspec.structs.fields(value)
    changed = {f.name: set_to for f in fields if (set_to := getattr(value, f.name)) != f.default}
    return blake2b(_encoder.encode(changed), digest_size=16).hexdigest()
