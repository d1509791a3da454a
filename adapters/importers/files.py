"""The content of a file: unpacked, and no larger than kerf reads (F-1)."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from pathlib import Path
from typing import BinaryIO

import zstandard

from kerf.adapters.importers.errors import TooLarge, Unreadable

MAX_BYTES = 512 << 20
"""Unpacked. A log of this size has some million lines."""
_PART = 1 << 20
_BOMS_OF_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"


def content_of(path: Path) -> bytes:
    """The bytes of a file, unpacked if it is gzip or zstd, as UTF-8 without a byte order mark. Raises Unreadable
    (KERF361), TooLarge (KERF362), and OSError.
    """
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        try:
            data = _read(_unpacked(file, start), path)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise Unreadable(
                f"the packed file is damaged or cut off: {error}",
                where=str(path),
                hint="Unpack it by hand, or fetch it again",
            ) from error
    return _as_utf8(data, path) if data.startswith(_BOMS_OF_UTF16) else data.removeprefix(_BOM)


def _as_utf8(data: bytes, path: Path) -> bytes:
    """The text of a file in UTF-16, as PowerShell's `>` writes it."""
    try:
        return data.decode("utf-16").encode()
    except UnicodeError as error:
        hint = "Write it anew as UTF-8"
        raise Unreadable("it begins as UTF-16 and goes on otherwise", where=str(path), hint=hint) from error


def _unpacked(file: BinaryIO, start: bytes) -> BinaryIO:
    if start.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=file))
    if start == _ZSTD:
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def _read(file: BinaryIO, path: Path) -> bytes:
    data = bytearray()  # to read so much at once would take the memory at once
    while part := file.read(_PART):
        data += part
        if len(data) > MAX_BYTES:
            hint = "Cut it to the hours that matter, for example with split -C 400m"
            raise TooLarge(f"it holds more than {MAX_BYTES >> 20} MiB", where=str(path), hint=hint)
    return bytes(data)
