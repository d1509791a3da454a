"""Laws of the record's bytes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from kerf.adapters.store.files.golden import _from_json, _Line, _to_json
from kerf.engine.record.codec import CODEC
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import StoreError
from kerf.engine.record.hash_chain import START, Checkpoint, extend, link
from tests.support.payloads import any_entry, entries


@pytest.mark.parametrize("name", sorted(TYPES))
@settings(max_examples=15)
@given(data=st.data())
def test_every_registered_type_comes_back_equal(name: str, data: st.DataObject) -> None:
    entry = data.draw(entries(TYPES[name]))
    assert CODEC.decode(CODEC.encode(entry)) == entry


@given(any_entry)
def test_equal_entries_have_equal_bytes(entry: Entry) -> None:
    encoded = CODEC.encode(entry)
    assert CODEC.encode(CODEC.decode(encoded)) == encoded


_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(entry=any_entry, payload=_plain, known=st.booleans())
def test_an_unknown_entry_encodes_to_the_bytes_it_came_from(entry: Entry, payload: object, known: bool) -> None:
    """Of a type that this version does not know, or of a newer schema of one that it knows."""
    name, schema = (entry.type, entry.schema + 1) if known else ("moon.seen", 1)
    raw = Raw(msgspec.msgpack.encode(payload))
    encoded = CODEC.encode(replace(entry, type=name, schema=schema, payload=UnknownEntry(name, schema, raw)))
    decoded = CODEC.decode(encoded)
    assert isinstance(decoded.payload, UnknownEntry)
    assert bytes(decoded.payload.raw) == bytes(raw)
    assert CODEC.encode(decoded) == encoded


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(garbage: bytes) -> None:
    with pytest.raises(StoreError, match="KERF11"):
        CODEC.decode(garbage)


@given(any_entry)
def test_the_golden_form_is_a_transcription(entry: Entry) -> None:
    encoded = CODEC.encode(entry)
    line = _to_json(encoded)
    assert b"\n" not in line
    assert _from_json(msgspec.json.decode(line, type=_Line)) == encoded


@dataclass
class Tampered:
    original: list[bytes]
    changed: list[bytes]


@st.composite
def tampered(draw: st.DrawFn) -> Tampered:
    original = draw(st.lists(st.binary(min_size=1, max_size=8), min_size=2, max_size=8, unique=True))
    at = draw(st.integers(0, len(original) - 1))
    changed = list(original)
    match draw(st.sampled_from(["change", "drop", "swap"])):
        case "change":
            changed[at] = bytes([changed[at][0] ^ 1]) + changed[at][1:]
        case "drop":
            del changed[at]
        case _:
            changed[at], changed[at - 1] = changed[at - 1], changed[at]
    return Tampered(original, changed)


@given(tampered())
def test_the_chain_shows_what_was_changed_dropped_or_swapped(case: Tampered) -> None:
    assert extend(START, case.changed).value != extend(START, case.original).value


@given(st.lists(st.binary(max_size=20)), st.integers(0, 20))
def test_the_chain_can_be_cut_anywhere(entries: list[bytes], cut: int) -> None:
    """From a checkpoint on, the chain is the same as from the start; and each step is one link."""
    whole = extend(START, entries)
    assert extend(extend(START, entries[:cut]), entries[cut:]) == whole
    value = START.value
    for encoded in entries:
        value = link(value, encoded)
    assert whole == Checkpoint(len(entries), value)
