"""The golden form of a record: a folder that people read and git compares.

- `record.jsonl`: one entry a line, except for the decisions.
- `decisions.jsonl`: the decisions, one a line; so a changed decision is a changed line here and nowhere else.
- `blobs.jsonl`: one blob a line, by digest.

The files hold the stored bytes written as JSON, without upcasting: entries of older schemas and of unknown types are
read back as they were. Fields keep the order of their types; map keys are sorted already. `GoldenStore` reads both
entry files as one record, by position.

Two values need a wrapper. {"$wide": object} is a map with few keys that msgspec packs as a long map (an object of a
type with more than fifteen fields). {"$msgpack": base64} holds bytes that JSON cannot express (a NaN, say).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from kerf.adapters.store.compression import digest_of
from kerf.adapters.store.files.private_files import OWNER_FOLDER, regular_file, write_whole
from kerf.adapters.store.read_only import ReadOnlyStore, Source, blobs_of, started_as
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.engine.record.codec import CODEC, Codec, Envelope
from kerf.engine.record.entry_types import DECISION
from kerf.engine.record.errors import (
    UNDECODABLE,
    BlobCorrupt,
    BlobMissing,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordShortened,
)
from kerf.engine.record.hash_chain import START, Checkpoint, extend

RECORD, DECISIONS, BLOBS = "record.jsonl", "decisions.jsonl", "blobs.jsonl"
_WIDE, _PACKED = "$wide", "$msgpack"
_SHORT_MAP = 15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "Correct the line, or write the folder again from its record"

_pack = msgspec.msgpack.encode
_envelope = msgspec.msgpack.Decoder(Envelope)


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry; `at` in RFC 3339 with milliseconds."""

    position: int
    turn: int
    stream: str
    version: int
    type: str
    schema: int
    at: datetime
    cause: int
    epoch: int
    payload: Any


class _BlobLine(Struct, frozen=True, forbid_unknown_fields=True):
    digest: str
    content: Any


