"""Records and bundles as somebody might write them who means harm. Each function makes one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from random import Random
from shutil import copy
from typing import Any

import msgspec
import zstandard

from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.files.bundle_format import Frame, Header
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.codec import CODEC
from kerf.engine.record.hash_chain import START, extend
from kerf.engine.record.store import Append
from tests.support.repository import ROOT

SOUND = ROOT / "tests/records/0.1.0/golden-no-capacity.kerfb"
GIGABYTE = 1 << 30


# ── bundles ────────────────────────────────────────────────────────────────────────────────────────────────────────


def bundle_with(path: Path, change: Callable[[Header, list[bytes]], tuple[Header, list[bytes]]]) -> Path:
    """Writes the sound bundle with another header and other frames. All digests outside of the frames are right."""
    store = BundleStore(SOUND)
    header = Header(store.info, tuple(frame for frame, _ in store._frames))
    data = SOUND.read_bytes()
    header, bodies = change(header, [data[offset : offset + frame.length] for frame, offset in store._frames])
    encoded = msgspec.json.encode(header)
    start = b"kerfb\x00" + header.info.format.to_bytes(2) + len(encoded).to_bytes(4) + encoded
    path.write_bytes(start + blake2b(start, digest_size=16).digest() + b"".join(bodies))
    return path


def frame_of(kind: str, content: bytes, **more: Any) -> tuple[Frame, bytes]:
    """A frame that its digest vouches for."""
    body = zstandard.ZstdCompressor(level=9).compress(content)
    digest = blake2b(body, digest_size=16).hexdigest()
    return Frame(kind, len(body), len(content), digest, **more), body


def bundle_of(path: Path, *encoded: bytes) -> Path:
    """A bundle of these entries, with every digest and the chain as they must be."""

    def change(header: Header, _: list[bytes]) -> tuple[Header, list[bytes]]:
        content = msgspec.msgpack.encode([msgspec.Raw(entry) for entry in encoded])
        reached = extend(START, encoded)
        chain = reached.value.hex()
        frame, body = frame_of("entries", content, first=1, last=reached.position, chain=chain)
        info = msgspec.structs.replace(
            header.info, format=1, first=1, last=len(encoded), entries=len(encoded), blobs=0, based=False, kept=0,
            chain_before=START.value.hex(), chain=chain,
        )  # fmt: skip
        return Header(info, (frame,)), [body]

    return bundle_with(path, change)


def with_entries(path: Path, encoded: Sequence[bytes]) -> Path:
    """The sound bundle with other entries, its blobs, and every digest and the chain as they must be."""

    def change(header: Header, bodies: list[bytes]) -> tuple[Header, list[bytes]]:
        content = msgspec.msgpack.encode([msgspec.Raw(entry) for entry in encoded])
        reached = extend(START, encoded)
        chain = reached.value.hex()
        frame, body = frame_of("entries", content, first=1, last=reached.position, chain=chain)
        kept = [pair for pair in zip(header.frames, bodies, strict=True) if pair[0].kind != "entries"]
        info = msgspec.structs.replace(header.info, last=reached.position, entries=len(encoded), chain=chain)
        return Header(info, (frame, *(frame for frame, _ in kept))), [body, *(body for _, body in kept)]

    return bundle_with(path, change)


def bomb(path: Path, kind: str = "blobs", size: int = 3 * GIGABYTE) -> Path:
    """Its frame stands for gigabytes, as its header says, in some hundred kilobytes."""
    zeros, packer = bytes(1 << 20), zstandard.ZstdCompressor(level=1).compressobj(size=size)
    body = b"".join([*(packer.compress(zeros) for _ in range(size >> 20)), packer.flush()])
    digest = blake2b(body, digest_size=16).hexdigest()
    return bundle_with(
        path, lambda header, bodies: (Header(header.info, (*header.frames, Frame(kind, len(body), size, digest))),
                                      [*bodies, body])
    )  # fmt: skip


def list_of_nothing(path: Path, kind: str = "blobs", items: int = 50_000_000) -> Path:
    """Its frame is a list of very many very small items."""
    item = b"\x92\xa0\xc4\x00" if kind == "blobs" else b"\x90"
    frame, body = frame_of(kind, b"\xdd" + items.to_bytes(4) + item * min(items, 4_000_000))
    return bundle_with(path, lambda header, bodies: (Header(header.info, (*header.frames, frame)), [*bodies, body]))


def many_bombs(path: Path, frames: int = 100, size: int = 128 << 20) -> Path:
    """Each of its frames is of a size that a frame may have, and they are many."""
    body = zstandard.ZstdCompressor(level=1).compress(bytes(size))
    frame = Frame("blobs", len(body), size, blake2b(body, digest_size=16).hexdigest())
    return bundle_with(
        path, lambda header, bodies: (Header(header.info, (*header.frames, *[frame] * frames)),
                                      [*bodies, *[body] * frames])
    )  # fmt: skip


def without_frames(path: Path) -> Path:
    return bundle_with(path, lambda header, bodies: (Header(header.info, ()), []))


def without_anything(path: Path) -> Path:
    """It says itself that it holds nothing, and is right."""

    def change(header: Header, bodies: list[bytes]) -> tuple[Header, list[bytes]]:
        info = msgspec.structs.replace(
            header.info, first=1, last=0, entries=0, blobs=0, chain=START.value.hex(), chain_before=START.value.hex()
        )
        return Header(info, ()), []

    return bundle_with(path, change)


def without_tail(path: Path) -> Path:
    """Frames of entries are gone from its end, with their lines in the header."""

    def change(header: Header, bodies: list[bytes]) -> tuple[Header, list[bytes]]:
        kept = [(frame, body) for frame, body in zip(header.frames, bodies, strict=True) if frame.kind != "entries"]
        store = BundleStore(SOUND)
        some = list(store.encoded())[:40]
        reached = extend(START, some)
        content = msgspec.msgpack.encode([msgspec.Raw(entry) for entry in some])
        frame, body = frame_of("entries", content, first=1, last=40, chain=reached.value.hex())
        frames = [(frame, body), *kept]
        return Header(header.info, tuple(frame for frame, _ in frames)), [body for _, body in frames]

    return bundle_with(path, change)


def with_changed_blob(path: Path) -> Path:
    """A blob has another content; the digest of its frame is that of the new bytes."""

    def change(header: Header, bodies: list[bytes]) -> tuple[Header, list[bytes]]:
        at = next(index for index, frame in enumerate(header.frames) if frame.kind == "blobs")
        old = header.frames[at]
        pairs = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(bodies[at], max_output_size=old.size))
        digest, content = pairs[0]
        pairs[0] = [digest, content[:-1] + bytes([content[-1] ^ 1])]
        frame, body = frame_of("blobs", msgspec.msgpack.encode(pairs))
        frames = [frame if index == at else each for index, each in enumerate(header.frames)]
        return Header(header.info, tuple(frames)), [body if index == at else each for index, each in enumerate(bodies)]

    return bundle_with(path, change)


def cut_off(path: Path) -> Path:
    """A download that ended early."""
    path.write_bytes(SOUND.read_bytes()[:-100])
    return path


def deep(levels: int = 100_000) -> bytes:
    """A MessagePack list in a list in a list."""
    return b"\x91" * levels + b"\x90"


def entry(
    position: Any = 1, *, at: Any = 0, payload: bytes = b"\x80", type: str = "record.started", schema: Any = 1,
    stream: bytes = b"\xa6record",
) -> bytes:  # fmt: skip
    """An encoded entry, its payload as given."""
    pack = msgspec.msgpack.encode
    numbers = [position, position]
    after = [type, schema, at, 0, 1]
    return b"".join([b"\x9a", *map(pack, numbers), stream, pack(position), *map(pack, after), payload])


def collections(path: Path, item: bytes = b"\x80", items: int = 25_000_000) -> Path:
    """Its entry is of an unknown type, and a list of very many empty maps (or other items). Noise beside it keeps the
    frame from being refused as one that stands for too much.
    """
    noise = Random(0).randbytes(100_000)
    payload = b"\x92\xdd" + items.to_bytes(4) + item * items + msgspec.msgpack.encode(noise)
    return bundle_of(path, entry(payload=payload, type="nobody.knows"))


def many_entries(path: Path, entries: int = 600_000) -> Path:
    """Each of its entries is a turn, and says next to nothing."""
    gone = b"\x82\xa4kind\xa3pod\xa3key\xa1u"
    started = entry(payload=b"\x82\xa6record\xa1r\xa6engine\xa10")
    more = (entry(position, payload=gone, type="object.gone") for position in range(2, entries + 1))
    return bundle_of(path, started, *more)


# ── SQLite files ───────────────────────────────────────────────────────────────────────────────────────────────────


def sound_record(path: Path) -> Path:
    """The sound bundle's entries in a SQLite file."""
    return record_of(path, list(BundleStore(SOUND).encoded()))


