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


def deviation(value: Struct) -> str:
    """The digest (32 hex digits) of the fields that differ from their defaults: what is recorded keeps its digest when
    the struct gets a further field with a default."""
    fields = msgspec.structs.fields(value)
    changed = {f.name: set_to for f in fields if (set_to := getattr(value, f.name)) != f.default}
    return blake2b(_encoder.encode(changed), digest_size=16).hexdigest()