def write_golden(source: Source, folder: str | Path, *, after: int = 0, until: int | None = None) -> None:
    """Writes the entries with after < position <= until, and the blobs they name.

    Raises `RecordExists` if one of the three files exists; leaves anything else in the folder alone (a README). If one
    file cannot be written (another `StoreError`), removes them all.
    """
    target = Path(folder)
    for name in (RECORD, DECISIONS, BLOBS):
        if regular_file(target / name) is not None:
            raise RecordExists("there is a golden record already", where=str(target / name), hint="Remove it first")
    if source.base() is not None:
        hint = "Make a bundle of it: that brings the state along"
        raise RecordShortened("a golden record begins at position 1", where=str(folder), hint=hint)
    lines: dict[str, list[bytes]] = {RECORD: [], DECISIONS: [], BLOBS: []}
    digests: dict[str, None] = {}
    for encoded in source.encoded(after, until):
        entry = CODEC.decode(encoded)
        lines[DECISIONS if entry.type == DECISION.name else RECORD].append(_to_json(encoded))
        digests.update(dict.fromkeys(blobs_of(entry)))
    for digest in sorted(digests):
        try:
            content = source.blob(digest)
        except BlobMissing:
            continue  # as in the source: who asks for it is told so
        lines[BLOBS].append(msgspec.json.encode(_BlobLine(digest, _readable(content))))
    _write_all(target, {name: b"".join(line + b"\n" for line in content) for name, content in lines.items()})


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Writes the files. On an error it removes them all, and the folder if it did not exist before."""
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    written: list[Path] = []
    with refused_by_system(folder):
        try:
            folder.mkdir(mode=OWNER_FOLDER, parents=True, exist_ok=True)
            for name, text in files.items():
                write_whole(folder / name, text)
                written.append(folder / name)
        except BaseException:
            with suppress(OSError):
                for path in (*written, *made):
                    path.rmdir() if path in made else path.unlink()
            raise


class GoldenStore(ReadOnlyStore):
    """A golden folder as a read-only `Store`. Raises `NotARecord`, or `RecordCorrupt` with the line that is wrong."""

    def __init__(self, folder: str | Path, *, codec: Codec = CODEC) -> None:
        self.path = Path(folder)
        self._codec = codec
        if not (self.path / RECORD).is_file():
            raise NotARecord(f"the folder has no {RECORD}", where=str(folder), hint="Give a golden folder")
        entries = {**self._read(RECORD), **self._read(DECISIONS)}
        self._positions = sorted(entries)
        self._entries = [entries[position] for position in self._positions]
        self._check_positions()
        self._blobs = self._read_blobs()

    @property
    def record_id(self) -> str:
        return next((started_as(entry) for entry in self.scan(until=1)), "")

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        end = len(self._positions) if until is None else bisect_right(self._positions, until)
        return iter(self._entries[bisect_right(self._positions, after) : end])

    def blob(self, digest: str) -> bytes:
        if digest not in self._blobs:
            raise BlobMissing(f"no blob {digest!r} is stored", where=str(self.path / BLOBS))
        return self._blobs[digest]

    def check(self) -> None:
        """Reads every entry; lines, positions and blobs were checked when the folder was opened."""
        for encoded in self._entries:
            self._codec.decode(encoded)

    def checkpoint(self, position: int) -> Checkpoint:
        """Returns the checkpoint over the folder's entries. For a range of a record, the chain begins with the
        range.
        """
        return extend(Checkpoint(self.first_position() - 1, START.value), self.encoded(0, position))

    def first_position(self) -> int:
        return self._positions[0] if self._positions else 1

    def last_position(self) -> int:
        return self._positions[-1] if self._positions else 0

    def epoch(self) -> int:
        return max((self._codec.decode(encoded).epoch for encoded in self._entries[-1:]), default=0)

    def _read(self, name: str) -> dict[int, bytes]:
        entries: dict[int, bytes] = {}
        for line, where in self._lines(name):
            try:
                parsed = msgspec.json.decode(line, type=_Line)
                encoded = _from_json(parsed)
            except UNDECODABLE as error:
                raise RecordCorrupt(f"not an entry: {error}", where=where, hint=_HINT) from error
            if (name == DECISIONS) != (parsed.type == DECISION.name) or parsed.position in entries:
                raise RecordCorrupt("the entry stands in the wrong file or twice", where=where, hint=_HINT)
            entries[parsed.position] = encoded
        return entries

    def _check_positions(self) -> None:
        for before, position in zip(self._positions, self._positions[1:], strict=False):
            if position != before + 1:
                raise RecordCorrupt("the entry is missing", position=before + 1, where=str(self.path), hint=_HINT)

    def _read_blobs(self) -> dict[str, bytes]:
        blobs: dict[str, bytes] = {}
        for line, where in self._lines(BLOBS):
            try:
                parsed = msgspec.json.decode(line, type=_BlobLine)
                content = _bytes(parsed.content)
            except UNDECODABLE as error:
                raise RecordCorrupt(f"not a blob: {error}", where=where, hint=_HINT) from error
            if digest_of(content) != parsed.digest:
                raise BlobCorrupt(
                    f"the content has the digest {digest_of(content)}",
                    where=where,
                    hint="A changed blob has another digest: change it here and in the entries that name it",
                )
            blobs[parsed.digest] = content
        return blobs

    def _lines(self, name: str) -> Iterator[tuple[bytes, str]]:
        path = self.path / name
        if path.is_file():
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                if line.strip():
                    yield line, f"{path}, line {number}"


def _to_json(encoded: bytes) -> bytes:
    position, turn, stream, version, name, schema, at, cause, epoch, raw = _envelope.decode(encoded)
    moment = _EPOCH + timedelta(milliseconds=at)
    return msgspec.json.encode(
        _Line(position, turn, stream, version, name, schema, moment, cause, epoch, _readable(bytes(raw)))
    )


def _from_json(line: _Line) -> bytes:
    at = (line.at - _EPOCH) // timedelta(milliseconds=1)
    return _pack(
        (
            line.position, line.turn, line.stream, line.version, line.type, line.schema, at, line.cause, line.epoch,
            Raw(_bytes(line.payload)),
        )
    )  # fmt: skip


def _readable(packed: bytes) -> Any:
    """Returns the plain object, or one in a wrapper if only that reads back to the same bytes."""
    try:
        plain = msgspec.msgpack.decode(packed)
        for shown in (plain, {_WIDE: plain}):
            if _bytes(msgspec.json.decode(msgspec.json.encode(shown))) == packed:
                return shown
    except UNDECODABLE:
        pass  # not even MessagePack, or not of JSON's types
    return {_PACKED: b64encode(packed).decode()}


def _bytes(plain: Any) -> bytes:
    if isinstance(plain, dict) and plain.keys() == {_PACKED}:
        return b64decode(plain[_PACKED], validate=True)
    if isinstance(plain, dict) and plain.keys() == {_WIDE}:
        return _wide(plain[_WIDE])
    return _pack(plain)


def _wide(plain: Any) -> bytes:
    """Packs a map of at most fifteen keys with the header of a long map, in place of its short one."""
    if not isinstance(plain, dict) or len(plain) > _SHORT_MAP:
        raise ValueError(f"{_WIDE} holds no object of at most {_SHORT_MAP} keys")
    return b"\xde" + len(plain).to_bytes(2, "big") + _pack(plain)[1:]
