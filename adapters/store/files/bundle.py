"""A bundle (.kerfb): one file that holds a record, or a range of one, to hand on.

    magic with the format's version (8 bytes) | length of the header (4, big-endian) | header (JSON)
    | BLAKE2b-16 of all so far | frames, one after another

The header is a `BundleInfo` and, for each frame, its kind, length, digest and, for entries, its positions and the
chain's value after it (a checkpoint). A frame is zstd over a MessagePack list: of the entries' own bytes, or of
[digest, content] pairs. So each byte of the file is under a digest, a range is found without reading the rest, and a
damaged frame does not take those before it along.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import TypeVar

import msgspec
import zstandard
from msgspec import Raw, Struct

import kerf
from kerf.adapters.store.compression import ZSTD, Unpackable, digest_of, unpack
from kerf.adapters.store.files.private_files import regular_file, write_whole
from kerf.adapters.store.pseudonyms.key_file import KEY_BYTES
from kerf.adapters.store.pseudonyms.record import Pseudonymised
from kerf.adapters.store.read_only import ReadOnlyStore, Source, blobs_of, blobs_of_base
from kerf.engine.record.base import Base, pack_base, unpack_base
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.errors import (
    BlobMissing,
    FormatUnsupported,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
)
from kerf.engine.record.hash_chain import START, Checkpoint, extend

MAGIC = b"kerfb\x00"
WITHOUT_BASE, FORMAT = 1, 2
"""Format 1: a record from its beginning, or a part that cannot be decided again. Format 2: it begins with a base."""
_SIZE = 16
_PREFIX = len(MAGIC) + 2 + 4
_FRAME_ENTRIES = 4096
_FRAME_BLOB_BYTES = 1 << 20
T = TypeVar("T")
_HINT = "Ask for the bundle again, or read what comes before the damage"


class BundleInfo(Struct, frozen=True, kw_only=True):
    """The header's description of a bundle. `created` is in milliseconds since the epoch.

    `chain_before` and `chain` are the chain's values (hex) before the first and after the last entry. `missing` counts
    the named blobs that the source did not have. `based`: the bundle begins with the state before its first entry, so
    that its entries can be decided again. `kept` counts the claim events and decisions from before that state.
    """

    format: int
    record: str
    engine: str
    created: int
    first: int
    last: int
    epoch: int
    entries: int
    blobs: int
    missing: int
    chain_before: str
    chain: str
    sanitised: bool
    kept: int = 0
    based: bool = False


class _Frame(Struct, frozen=True):
    kind: str  # "base", "history", "entries" or "blobs"
    length: int  # bytes in the file
    size: int  # bytes unpacked
    digest: str  # of the bytes in the file
    first: int = 0
    last: int = 0
    chain: str = ""  # after `last`


class _Header(Struct, frozen=True):
    info: BundleInfo
    frames: tuple[_Frame, ...]


class _Writer:
    """Collects the frames of a bundle."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []
        self.bodies: list[bytes] = []
        self._compress = zstandard.ZstdCompressor(level=9).compress

    def add(self, kind: str, items: list[Raw] | list[tuple[str, bytes]], checkpoint: Checkpoint = START) -> None:
        content = msgspec.msgpack.encode(items)
        self.add_bytes(kind, content, len(items), checkpoint)

    def add_bytes(self, kind: str, content: bytes, items: int = 0, checkpoint: Checkpoint = START) -> None:
        body = self._compress(content)
        first = checkpoint.position - items + 1 if kind == "entries" else 0
        self.frames.append(
            _Frame(kind, len(body), len(content), digest_of(body), first, checkpoint.position, checkpoint.value.hex())
        )
        self.bodies.append(body)

    def write(self, path: Path, info: BundleInfo) -> None:
        header = msgspec.json.encode(_Header(info, tuple(self.frames)))
        start = MAGIC + info.format.to_bytes(2) + len(header).to_bytes(4) + header
        write_whole(path, start, blake2b(start, digest_size=_SIZE).digest(), *self.bodies)


