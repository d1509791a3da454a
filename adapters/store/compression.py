"""Compresses bytes for the store with zstd, if that makes them smaller, and checks their length when it unpacks
them.
"""

from __future__ import annotations

from hashlib import blake2b

import zstandard

PLAIN, ZSTD = 0, 1
_LEVEL = 3
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
    """Returns the content of `size` bytes. Raises `Unpackable`; never takes more memory than `size` says."""
    content = packed
    if how == ZSTD:
        try:
            # A damaged frame header may promise gigabytes: believe it only where it says what was stored.
            if zstandard.frame_content_size(packed) != size:
                raise Unpackable("the compressed frame does not have the stored length")
            content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
        except zstandard.ZstdError as error:
            raise Unpackable(str(error)) from error
    elif how != PLAIN:
        raise Unpackable(f"unknown way of packing {how!r}")
    if len(content) != size:
        raise Unpackable(f"{len(content)} bytes where {size} were stored")
    return content
