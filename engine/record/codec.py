"""Encodes entries: one MessagePack array of the envelope's nine fields, in the order of `Entry`, and the payload.

The payload is a map and is decoded in a second step. If type and schema are current, the type's own decoder reads it.
If the schema is older, the upcasters convert it first. If the type is unknown or the schema is newer, an `UnknownEntry`
keeps the bytes, and encodes to the same bytes again. Equal entries have equal bytes, because map keys are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from kerf.engine.record.entries import Entry, EntryType, UnknownEntry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import UNDECODABLE, EntryRefused, EntryUndecodable
from kerf.engine.record.upcast import upcast

LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999 in milliseconds since the epoch: no entry has a later time."""
_Number = Annotated[int, Meta(ge=0, le=2**53)]
_Moment = Annotated[int, Meta(ge=0, le=LAST_MOMENT)]
Envelope = tuple[_Number, _Number, str, _Number, str, _Number, _Moment, _Number, _Number, Raw]
"""Position, turn, stream, version, type, schema, at, cause, epoch, payload: an entry before its payload is decoded."""

_UNENCODABLE = (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError, RecursionError)


class _Kind(Struct, array_like=True):
    """The beginning of an envelope: all that is decoded of an entry that nobody asked for."""

    position: _Number
    turn: _Number
    stream: str
    version: _Number
    type: str
    schema: _Number


_kind_of: Callable[[bytes], _Kind] = msgspec.msgpack.Decoder(_Kind).decode


class Codec:
    """Encodes and decodes entries of the given types."""

    def __init__(self, types: Mapping[str, EntryType] = TYPES) -> None:
        self._types = types
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self._envelope: Callable[[bytes], Envelope] = msgspec.msgpack.Decoder(Envelope).decode
        self._current: dict[str, tuple[int, Callable[[Raw], Any]]] = {
            known.name: (known.schema, msgspec.msgpack.Decoder(known.payload).decode) for known in types.values()
        }

    def encode(self, entry: Entry) -> bytes:
        """Returns the entry's bytes. Raises `EntryRefused`."""
        payload = entry.payload
        known = self._types.get(entry.type)
        if isinstance(payload, UnknownEntry):
            if (payload.type, payload.schema) != (entry.type, entry.schema):
                raise _refused(entry, f"it keeps a payload of {payload.type!r} schema {payload.schema}")
            payload = payload.raw
        elif known is None or known.schema != entry.schema or type(payload) is not known.payload:
            raise _refused(entry, f"its payload is a {type(payload).__name__}")
        try:
            return self._encode(
                (
                    entry.position, entry.turn, entry.stream, entry.version, entry.type, entry.schema, entry.at,
                    entry.cause, entry.epoch, payload,
                )
            )  # fmt: skip
        except _UNENCODABLE as error:
            raise _refused(entry, str(error)) from error

    def decode(self, encoded: bytes) -> Entry:
        """Returns the entry that these bytes hold, its payload at the current schema. Raises `EntryUndecodable`,
        `UpcastFailed`.
        """
        try:
            position, turn, stream, version, name, schema, at, cause, epoch, raw = self._envelope(encoded)
        except UNDECODABLE as error:
            raise _no_entry(error) from error
        current = self._current.get(name)
        try:
            if current is not None and current[0] == schema:
                payload = current[1](raw)
            else:
                schema, payload = self.read_other(name, schema, raw, position)
        except UNDECODABLE as error:
            raise EntryUndecodable(
                f"the payload does not fit {name!r} schema {schema}: {error}",
                position=position,
                hint="The type changed without a new schema number; read it with the version of kerf that wrote it",
            ) from error
        return Entry(position, turn, stream, version, name, schema, at, cause, epoch, payload)

    def position_of(self, encoded: bytes) -> int:
        """Returns the position that these bytes name, without a look at the payload. Raises `EntryUndecodable`."""
        try:
            return self._envelope(encoded)[0]
        except UNDECODABLE as error:
            raise _no_entry(error) from error

    def decode_all(self, encoded: Iterable[bytes], only: Collection[str] | None = None) -> Iterator[Entry]:
        """Yields the entries that these bytes hold; `only` those of some types, if they are given. Raises as `decode`.

        An entry of a type or schema that this version does not know is never left out: whoever reads must be told.
        """
        if only is None:
            yield from map(self.decode, encoded)
            return
        left_out = {name: schema for name, (schema, _) in self._current.items() if name not in only}
        for one in encoded:
            try:
                kind = _kind_of(one)
            except UNDECODABLE:
                yield self.decode(one)  # which says what is wrong
                continue
            if left_out.get(kind.type, -1) < kind.schema:
                yield self.decode(one)

    def read_other(self, name: str, schema: int, raw: Raw, position: int) -> tuple[int, Any]:
        """Reads a payload whose type is unknown or whose schema is not the current one. Returns its schema and the
        payload.
        """
        known = self._types.get(name)
        if known is None or schema > known.schema:
            return schema, UnknownEntry(name, schema, raw.copy())
        plain = upcast(known, schema, msgspec.msgpack.decode(raw, type=dict[str, Any]), position=position)
        return known.schema, msgspec.convert(plain, known.payload)


def _no_entry(error: Exception) -> EntryUndecodable:
    return EntryUndecodable(f"these bytes are not an entry: {error}")


def _refused(entry: Entry, why: str) -> EntryRefused:
    return EntryRefused(
        f"an entry of type {entry.type!r} schema {entry.schema} cannot be encoded: {why}",
        position=entry.position,
        where=f"stream {entry.stream}",
        hint="Types and schema numbers are listed in kerf.engine.record.entry_types",
    )


CODEC = Codec()