def export_bundle(
    source: Source,
    path: str | Path,
    *,
    after: int = 0,
    until: int | None = None,
    base: Base | None = None,
    pseudonymise: bool = False,
    key: bytes = b"",
    created: int | None = None,
) -> BundleInfo:
    """Writes the entries with after < position <= until, and the blobs they name, as a bundle.

    The bundle of a record that was cut includes its base, and the entries kept from before. For a part of a record,
    `base` is the state at its beginning. `pseudonymise` replaces names (see `kerf.adapters.store.pseudonyms`), keyed by
    `key`, which is random if it is not given. `created` defaults to now.

    Raises `RecordExists` if there is a file at `path`, `SpecialFile` for a link and the like, another `StoreError` if
    it cannot be written, and what reading the source raises. To export what a damaged record has before the damage, set
    `until` to one less than the error's position.
    """
    target = Path(path)
    if regular_file(target) is not None:
        raise RecordExists("there is a file already", where=str(path), hint="Give another name, or remove it first")
    after = max(after, source.first_position() - 1)
    kept = base is None
    if base is None and after == source.first_position() - 1:
        base = source.base()
    if pseudonymise:
        source = Pseudonymised(
            source, key=key or token_bytes(KEY_BYTES), after=after, until=until, base=base, kept=kept
        )
        base = source.base()
    before = checkpoint = source.checkpoint(after)
    writer, digests, epoch = _Writer(), dict[str, None](), 0
    histories = 0
    if base is not None:
        if base.position != before.position:
            raise StoreError("the base is not where the range begins", position=base.position)
        writer.add_bytes("base", pack_base(base))
        digests.update((digest, None) for digest in blobs_of_base(base))
        for batch in _batches(source.history()) if kept else ():
            writer.add("history", [Raw(encoded) for encoded in batch])
            histories += len(batch)
    for batch in _batches(source.encoded(before.position, until)):
        checkpoint = extend(checkpoint, batch)
        writer.add("entries", [Raw(encoded) for encoded in batch], checkpoint)
        for encoded in batch:
            entry = CODEC.decode(encoded)
            digests.update(dict.fromkeys(blobs_of(entry)))
            epoch = max(epoch, entry.epoch)
    stored = _add_blobs(writer, source, digests)
    info = BundleInfo(
        format=FORMAT if base is not None else WITHOUT_BASE,
        record=source.record_id,
        engine=kerf.__version__,
        created=time.time_ns() // 1_000_000 if created is None else created,
        first=before.position + 1,
        last=checkpoint.position,
        epoch=epoch,
        entries=checkpoint.position - before.position,
        blobs=stored,
        missing=len(digests) - stored,
        chain_before=before.value.hex(),
        chain=checkpoint.value.hex(),
        sanitised=pseudonymise,
        kept=histories,
        based=base is not None,
    )
    writer.write(target, info)
    return info


