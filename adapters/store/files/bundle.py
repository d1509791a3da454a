"""A bundle (.kerfb): one file that holds a record, or a range of one, to hand on.

    magic with the format's version (8 bytes) | length of the header (4, big-endian) | header (JSON)
    | BLAKE2b-16 of all so far | frames, one after another

The header is a `BundleInfo` and, for each frame, its kind, length, digest and, for entries, its positions and the
chain's value after it (a checkpoint). A frame is zstd over a MessagePack list: of the entries' own bytes, or of
[digest, content] pairs. That of a base is zstd over the base, that of a snapshot over the state. So each byte of the
file is under a digest, a range is found without reading the rest, and a damaged frame does not take those before it
along.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import TypeVar

import msgspec
from msgspec import Raw

import kerf
from kerf.adapters.store.compression import ZSTD, Unpackable, digest_of, unpack
from kerf.adapters.store.files.bundle_format import (
    DIGEST_BYTES,
    FORMAT,
    FRAME_BYTES,
    LONGEST_HEADER,
    MAGIC,
    PREFIX,
    SMALLEST,
    WITHOUT_BASE,
    WITHOUT_SNAPSHOTS,
    BundleInfo,
    Frame,
    Header,
    items_of,
    most_in_all,
)
from kerf.adapters.store.files.bundle_frames import FrameWriter, batches
from kerf.adapters.store.files.bundle_snapshots import SnapshotFold
from kerf.adapters.store.files.private_files import regular_file
from kerf.adapters.store.pseudonyms.key_file import KEY_BYTES
from kerf.adapters.store.pseudonyms.record import Pseudonymised
from kerf.adapters.store.read_only import ReadOnlyStore, Source, blobs_of, blobs_of_base
from kerf.adapters.store.snapshots import Snapshot
from kerf.adapters.store.sqlite.errors import readable
from kerf.engine.record.base import Base, pack_base, unpack_base
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.entries import UnknownEntry
from kerf.engine.record.errors import (
    UNDECODABLE,
    BlobCorrupt,
    BlobMissing,
    FormatUnsupported,
    NotARecord,
    RecordCorrupt,
    RecordExists,
    RecordNotFound,
    StoreError,
)
from kerf.engine.record.hash_chain import START, Checkpoint, extend
from kerf.engine.state import snapshot

T = TypeVar("T")
RECENT_FRAMES = 32
_HINT = "Ask for the bundle again, or read what comes before the damage"


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
    progress: Callable[[int], None] | None = None,
) -> BundleInfo:
    """Writes the entries with after < position <= until, and the blobs they name, as a bundle.

    The bundle of a record that was cut includes its base, and the entries kept from before. For a part of a record,
    `base` is the state at its beginning. `pseudonymise` replaces names (see `kerf.adapters.store.pseudonyms`), keyed by
    `key`, which is random if it is not given. `created` defaults to now.
    `progress` is told the positions reached.

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
    writer, digests, of_base, epoch = FrameWriter(), dict[str, None](), frozenset[str](), 0
    histories = unknown = 0
    if base is not None:
        if base.position != before.position:
            raise StoreError("the base is not where the range begins", position=base.position)
        writer.add_bytes("base", pack_base(base))
        of_base = frozenset(blobs_of_base(base))
        for batch in batches(source.history()) if kept else ():
            writer.add("history", [Raw(encoded) for encoded in batch])
            histories += len(batch)
    fold = SnapshotFold(source, before.position, base)
    for batch in batches(source.encoded(before.position, until)):
        checkpoint = extend(checkpoint, batch)
        writer.add("entries", [Raw(encoded) for encoded in batch], checkpoint)
        for encoded in batch:
            entry = CODEC.decode(encoded)
            digests.update(dict.fromkeys(blobs_of(entry)))
            unknown += isinstance(entry.payload, UnknownEntry)
            fold.fold(entry)
            epoch = max(epoch, entry.epoch)
        if progress is not None:
            progress(checkpoint.position)
    for kept_state in fold.kept:
        writer.add_snapshot(kept_state)
    stored = _add_blobs(writer, source, {*digests, *of_base})
    info = BundleInfo(
        format=FORMAT if fold.kept else WITHOUT_SNAPSHOTS if base is not None else WITHOUT_BASE,
        record=source.record_id,
        engine=kerf.__version__,
        created=time.time_ns() // 1_000_000 if created is None else created,
        first=before.position + 1,
        last=checkpoint.position,
        epoch=epoch,
        entries=checkpoint.position - before.position,
        blobs=len(stored),
        missing=len(digests.keys() - stored),  # of a base is not known which of its texts name blobs
        chain_before=before.value.hex(),
        chain=checkpoint.value.hex(),
        sanitised=pseudonymise,
        kept=histories,
        based=base is not None,
        unknown=unknown,
        snapshots=len(fold.kept),
        schema=snapshot.SCHEMA if fold.kept else "",
    )
    writer.write(target, info)
    return info


