"""Writes files of the user's whole or not at all, and touches nothing that kerf did not make.

A new file grows under a name of its own beside its place: made anew (O_EXCL), for its owner alone (0600), with a name
that nobody can guess. Then it moves to its place in one step. A link, a pipe or a device at that place is refused.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.engine.record.errors import RecordExists, SpecialFile, StoreLocked

_OWNER_FILE, OWNER_FOLDER = 0o600, 0o700
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOGS = ("-wal", "-shm")
"""SQLite's own files beside a database."""
_INSIDE = "record"


def regular_file(path: Path) -> os.stat_result | None:
    """Returns what stands at a path, None for nothing. Raises `SpecialFile` (KERF119) unless it is a regular file."""
    with refused_by_system(path):
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
    if stat.S_ISREG(found.st_mode):
        return found
    kinds = ((stat.S_ISLNK, "link"), (stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
    kind = next((word for matches, word in kinds if matches(found.st_mode)), "device")
    hint = "Name a new file, or the file that it stands for; kerf writes to files alone"
    raise SpecialFile(f"a {kind} is here, and no file", where=str(path), hint=hint)


def write_whole(path: Path, *content: bytes, replace: bool = False) -> None:
    """Writes a file: all of it, or nothing.

    Raises `RecordExists` if something is at `path`, unless `replace` says that a file there may go. Raises
    `SpecialFile`, or another `StoreError` if it cannot be written.
    """
    found = regular_file(path)
    made = path.with_name(_name(path))
    with refused_by_system(path):
        try:
            with os.fdopen(os.open(made, os.O_WRONLY | _NEW, _OWNER_FILE), "wb") as file:
                file.writelines(content)
                file.flush()
                os.fsync(file.fileno())
            if replace and found is not None:
                made.replace(path)
            else:
                _move_to_free_place(made, path)
        finally:
            with suppress(OSError):
                made.unlink()


def make_empty(path: Path) -> None:
    """Makes an empty file for its owner alone; an empty one that is there stays. Raises as `write_whole` does."""
    found = regular_file(path)
    if found is None:
        with refused_by_system(path):
            os.close(os.open(path, os.O_WRONLY | _NEW, _OWNER_FILE))
    elif found.st_size:
        raise RecordExists("there is a file already", where=str(path), hint="Give another name")


@contextmanager
def private_folder(path: Path) -> Iterator[Path]:
    """Yields the path of a database in a locked folder of its own beside `path`, where it may grow.

    Removes the folder at the end, with what SQLite made in it and nothing else. So are those of killed processes that
    wrote the same file. Raises StoreLocked (KERF106) while another process writes it, and other `StoreError`s.
    """
    if regular_file(path) is None:
        for log in _logs(path):
            raise RecordExists("a log without its record is here", where=str(log), hint="Move it away first")
    folder = path.with_name(_name(path))
    with refused_by_system(path):
        folder.mkdir(mode=OWNER_FOLDER)
        held = os.open(folder, _FOLDER)
    try:
        with refused_by_system(path):
            fcntl.flock(held, fcntl.LOCK_EX)
            if not folder.exists():
                raise _written_elsewhere(path)  # it took the folder for one of a killed process
            _remove_leftovers(path, but=folder)
        yield folder / _INSIDE
    finally:
        _remove(folder, held)
        os.close(held)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields a folder for its owner alone, which stands at `path` once the block has ended well, with its files.

    The files are written to it under a name of its own beside `path`. Raises `RecordExists` if something is at `path`,
    `SpecialFile` for a link, and another `StoreError` if it cannot be written. Nothing is left then.
    """
    _require_free(path)
    growing = path.with_name(_name(path))
    with refused_by_system(path):
        growing.mkdir(mode=OWNER_FOLDER)
    try:
        yield growing
        with refused_by_system(path):
            for file in growing.iterdir():
                file.chmod(_OWNER_FILE)
            _require_free(path)
            growing.rename(path)
    finally:
        if growing.exists():
            shutil.rmtree(growing, ignore_errors=True)


def _require_free(path: Path) -> None:
    """Raises `RecordExists` or `SpecialFile` if something is at a path."""
    with refused_by_system(path):
        folder = path.is_dir() and not path.is_symlink()
    if folder or regular_file(path) is not None:
        what = "folder" if folder else "file"
        raise RecordExists(f"there is a {what} already", where=str(path), hint="Name a new folder")


def force(path: Path) -> None:
    """Forces a file's content to the disk."""
    with refused_by_system(path), path.open("rb") as file:
        os.fsync(file.fileno())


def move(fresh: Path, path: Path, replaces: os.stat_result | None) -> None:
    """Moves a finished database to its place: a free one, or that of the file `replaces`.

    Raises `RecordExists` if something else came there meanwhile.
    """
    found = regular_file(path)
    with refused_by_system(path):
        if replaces is None or found is None or not _same(found, replaces):
            _move_to_free_place(fresh, path)
            return
        for log in _logs(path):  # of the record that goes: SQLite would take it for the new one's
            log.unlink()
        fresh.replace(path)


def _logs(path: Path) -> list[Path]:
    """SQLite's logs beside a database. Raises `SpecialFile`."""
    return [log for log in (Path(f"{path}{suffix}") for suffix in _LOGS) if regular_file(log) is not None]


def _same(found: os.stat_result, before: os.stat_result) -> bool:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) == (
        before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns,
    )  # fmt: skip


def _move_to_free_place(made: Path, path: Path) -> None:
    try:
        os.link(made, path, follow_symlinks=False)
    except FileExistsError as error:
        raise RecordExists("there is a file already", where=str(path), hint="Give another name") from error
    except OSError:  # a file system without hard links
        if regular_file(path) is not None:
            raise RecordExists("there is a file already", where=str(path), hint="Give another name") from None
        made.replace(path)
    else:
        made.unlink()


def _name(path: Path) -> str:
    """A name that nobody can guess, of one length however long the file's own is."""
    return f"{_beginning(path)}{token_hex(12)}.part"


def _beginning(path: Path) -> str:
    return f".kerf-{blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}-"


def _remove_leftovers(path: Path, *, but: Path) -> None:
    """Removes the folders that killed processes left. Raises StoreLocked if one belongs to a process that still
    writes.
    """
    ours = re.compile(re.escape(_beginning(path)) + r"[0-9a-f]{24}\.part")
    for folder in path.parent.iterdir():
        if folder.name == but.name or not ours.fullmatch(folder.name):
            continue
        try:
            held = os.open(folder, _FOLDER)
        except OSError:
            continue  # a link, a file, somebody else's, or removed meanwhile
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder, held)
        except BlockingIOError as error:
            raise _written_elsewhere(path) from error
        finally:
            os.close(held)


def _written_elsewhere(path: Path) -> StoreLocked:
    hint = "Wait for it, or give another file"
    return StoreLocked("another process is writing this record", where=str(path), hint=hint)


def _remove(folder: Path, held: int) -> None:
    """Removes a folder that kerf made, with the files that SQLite made in it. A folder with anything else stays."""
    with suppress(OSError):
        names = [_INSIDE + suffix for suffix in ("", *_LOGS, "-journal")]
        if set(os.listdir(held)) <= set(names):
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=held)
            folder.rmdir()