def _batches(entries: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for encoded in entries:
        batch.append(encoded)
        if len(batch) == _FRAME_ENTRIES:
            yield batch
            batch = []
    if batch:
        yield batch


def _add_blobs(writer: _Writer, source: Source, digests: Iterable[str]) -> int:
    """Adds the blobs that the source has, in the order of their digests, and returns how many there are."""
    frame: list[tuple[str, bytes]] = []
    stored = size = 0
    for digest in sorted(digests):
        try:
            content = source.blob(digest)
        except BlobMissing:
            continue  # counted in the header: one lost blob must not keep an incident from being handed on
        stored += 1
        size += len(content)
        frame.append((digest, content))
        if size >= _FRAME_BLOB_BYTES:
            writer.add("blobs", frame)
            frame, size = [], 0
    if frame:
        writer.add("blobs", frame)
    return stored


def inspect_bundle(path: str | Path) -> BundleInfo:
    """Returns what a bundle holds, after checking every byte. Raises as `BundleStore` and `BundleStore.verify` do."""
    store = BundleStore(path)
    store.verify()
    return store.info


class BundleStore(ReadOnlyStore):
    """A bundle as a read-only `Store`. Frames are checked when they are read.

    Opening raises `RecordNotFound`, `NotARecord`, `FormatUnsupported`, or `RecordCorrupt` when the header is damaged.
    """

    def __init__(self, path: str | Path, *, codec: Codec = CODEC) -> None:
        self.path = Path(path)
        self._codec = codec
        if not self.path.is_file():
            raise RecordNotFound("there is no such file", where=str(path), hint="Check the path of the bundle")
        self._bytes = self.path.read_bytes()
        header, offset = self._read_header()
        self.info = header.info
        self._frames: list[tuple[_Frame, int]] = []
        for frame in header.frames:
            self._frames.append((frame, offset))
            offset += frame.length
        self._end = offset
        self._blobs: dict[str, bytes] | None = None

    @property
    def record_id(self) -> str:
        return self.info.record

    def first_position(self) -> int:
        return self.info.first

    def last_position(self) -> int:
        return self.info.last

    def epoch(self) -> int:
        return self.info.epoch

    def checkpoint(self, position: int) -> Checkpoint:
        start = Checkpoint(self.info.first - 1, bytes.fromhex(self.info.chain_before))
        return extend(start, self.encoded(start.position, position))

    def base(self) -> Base | None:
        """Returns the state that the bundle begins with. Raises `RecordCorrupt`."""
        for frame, offset in self._frames:
            if frame.kind == "base":
                try:
                    return unpack_base(self._content(frame, offset))
                except msgspec.MsgspecError as error:
                    raise self._corrupt(f"the base is unreadable: {error}") from error
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        for frame, offset in self._frames:
            for encoded in self._unpacked(frame, offset, list[Raw]) if frame.kind == "history" else ():
                if after < self._codec.decode(bytes(encoded)).position <= (self.info.last if until is None else until):
                    yield bytes(encoded)

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries' bytes. Raises `RecordCorrupt` with a damaged frame's first position, after yielding all
        before.
        """
        end = self.info.last if until is None else until
        for frame, offset in self._frames:
            if frame.kind != "entries" or frame.last <= after or frame.first > end:
                continue
            entries = self._unpacked(frame, offset, list[Raw])
            yield from map(bytes, entries[max(0, after - frame.first + 1) : end - frame.first + 1])

    def blob(self, digest: str) -> bytes:
        if self._blobs is None:
            self._blobs = {}
            for frame, offset in self._frames:
                if frame.kind == "blobs":
                    self._blobs.update(self._unpacked(frame, offset, list[tuple[str, bytes]]))
        if digest not in self._blobs:
            raise BlobMissing(f"no blob {digest!r} is in the bundle", where=str(self.path), hint=_HINT)
        return self._blobs[digest]

    def verify(self) -> None:
        """Checks every byte, every blob's digest and the chain. Raises `RecordCorrupt`."""
        checkpoint = Checkpoint(self.info.first - 1, bytes.fromhex(self.info.chain_before))
        for frame, offset in self._frames:
            if frame.kind == "entries":
                checkpoint = extend(checkpoint, map(bytes, self._unpacked(frame, offset, list[Raw])))
                if (checkpoint.position, checkpoint.value.hex()) != (frame.last, frame.chain):
                    raise self._corrupt("the entries do not make the chain that the header names", frame.first)
            elif frame.kind != "blobs":
                self._content(frame, offset)
            else:
                for digest, content in self._unpacked(frame, offset, list[tuple[str, bytes]]):
                    if digest_of(content) != digest:
                        raise self._corrupt(f"the blob {digest} has another content")
        if checkpoint.value.hex() != self.info.chain:
            raise self._corrupt("entries are missing at the end", checkpoint.position + 1)
        if len(self._bytes) != self._end:
            raise self._corrupt("there is something behind the last frame")

    def _read_header(self) -> tuple[_Header, int]:
        """Returns the header, and the offset of the first frame."""
        data = self._bytes
        if not data.startswith(MAGIC) or len(data) < _PREFIX:
            raise NotARecord("the file is not a bundle", where=str(self.path), hint="Give a file made by kerf (.kerfb)")
        version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2])
        if version > FORMAT:
            raise FormatUnsupported(
                f"the bundle has format {version}, this version of kerf knows {FORMAT}",
                where=str(self.path),
                hint="Use a newer version of kerf; if there is none, the file is damaged",
            )
        end = _PREFIX + int.from_bytes(data[len(MAGIC) + 2 : _PREFIX])
        if data[end : end + _SIZE] != blake2b(data[:end], digest_size=_SIZE).digest():
            raise self._corrupt("the header was changed or cut off")
        try:
            return msgspec.json.decode(data[_PREFIX:end], type=_Header), end + _SIZE
        except msgspec.MsgspecError as error:
            raise self._corrupt(f"the header is not one of format {FORMAT}: {error}") from error

    def _unpacked(self, frame: _Frame, offset: int, kind: type[T]) -> T:
        """Returns the list in a frame."""
        try:
            return msgspec.msgpack.decode(self._content(frame, offset), type=kind)
        except msgspec.MsgspecError as error:
            raise self._corrupt(f"the {frame.kind} are unreadable: {error}", frame.first) from error

    def _content(self, frame: _Frame, offset: int) -> bytes:
        body = self._bytes[offset : offset + frame.length]
        if digest_of(body) != frame.digest:
            raise self._corrupt(f"the {frame.kind} were changed or cut off", frame.first)
        try:
            return unpack(ZSTD, frame.size, body)
        except Unpackable as error:
            raise self._corrupt(f"the {frame.kind} are unreadable: {error}", frame.first) from error

    def _corrupt(self, what: str, position: int = 0) -> RecordCorrupt:
        return RecordCorrupt(f"the bundle is damaged: {what}", position=position, where=str(self.path), hint=_HINT)