def _add_blobs(writer: FrameWriter, source: Source, digests: Iterable[str]) -> set[str]:
    """Adds the blobs that the source has, in the order of their digests, and returns which these are."""
    frame: list[tuple[str, bytes]] = []
    stored: set[str] = set()
    size = 0
    for digest in sorted(digests):
        try:
            content = source.blob(digest)
        except BlobMissing:
            continue  # counted in the header: one lost blob must not keep an incident from being handed on
        stored.add(digest)
        size += len(content)
        frame.append((digest, content))
        if size >= FRAME_BYTES:
            writer.add("blobs", frame)
            frame, size = [], 0
    if frame:
        writer.add("blobs", frame)
    return stored


def inspect_bundle(path: str | Path) -> BundleInfo:
    """Returns what a bundle holds, after checking every byte. Raises as `BundleStore` and `BundleStore.check` do."""
    store = BundleStore(path)
    store.check()
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
        self._length = self.path.stat().st_size
        header, offset = self._read_header()
        self.info = header.info
        self._frames: list[tuple[Frame, int]] = []
        for frame in header.frames:
            self._frames.append((frame, offset))
            offset += frame.length
        self._end = offset
        if min((min(frame.length, frame.size) for frame in header.frames), default=0) < 0:
            raise self._corrupt("a frame has a negative length")
        if sum(frame.size for frame in header.frames) > most_in_all(self._length):
            raise self._corrupt("its frames would be larger than those of any bundle of its size")
        self._blobs: dict[str, bytes] | None = None
        self._recent: dict[int, list[Raw]] = {}
        self.believed = 0
        """The position of the snapshot that was used last: nothing here has made it again."""

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
                except UNDECODABLE as error:
                    raise self._corrupt(f"the base is unreadable: {error}") from error
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        for frame, offset in self._frames:
            for encoded in self._unpacked(frame, offset, list[Raw]) if frame.kind == "history" else ():
                if after < self._codec.decode(bytes(encoded)).position <= (self.info.last if until is None else until):
                    yield bytes(encoded)

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries' bytes. Raises `RecordCorrupt` with the first position of what is damaged or missing,
        after yielding all before.
        """
        end = self.info.last if until is None else min(until, self.info.last)
        reached = max(after, self.info.first - 1)
        for frame, offset in self._frames:
            if frame.kind != "entries" or frame.last <= after or frame.first > end:
                continue
            if frame.first > reached + 1:
                break
            entries = self._unpacked(frame, offset, list[Raw])
            yield from map(bytes, entries[max(0, after - frame.first + 1) : end - frame.first + 1])
            reached = frame.first + len(entries) - 1
        if reached < end:
            raise self._corrupt("entries are missing", reached + 1)

    def encoded_at(self, positions: Sequence[int]) -> Iterator[bytes]:
        """Yields the bytes of the entries at these ascending positions. Raises `RecordCorrupt`."""
        begin = 0
        for frame, offset in self._frames:
            if frame.kind != "entries":
                continue
            end = bisect_right(positions, frame.last, begin)
            if begin < end:
                entries = self._entries_of(frame, offset)
                for position in positions[begin:end]:
                    yield bytes(entries[position - frame.first])
            begin = end

    def _entries_of(self, frame: Frame, offset: int) -> list[Raw]:
        """Returns the entries of a frame; those that were asked for last are kept."""
        found = self._recent.pop(frame.first, None)
        if found is None:
            found = self._unpacked(frame, offset, list[Raw])
            if len(found) != frame.last - frame.first + 1:
                raise self._corrupt("a frame has not as many entries as the header says", frame.first)
        self._recent[frame.first] = found
        if len(self._recent) > RECENT_FRAMES:
            del self._recent[next(iter(self._recent))]
        return found

    def seal(self, position: int) -> str:
        """Returns what only a bundle with the same content has: the digest of its header, which names all others."""
        return self._seal

    def snapshots(self, schema: str) -> dict[int, str]:
        found = [frame for frame, _ in self._frames if frame.kind == "snapshot"]
        return {frame.last: frame.chain for frame in found} if schema == self.info.schema else {}

    def kept_snapshot(self, until: int | None, schema: str, after: int = 0) -> Snapshot | None:
        """Raises `RecordCorrupt` for a frame that is damaged."""
        end = self.info.last if until is None else until
        for frame, offset in reversed(self._frames):
            if frame.kind == "snapshot" and after < frame.last <= end and schema == self.info.schema:
                self.believed = frame.last
                return frame.last, self._content(frame, offset), frame.chain
        return None

    def blob(self, digest: str) -> bytes:
        if self._blobs is None:
            self._blobs = {}
            for frame, offset in self._frames:
                if frame.kind == "blobs":
                    self._blobs.update(self._unpacked(frame, offset, list[tuple[str, bytes]]))
        if digest not in self._blobs:
            raise BlobMissing(f"no blob {digest!r} is in the bundle", where=str(self.path), hint=_HINT)
        content = self._blobs[digest]
        if digest_of(content) != digest:
            raise BlobCorrupt(f"the blob {digest} was changed", where=str(self.path), hint=_HINT)
        return content

    def check(self) -> None:
        """Checks every byte, both ends, the chain, and every blob's digest. Raises `RecordCorrupt`."""
        start = checkpoint = Checkpoint(self.info.first - 1, bytes.fromhex(self.info.chain_before))
        if start.position == 0 and start != START:
            raise self._corrupt("the chain does not begin as every chain does", 1)
        blobs = 0
        for frame, offset in self._frames:
            if frame.kind == "entries":
                checkpoint = self._checked(frame, offset, checkpoint)
            elif frame.kind == "blobs":
                for digest, content in self._unpacked(frame, offset, list[tuple[str, bytes]]):
                    blobs += 1
                    if digest_of(content) != digest:
                        raise self._corrupt(f"the blob {digest} has another content")
            else:
                self._content(frame, offset)
        if (checkpoint.position, checkpoint.value.hex()) != (self.info.last, self.info.chain):
            raise self._corrupt("entries are missing at the end", checkpoint.position + 1)
        if checkpoint == start:
            raise self._corrupt("it has no entries")
        if (self.info.entries, self.info.blobs) != (checkpoint.position - start.position, blobs):
            raise self._corrupt("it does not hold as many entries and blobs as its header says")
        if self._length != self._end:
            raise self._corrupt("there is something behind the last frame")
        self._check_base(start)
        self._check_snapshots()

    def _checked(self, frame: Frame, offset: int, before: Checkpoint) -> Checkpoint:
        """Returns the checkpoint after a frame of entries."""
        entries = [bytes(encoded) for encoded in self._unpacked(frame, offset, list[Raw])]
        reached = extend(before, entries)
        if (before.position + 1, reached.position, reached.value.hex()) != (frame.first, frame.last, frame.chain):
            raise self._corrupt("the entries do not make the chain that the header names", frame.first)
        for position, entry in enumerate(self._codec.decode_all(entries), frame.first):
            if entry.position != position:
                raise self._corrupt("the entry names another position", position)
        return reached

    def _check_snapshots(self) -> None:
        frames = [frame for frame, _ in self._frames if frame.kind == "snapshot"]
        within = all(self.info.first <= frame.last <= self.info.last for frame in frames)
        if len(frames) != self.info.snapshots or not within:
            raise self._corrupt("the header is wrong about its snapshots")

    def _check_base(self, start: Checkpoint) -> None:
        base = self.base()
        if (base is not None) != self.info.based:
            raise self._corrupt("the header is wrong about the state that it begins with")
        if base is not None and (base.position, base.chain) != (start.position, start.value):
            raise self._corrupt("the state that it begins with is of another position")

    def _read_header(self) -> tuple[Header, int]:
        """Returns the header, and the offset of the first frame."""
        data = self._read(0, PREFIX)
        if not data.startswith(MAGIC) or len(data) < PREFIX:
            raise NotARecord("the file is not a bundle", where=str(self.path), hint="Give a file made by kerf (.kerfb)")
        version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2])
        if version > FORMAT:
            raise FormatUnsupported(
                f"the bundle has format {version}, this version of kerf knows {FORMAT}",
                where=str(self.path),
                hint="Use a newer version of kerf; if there is none, the file is damaged",
            )
        length = int.from_bytes(data[len(MAGIC) + 2 : PREFIX])
        end = PREFIX + length
        if length > LONGEST_HEADER:
            raise self._corrupt(f"its header has {length} bytes")
        data = self._read(0, end + DIGEST_BYTES)
        if data[end:] != blake2b(data[:end], digest_size=DIGEST_BYTES).digest():
            raise self._corrupt("the header was changed or cut off")
        self._seal = data[end:].hex()
        try:
            header = msgspec.json.decode(data[PREFIX:end], type=Header)
            bytes.fromhex(header.info.chain_before)
            return header, end + DIGEST_BYTES
        except UNDECODABLE as error:
            raise self._corrupt(f"the header is not one of format {FORMAT}: {error}") from error

    def _read(self, offset: int, length: int) -> bytes:
        with readable(self.path), self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def _unpacked(self, frame: Frame, offset: int, kind: type[T]) -> T:
        """Returns the list in a frame."""
        content = self._content(frame, offset)
        if items_of(content) * SMALLEST[frame.kind] > len(content):
            raise self._corrupt(f"the {frame.kind} are fewer than their list says", frame.first)
        try:
            return msgspec.msgpack.decode(content, type=kind)
        except UNDECODABLE as error:
            raise self._corrupt(f"the {frame.kind} are unreadable: {error}", frame.first) from error

    def _content(self, frame: Frame, offset: int) -> bytes:
        body = self._read(offset, frame.length) if offset + frame.length <= self._length else b""
        if digest_of(body) != frame.digest:
            raise self._corrupt(f"the {frame.kind} were changed or cut off", frame.first)
        try:
            return unpack(ZSTD, frame.size, body)
        except Unpackable as error:
            raise self._corrupt(f"the {frame.kind} are unreadable: {error}", frame.first) from error

    def _corrupt(self, what: str, position: int = 0) -> RecordCorrupt:
        return RecordCorrupt(f"the bundle is damaged: {what}", position=position, where=str(self.path), hint=_HINT)
