"""Content addresses: equal content has an equal digest in every process, on every machine."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import Struct

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def content(value: Struct) -> tuple[str, bytes]:
    """The digest (32 hex digits of BLAKE2b) of an object's canonical MessagePack bytes, and those bytes."""
    encoded = _encoder.encode(value)
    return blake2b(encoded, digest_size=16).hexdigest(), encoded
