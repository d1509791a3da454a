"""The codec's refusals, upcasting, and the frozen form of the bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.entries import Entry, EntryType, UnknownEntry
from kerf.engine.record.entry_types import BLOB_FIELD, TYPES, blob_of
from kerf.engine.record.errors import EntryRefused, EntryUndecodable, UpcastFailed
from kerf.engine.record.observations import ObjectGone, OfficeTaken
from kerf.engine.record.upcast import upcast

GONE = Entry(7, 5, "seen/object", 3, "object.gone", 1, 1_700_000_000_000, 4, 2, ObjectGone("pod", "u-1"))
GONE_BYTES = bytes.fromhex(
    "9a0705ab7365656e2f6f626a65637403ab6f626a6563742e676f6e6501cf0000018bcfe5680004"
    "0282a46b696e64a3706f64a36b6579a3752d31"
)


class Labels(Struct, frozen=True):
    labels: dict[str, int]


class ThingSeen(Struct, frozen=True):
    """Schema 3 of a type: `label` was `name` in schema 1; schema 2 put a `size` beside it."""

    label: str
    size: int


def _rename(plain: dict[str, Any]) -> dict[str, Any]:
    return {"label": plain.pop("label"), "size": plain["size"] * 2}


def _add_size(plain: dict[str, Any]) -> dict[str, Any]:
    return {"label": plain["name"], "size": len(plain["name"])}


THING = EntryType("thing.seen", 3, ThingSeen, {1: _add_size, 2: _rename})


def stored(schema: int, payload: dict[str, Any], name: str = "thing.seen") -> bytes:
    """An entry's bytes as some version of kerf wrote them."""
    return msgspec.msgpack.encode((1, 1, "seen/thing", 1, name, schema, 0, 0, 1, payload))


def test_the_bytes_are_frozen() -> None:
    """These bytes are in records out there: a change of the codec must still read and write them."""
    assert CODEC.encode(GONE) == GONE_BYTES
    assert CODEC.decode(GONE_BYTES) == GONE


def test_map_keys_are_sorted_whatever_their_order() -> None:
    codec = Codec({"x": EntryType("x", 1, Labels)})
    one, other = (replace(GONE, type="x", payload=Labels(labels)) for labels in ({"b": 1, "a": 2}, {"a": 2, "b": 1}))
    assert codec.encode(one) == codec.encode(other)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (1, {"name": "ab"}),
        (2, {"label": "ab", "size": 2}),
        (3, {"label": "ab", "size": 4}),
    ],
)
def test_older_schemas_are_upcast_step_by_step(schema: int, payload: dict[str, Any]) -> None:
    entry = Codec({"thing.seen": THING}).decode(stored(schema, payload))
    assert entry.payload == ThingSeen("ab", 4)
    assert entry.schema == 3


def test_a_newer_schema_is_kept_unread() -> None:
    encoded = stored(4, {"what": "ever"})
    entry = Codec({"thing.seen": THING}).decode(encoded)
    assert isinstance(entry.payload, UnknownEntry)
    assert (entry.type, entry.schema) == ("thing.seen", 4)
    assert Codec({"thing.seen": THING}).encode(entry) == encoded


def test_a_missing_step_is_named() -> None:
    gap = EntryType("thing.seen", 3, ThingSeen, {1: _add_size})
    with pytest.raises(UpcastFailed, match=r"KERF117.* from schema 2 to 3 of 'thing.seen'.*position 9"):
        upcast(gap, 1, {"name": "ab"}, position=9)


def test_a_step_that_fails_is_named() -> None:
    with pytest.raises(UpcastFailed, match=r"from schema 1 to 2 of 'thing.seen' failed: KeyError"):
        upcast(THING, 1, {})


def test_an_upcast_payload_that_does_not_fit_is_refused() -> None:
    codec = Codec({"thing.seen": replace(THING, upcasters={1: lambda plain: plain, 2: lambda plain: plain})})
    with pytest.raises(EntryUndecodable, match=r"KERF116.*position 1"):
        codec.decode(stored(1, {"name": "ab"}))


@pytest.mark.parametrize("payload", [{}, {"kind": 1, "key": "a"}, {"kind": "pod"}])
def test_a_known_type_with_another_payload_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(EntryUndecodable, match=r"'object.gone' schema 1.*position 1"):
        CODEC.decode(stored(1, payload, "object.gone"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"payload": OfficeTaken(1, "me")}, "its payload is a OfficeTaken"),
        ({"schema": 2}, "schema 2"),
        ({"type": "moon.seen"}, "moon.seen"),
        ({"payload": UnknownEntry("moon.seen", 1, Raw(b"\x80"))}, "keeps a payload of 'moon.seen' schema 1"),
        ({"at": 1 << 64}, "2\\*\\*64"),
        ({"payload": ObjectGone("pod", "\ud800")}, "surrogates"),
    ],
)
def test_what_cannot_be_encoded_is_refused_with_its_place(change: dict[str, Any], why: str) -> None:
    with pytest.raises(EntryRefused, match=f"KERF115.*{why}.*stream seen/object, position 7"):
        CODEC.encode(replace(GONE, **change))


def test_every_field_that_is_said_to_name_a_blob_is_one() -> None:
    for payload, field in BLOB_FIELD.items():
        assert field in payload.__struct_fields__
        assert payload in {known.payload for known in TYPES.values()}
    assert blob_of(Pod("u", "n", "a", "digest")) == "digest"
    assert blob_of(ObjectGone("pod", "u")) == ""
