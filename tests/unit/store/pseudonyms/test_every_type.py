"""No type of entry and no field is forgotten."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerf.adapters.store.pseudonyms.record import Pseudonymised
from kerf.adapters.store.pseudonyms.replacements import BLOB
from kerf.adapters.store.pseudonyms.rules import rules_of
from kerf.engine.model.names import Mark
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.hash_chain import START, Checkpoint
from tests.support.payloads import entries
from tests.support.strategies.planted import recorded_structs


class OneEntry:
    """A source of a single entry without blobs."""

    record_id = "r"

    def checkpoint(self, position: int) -> Checkpoint:
        return START

    def first_position(self) -> int:
        return self._entry.position

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def base(self) -> Base | None:
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(())

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter([CODEC.encode(self._entry)])

    def blob(self, digest: str) -> bytes:
        raise BlobMissing(digest)


@pytest.mark.parametrize("name", sorted(TYPES))
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_type_passes(name: str, data: st.DataObject) -> None:
    """What comes out is of the same type and shape."""
    entry = data.draw(entries(TYPES[name]))
    (encoded,) = Pseudonymised(OneEntry(entry), key=b"s").encoded()
    changed = CODEC.decode(encoded)
    assert type(changed.payload) is type(entry.payload)
    assert (changed.position, changed.at, changed.epoch) == (entry.position, entry.at, entry.epoch)


def has_unmarked_text(hint: Any) -> bool:
    """Whether text without a mark (kerf.engine.model.names) can stand in a value of this type, structs left out."""
    if any(isinstance(mark, Mark) for mark in getattr(hint, "__metadata__", ())):
        return False
    return hint is str or any(has_unmarked_text(part) for part in typing.get_args(hint))


def test_every_field_with_text_is_marked() -> None:
    """So a new field cannot let names out: it stops the export, and before that this test."""
    missing = [
        f"{kind.__name__}.{field}"
        for kind in recorded_structs()
        if isinstance(rules_of(kind), dict)
        for field, hint in typing.get_type_hints(kind, include_extras=True).items()
        if has_unmarked_text(hint)
    ]
    assert sorted(missing) == []


def test_only_text_is_the_digest_of_a_blob() -> None:
    digests = [
        typing.get_type_hints(kind)[field]
        for kind in recorded_structs()
        if isinstance(rules := rules_of(kind), dict)
        for field, rule in rules.items()
        if rule is BLOB
    ]
    assert digests
    assert set(digests) == {str}