def record_of(path: Path, encoded: Sequence[bytes]) -> Path:
    """These entries, and the sound bundle's blobs, in a SQLite file."""
    source = BundleStore(SOUND)
    store = SQLiteStore(path, "create")
    try:
        blobs = {digest: source.blob(digest) for digest in _digests(source)}
        for _, turn in groupby(map(CODEC.decode, encoded), key=lambda entry: entry.turn):
            store.append(Append(tuple(turn), blobs))
            blobs = {}
    finally:
        store.close()
    return path


def _digests(source: BundleStore) -> list[str]:
    with_blobs = [frame for frame in source._frames if frame[0].kind == "blobs"]
    return [digest for frame in with_blobs for digest, _ in source._unpacked(*frame, list[tuple[str, bytes]])]


def sqlite_with(path: Path, sound: Path, *statements: str) -> Path:
    """A copy of a sound record, changed by these statements."""
    copy(sound, path)
    connection = sqlite3.connect(path)
    try:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()
    return path


FOR_EVER = "WITH RECURSIVE t(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM t)"
STRANGE: dict[str, Iterable[str]] = {
    "a view as record": (
        "ALTER TABLE record RENAME TO r",
        f"CREATE VIEW record AS {FOR_EVER} SELECT 1 AS format, 'r' AS id, x AS position, x'' AS chain, 1 AS epoch, "
        "x'' AS seal FROM t WHERE x < 0",
    ),
    "a view as stored_events": (
        "ALTER TABLE stored_events RENAME TO e",
        "CREATE VIEW stored_events AS SELECT rowid, originator_id, originator_version, topic, "
        "zeroblob(1800000000) AS state, zeroblob(16) AS chain FROM e",
    ),
    "a view as blobs": (
        "ALTER TABLE blobs RENAME TO b",
        "CREATE VIEW blobs AS SELECT digest, 0 AS packed, 1800000000 AS size, zeroblob(1800000000) AS content FROM b",
    ),
    "a computed column": ("ALTER TABLE snapshots ADD COLUMN more BLOB AS (zeroblob(900000000)) VIRTUAL",),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON blobs BEGIN DELETE FROM stored_events; END",),
    "an index of an expression": ("CREATE INDEX i ON blobs(length(zeroblob(size)))",),
    "a virtual table": ("CREATE VIRTUAL TABLE v USING fts5(text)",),
    "a check that works": ("CREATE TABLE more (x INTEGER CHECK (x = (1 + 1)))",),
}


def exported(record: Path, path: Path) -> Path:
    store = SQLiteStore(record, "read")
    try:
        export_bundle(store, path)
    finally:
        store.close()
    return path
