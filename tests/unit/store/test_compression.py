"""Compression that never makes bigger, and never believes a damaged length."""

from __future__ import annotations

import os

import pytest
import zstandard

from kerf.adapters.store.compression import PLAIN, ZSTD, Unpackable, pack, unpack


@pytest.mark.parametrize("content", [b"", b"a", b"a" * 127, b"a" * 4096, os.urandom(4096)])
def test_what_is_packed_is_unpacked_and_never_larger(content: bytes) -> None:
    how, packed = pack(content)
    assert len(packed) <= len(content)
    assert unpack(how, len(content), packed) == content


def test_only_what_gets_smaller_is_compressed() -> None:
    assert pack(b"a" * 4096)[0] == ZSTD
    assert pack(os.urandom(4096))[0] == PLAIN


@pytest.mark.parametrize(
    ("how", "size", "packed"),
    [
        (PLAIN, 3, b"ab"),
        (ZSTD, 2, b"ab"),
        (ZSTD, 1 << 40, zstandard.ZstdCompressor().compress(b"a" * 10)),
        (ZSTD, 10, zstandard.ZstdCompressor(write_content_size=False).compress(b"a" * 10)),
        (7, 2, b"ab"),
    ],
)
def test_damage_is_refused(how: int, size: int, packed: bytes) -> None:
    with pytest.raises(Unpackable):
        unpack(how, size, packed)
