"""Making a bundle of a record, or of a part of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from kerf.adapters.cli.records import opened
from kerf.adapters.store.files.bundle import BundleInfo, export_bundle
from kerf.adapters.store.open import AnyStore
from kerf.adapters.store.retention.policy import base_at, before_turn
from kerf.engine.errors import InputError
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.positions import locate

STDOUT = "-"


class Part(Struct, frozen=True):
    """Which part of a record to take along, and whether names become pseudonyms, as `kerf bundle export` has it."""

    since: str
    until: str
    pseudonymise: bool
    salt: str


def export_to_file(record: str, file: Path, part: Part) -> BundleInfo:
    """Write a bundle. Raises StoreError, and PositionUnknown for a part that ends before it begins."""
    with opened(record) as store:
        return _export(store, file, part)


def export_to_stdout(record: str, part: Part) -> None:
    """Write a bundle to standard output once it is whole."""
    with opened(record) as store, TemporaryDirectory() as folder:
        file = Path(folder) / "bundle"
        _export(store, file, part)
        with file.open("rb") as bundle:
            shutil.copyfileobj(bundle, sys.stdout.buffer)
        sys.stdout.flush()


def record_of_controller() -> str:
    """The record of the controller in whose pod this runs. Raises InputError (KERF200) without KERF_STORE."""
    if record := os.environ.get("KERF_STORE"):
        return record
    raise InputError("no record is named", hint="Name it before the file, or in KERF_STORE", code="KERF200")


def _export(store: AnyStore, file: Path, part: Part) -> BundleInfo:
    last = None if part.until == "end" else locate(store, part.until)
    after = 0 if part.since == "start" else before_turn(store, locate(store, part.since))
    if last is not None and last <= after:
        hint = "Give the earlier one to --since"
        raise PositionUnknown(f"--since {part.since} is later than --until {part.until}", hint=hint)
    cuts_beginning = after >= store.first_position()
    return export_bundle(
        store,
        file,
        after=after if cuts_beginning else 0,
        until=last,
        base=base_at(store, after) if cuts_beginning else None,
        pseudonymise=part.pseudonymise,
        salt=part.salt,
    )
