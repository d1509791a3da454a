"""The base of a record that was cut: the state that the record begins with, in place of the entries that were removed.

A snapshot is a cache and may be dropped. A base may not, because nothing else holds what was before it. So a base names
the schemas that it was written with, and is upcast like an entry (kerf.engine.state.base).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Base(Struct, frozen=True, kw_only=True):
    """The state at `position`, after which the record goes on. `at` is when that position's turn ran (ms since the
    epoch).

    `chain` is the chain's value at `position`: the hash of all entries up to it. `state` is the encoded facts, as in a
    snapshot, and `digest` their digest. `schema` is the schema number of the facts, `types` those of the record's types
    inside them.
    """

    position: int
    at: int
    chain: bytes
    engine: str
    schema: int
    types: dict[str, int]
    state: bytes
    digest: str


class KeptHistory(Struct, frozen=True, kw_only=True):
    """The claim events and decisions that a cut kept from the time before its `base`.

    There are `entries` of them, at positions after `after` and up to `base`. They have a chain of their own: `before`
    is its value (hex) before the first of them, `history` its value after the last.
    """

    base: int
    after: int
    before: str
    history: str
    entries: int


def pack_base(base: Base) -> bytes:
    return msgspec.msgpack.encode(base)


unpack_base = msgspec.msgpack.Decoder(Base).decode
