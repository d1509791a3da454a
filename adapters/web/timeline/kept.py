"""Keeps the picture of a record in the user's cache folder, so that it is read once.

A file is named by what it was made of: the record's last position, and what only this record has there. So that of
another record, or of one that was changed, is not found. Nothing beside the record is written or read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

import kerf
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.files.private_files import write_whole
from kerf.adapters.store.open import AnyStore
from kerf.engine.errors import KerfError
from kerf.projections.explorer.drawn import VERSION, Drawn

MOST_FILES = 16
_DIGEST = 16


def read_kept(store: AnyStore) -> Drawn | None:
    """Return the picture that is kept of the whole record; None if there is none."""
    place = _place(store)
    with suppress(OSError, msgspec.MsgspecError):
        data = place.read_bytes() if place is not None else b""
        if data[:_DIGEST] == _digest(data[_DIGEST:]) and data:
            return msgspec.msgpack.decode(data[_DIGEST:], type=Drawn)
    return None


def keep(store: AnyStore, drawn: Drawn) -> None:
    """Keep the picture, if that can be: a cache that cannot be written is none. The oldest ones go."""
    place = _place(store)
    if place is None or drawn.position != store.last_position():
        return
    body = msgspec.msgpack.encode(drawn)
    with suppress(OSError, KerfError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, _digest(body), body, replace=True)
        files = sorted(place.parent.glob("*.drawn"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MOST_FILES:]:
            file.unlink(missing_ok=True)


def close_together(drawn: Drawn) -> Drawn:
    """Return the same picture, made at once. What a fold makes over half a minute lies all over the memory: to read it
    takes half as long again."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(drawn), type=Drawn)


def folder() -> Path:
    """Return where pictures are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kerf" / "explorer"


def _place(store: AnyStore) -> Path | None:
    """Return where the picture is to be; None for a golden folder, which is short, and for a damaged record."""
    if not isinstance(store, ChainedStore | BundleStore):
        return None
    with suppress(KerfError):
        last = store.last_position()
        named = f"{VERSION} {kerf.__version__} {store.record_id} {last} {store.seal(last)}"
        return folder() / f"{_digest(named.encode()).hex()}.drawn"
    return None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()
