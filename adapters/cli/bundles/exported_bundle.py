"""Making a bundle of a record, or of a part of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from kerf.adapters.cli.records import beginning_at, located, opened
from kerf.adapters.cli.render.lines import print_error
from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.store.files.bundle import export_bundle
from kerf.adapters.store.files.bundle_format import BundleInfo
from kerf.adapters.store.open import AnyStore
from kerf.adapters.store.pseudonyms.key_file import kept_key
from kerf.adapters.store.retention.policy import base_at, before_turn, end_of_turn
from kerf.engine.errors import InputError
from kerf.replay.errors import PositionUnknown

STDOUT = "-"
KEY_SUFFIX = ".key"


class Part(Struct, frozen=True):
    """Which part of a record to take along, whether names become pseudonyms, and the file with their key, as
    `kerf bundle export` has it.
    """

    since: str
    until: str
    pseudonymise: bool
    key: Path | None = None


def export_to_file(record: str, file: Path, part: Part) -> BundleInfo:
    """Write a bundle, and the key of its pseudonyms beside it. Raises StoreError, InputError, and PositionUnknown for
    a part that ends before it begins.
    """
    with opened(record) as store, _key(part, file.with_name(file.name + KEY_SUFFIX)) as key:
        return _export(store, file, part, key)


def export_to_stdout(record: str, part: Part) -> None:
    """Write a bundle to standard output once it is whole."""
    with opened(record) as store, TemporaryDirectory() as folder, _key(part, None) as key:
        file = Path(folder) / "bundle"
        _export(store, file, part, key)
        with file.open("rb") as bundle:
            shutil.copyfileobj(bundle, sys.stdout.buffer)
        sys.stdout.flush()


def record_of_controller() -> str:
    """The record of the controller in whose pod this runs. Raises InputError (KERF200) without KERF_STORE."""
    if record := os.environ.get("KERF_STORE"):
        return record
    hint = "Write kerf bundle export RECORD FILE, or name the record in KERF_STORE"
    raise InputError("one name alone is the file to write, and no record is named", hint=hint, code="KERF200")


@contextmanager
def _key(part: Part, beside: Path | None) -> Iterator[bytes]:
    """The key of the pseudonyms, from the file that is named, or from a new one beside the bundle. Empty without
    either: the bundle gets a key that is not kept.
    """
    if part.key is not None and not part.pseudonymise:
        raise InputError("--key is the key of pseudonyms", hint="Give --pseudonymise too", code="KERF200")
    file = part.key or beside
    if not part.pseudonymise:
        yield b""
    elif file is None:
        yield b""
        print_error("Note: the key of the pseudonyms is not kept. --key FILE keeps it")
    else:
        with kept_key(file, reuse=part.key is not None) as key:
            yield key
        print_error(f"Note: the key of the pseudonyms is in {file}. Keep it to yourself")


def _export(store: AnyStore, file: Path, part: Part, key: bytes) -> BundleInfo:
    last = None if part.until == "end" else end_of_turn(store, located(store, part.until).position)
    after = 0 if part.since == "start" else before_turn(store, beginning_at(store, part.since).position)
    if last is not None and last <= after:
        hint = "Give the earlier one to --since"
        raise PositionUnknown(f"--since {part.since} is later than --until {part.until}", hint=hint)
    cuts_beginning = after >= store.first_position()
    base = base_at(store, after) if cuts_beginning else None
    with progress_line("taken along up to position") as progress:
        info = export_bundle(
            store,
            file,
            after=after if cuts_beginning else 0,
            until=last,
            base=base,
            pseudonymise=part.pseudonymise,
            key=key,
            progress=progress,
        )
    if info.unknown and part.pseudonymise:
        told = "What they say is left out, because this kerf does not know which names are in it"
        print_error(f"Note: entries of a newer kerf: {info.unknown:,}. {told}")
    return info
