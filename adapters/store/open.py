"""Opens a record in any form: a SQLite file, a PostgreSQL database, a bundle, or a golden folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kerf.adapters.store.chained import ChainedStore, Mode
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.files.bundle_format import MAGIC
from kerf.adapters.store.files.golden import RECORD, GoldenStore
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import InputError, extra_hint
from kerf.engine.passwords import without_password
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.errors import NotARecord, RecordNotFound, StoreError, StoreReadOnly

_SQLITE_MAGIC = b"SQLite format 3\x00"

_POSTGRES = ("postgresql://", "postgres://")
_FORMS = f"Give a .kerf file, a .kerfb bundle, or a folder with a {RECORD}"
_MOST_SUGGESTED = 3
_SQLITE = "sqlite:///"  # the last slash begins the path

AnyStore = ChainedStore | BundleStore | GoldenStore


def open_record(path: str | Path, mode: Mode = "read", *, codec: Codec = CODEC) -> AnyStore:
    """Opens the store at `path`: a URL (postgresql://…, sqlite:///absolute/path), or a file recognised by its first
    bytes.

    Only databases can be opened for writing; mode "create" makes one. Raises what the store's class raises.
    """
    if in_database(path):
        return _postgres(str(path), mode, codec)
    place = file_of(path)
    if mode == "create":
        return SQLiteStore(place, mode, codec=codec)
    if not str(path).strip():
        raise RecordNotFound("the name of the record is empty", hint="Is a variable of your shell not set?")
    if place.is_dir():
        _require_golden(place)
        return GoldenStore(_for_reading(place, mode), codec=codec)
    shown = without_password(str(path))
    if not place.is_file():
        if place.exists():
            raise NotARecord("this is a pipe or a device", where=shown, hint="Write it to a file, and give that one")
        raise RecordNotFound("there is no such file or folder", where=shown, hint="Check the record's path")
    with place.open("rb") as file:
        start = file.read(len(_SQLITE_MAGIC))
    if start == _SQLITE_MAGIC:
        return SQLiteStore(place, mode, codec=codec)
    if start.startswith(MAGIC):
        return BundleStore(_for_reading(place, mode), codec=codec)
    if not start:
        raise NotARecord("the file is empty", where=shown, hint="It was not written to the end: ask for it again")
    raise NotARecord(
        "the file is neither a record nor a bundle",
        where=shown,
        hint=_FORMS,
    )


def _require_golden(folder: Path) -> None:
    """Requires a folder to be a golden record; the records that are in it otherwise are named."""
    if not (folder / RECORD).is_file():
        inside: list[Path] = []
        with suppress(OSError):  # of a folder that may not be read
            inside = sorted(file for file in folder.iterdir() if _looks_like_one(file))[:_MOST_SUGGESTED]
        hint = f"Is it {' or '.join(map(str, inside))}?" if inside else _FORMS
        raise NotARecord(f"the folder has no {RECORD}", where=str(folder), hint=hint)


def _looks_like_one(file: Path) -> bool:
    return file.suffix in (".kerf", ".kerfb") and file.is_file()


def file_of(path: str | Path) -> Path:
    """Returns the file or folder that a record's path or URL names."""
    return Path(str(path).removeprefix(_SQLITE[:-1])) if str(path).startswith(_SQLITE) else Path(path)


def in_database(path: str | Path) -> bool:
    """Returns whether a URL names a record on a server."""
    return str(path).startswith(_POSTGRES)


def require_url(url: str) -> None:
    """Requires a URL for a controller's record, so that no path depends on the folder in which the process was
    started.
    """
    if not url.startswith((_SQLITE, *_POSTGRES)):
        hint = "Write sqlite:///var/lib/kerf/record.kerf or postgresql://user@host/database"
        raise InputError(
            "a store is named by a URL", where=f"--store {without_password(url)}", hint=hint, code="KERF333"
        )


def _postgres(url: str, mode: Mode, codec: Codec) -> ChainedStore:
    try:
        from kerf.adapters.store.postgres.store import PostgresStore
    except ImportError as error:
        raise StoreError(
            f"records in PostgreSQL need another package ({error})",
            hint=extra_hint("postgres"),
        ) from error
    return PostgresStore(url, mode, codec=codec)


def _for_reading(path: Path, mode: Mode) -> Path:
    if mode != "read":
        raise StoreReadOnly(
            "only a .kerf file or a database can be written", where=str(path), hint="Open it for reading"
        )
    return path
