"""Compresses bytes for the store with zstd, if that makes them smaller, and checks their length when it unpacks
them.
"""

from __future__ import annotations

from hashlib import blake2b

import zstandard

PLAIN, ZSTD = 0, 1
_LEVEL = 3
LARGEST = 256 << 20
"""A frame, blob, base or snapshot has at most so many bytes."""
_SMALL, _RATIO = 8 << 20, 200  # what is unpacked is small, or at most so many times as large as what is packed
_PIECE, _WINDOW = 1 << 20, 64 << 20
_SMALLEST = 128  # below this many bytes a zstd frame hardly ever wins


class Unpackable(ValueError):
    """The packed bytes are damaged."""


def digest_of(content: bytes) -> str:
    """Returns the content address: the same as `kerf.engine.model.content_digest.content` gives for the encoded
    object.
    """
    return blake2b(content, digest_size=16).hexdigest()


def pack(content: bytes, level: int = _LEVEL) -> tuple[int, bytes]:
    """Returns how the content is packed (`PLAIN` or `ZSTD`), and the packed bytes."""
    if len(content) >= _SMALLEST:
        packed = zstandard.ZstdCompressor(level=level).compress(content)
        if len(packed) < len(content):
            return ZSTD, packed
    return PLAIN, content


def unpack(how: int, size: int, packed: bytes) -> bytes:
    """Returns the content of `size` bytes. Raises `Unpackable`; never takes more memory than `size` says.

    A size that no record has (see `most_unpacked`) is not believed.
    """
    content = packed
    if how == ZSTD:
        if not 0 <= size <= most_unpacked(len(packed)):
            raise Unpackable(f"{len(packed)} bytes cannot stand for {size}")
        try:
            # A damaged frame header may promise gigabytes: believe it only where it says what was stored.
            if zstandard.frame_content_size(packed) != size:
                raise Unpackable("the compressed frame does not have the stored length")
            content = _streamed(packed, size)
        except zstandard.ZstdError as error:
            raise Unpackable(str(error)) from error
    elif how != PLAIN:
        raise Unpackable(f"unknown way of packing {how!r}")
    if len(content) != size:
        raise Unpackable(f"{len(content)} bytes where {size} were stored")
    return content


def most_unpacked(packed: int) -> int:
    """Returns how many bytes so many packed ones may stand for. Records of 0.1.0 reach 17 to one."""
    return min(LARGEST, _SMALL + _RATIO * packed)


def _streamed(packed: bytes, size: int) -> bytes:
    """Decompresses piece by piece, and no more than `size`: memory is taken for what is there."""
    pieces, length = [], 0
    with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed) as reader:
        while length <= size and (piece := reader.read(min(_PIECE, size - length + 1))):
            pieces.append(piece)
            length += len(piece)
    return b"".join(pieces)
