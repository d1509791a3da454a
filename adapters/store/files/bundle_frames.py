"""Collects the frames of a bundle, and writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec
import zstandard
from msgspec import Raw

from kerf.adapters.store.compression import digest_of
from kerf.adapters.store.files.bundle_format import (
    DIGEST_BYTES,
    FRAME_BYTES,
    FRAME_ENTRIES,
    MAGIC,
    BundleInfo,
    Frame,
    Header,
)
from kerf.adapters.store.files.bundle_snapshots import Kept
from kerf.adapters.store.files.private_files import write_whole
from kerf.engine.record.hash_chain import START, Checkpoint


class FrameWriter:
    """Collects the frames of a bundle."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.bodies: list[bytes] = []
        self._compress = zstandard.ZstdCompressor(level=9).compress

    def add(self, kind: str, items: list[Raw] | list[tuple[str, bytes]], checkpoint: Checkpoint = START) -> None:
        content = msgspec.msgpack.encode(items)
        self.add_bytes(kind, content, len(items), checkpoint)

    def add_bytes(self, kind: str, content: bytes, items: int = 0, checkpoint: Checkpoint = START) -> None:
        body = self._compress(content)
        first = checkpoint.position - items + 1 if kind == "entries" else 0
        self.frames.append(
            Frame(kind, len(body), len(content), digest_of(body), first, checkpoint.position, checkpoint.value.hex())
        )
        self.bodies.append(body)

    def add_snapshot(self, kept: Kept) -> None:
        body = self._compress(kept.state)
        length, size = len(body), len(kept.state)
        self.frames.append(Frame("snapshot", length, size, digest_of(body), last=kept.position, chain=kept.digest))
        self.bodies.append(body)

    def write(self, path: Path, info: BundleInfo) -> None:
        header = msgspec.json.encode(Header(info, tuple(self.frames)))
        start = MAGIC + info.format.to_bytes(2) + len(header).to_bytes(4) + header
        write_whole(path, start, blake2b(start, digest_size=DIGEST_BYTES).digest(), *self.bodies)


def batches(entries: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut entries into the lists that make a frame each."""
    batch: list[bytes] = []
    size = 0
    for encoded in entries:
        batch.append(encoded)
        size += len(encoded)
        if len(batch) == FRAME_ENTRIES or size >= FRAME_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
