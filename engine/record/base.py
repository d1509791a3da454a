"""What a record that does not begin at position 1 begins with: the state after an entry that is not there any more.

A snapshot is a cache and may be dropped; a base may not, because nothing else says what was before it. So it says of
which schemas it is, and is brought to today's like an entry (kerf.engine.state.base).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Base(Struct, frozen=True, kw_only=True):
    """The record goes on after `position`, which ended a turn at `at` (ms since the epoch). `chain` is the value of the
    chain there, and so the hash of all that was before. `state` is the facts as a snapshot has them and `digest` their
    digest; `schema` is the facts' own number, `types` those of the record's types that stand in them."""

    position: int
    at: int
    chain: bytes
    engine: str
    schema: int
    types: dict[str, int]
    state: bytes
    digest: str


class KeptHistory(Struct, frozen=True, kw_only=True):
    """What a record that was cut has of the time up to its base: `entries` claims' events and decisions, with positions
    from `after` to `base`. `before` and `history` are the values (hex) of their own chain before and after them."""

    base: int
    after: int
    before: str
    history: str
    entries: int


def pack_base(base: Base) -> bytes:
    return msgspec.msgpack.encode(base)


unpack_base = msgspec.msgpack.Decoder(Base).decode
