"""The file with the key of a bundle's pseudonyms: who has it and the record can map pseudonyms back to names.

It holds 32 random bytes as text, for its owner alone (0600).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes

from kerf.adapters.store.files.private_files import write_whole
from kerf.engine.errors import InputError

KEY_BYTES = 32
_SHORTEST, _LONGEST = 16, 4096


@contextmanager
def kept_key(path: Path, *, reuse: bool) -> Iterator[bytes]:
    """Yields a new key and keeps it at `path`; with `reuse` the key that is there already. A new file goes again if
    the work with it fails.

    Raises RecordExists (KERF114) for a file that is not to be used again, InputError (KERF207) for one that is no key.
    """
    if reuse and path.exists():
        yield read_key(path)
        return
    written = f"{token_bytes(KEY_BYTES).hex()}\n".encode()
    write_whole(path, written)
    try:
        yield _of(written)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def read_key(path: Path) -> bytes:
    """Returns the key in a file: any file will do that is long enough. Raises InputError (KERF207)."""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        hint = "Give the file that kerf bundle export wrote beside the bundle"
        raise InputError(
            f"the key cannot be read: {error.strerror}", where=str(path), hint=hint, code="KERF207"
        ) from None
    if not _SHORTEST <= len(content) <= _LONGEST:
        hint = f"Give a file of {_SHORTEST} to {_LONGEST} bytes that nobody can guess, or leave out --key for a new one"
        raise InputError("the file is no key of pseudonyms", where=str(path), hint=hint, code="KERF207")
    return _of(content)


def _of(content: bytes) -> bytes:
    return blake2b(content.strip(), digest_size=KEY_BYTES).digest()
