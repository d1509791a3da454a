"""kerf bundle: a record as one file to hand on."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter

from kerf.adapters.cli.parameters import Json
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.adapters.store.files.bundle import BundleInfo, export_bundle, inspect_bundle
from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.retention.policy import base_at, before_turn
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.engine.errors import InputError
from kerf.projections.prose.amounts import count, moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.time_travel.positions import locate

STDOUT = "-"
_Place = Annotated[str, Parameter(allow_leading_hyphen=True)]

bundle = App(name="bundle", help="Make and inspect bundles: a record as one file to hand on.")


@bundle.command
def export(
    record: _Place,
    file: _Place = "",
    /,
    *,
    since: _Place = "start",
    until: _Place = "end",
    pseudonymise: Annotated[bool, Parameter(negative="")] = False,
    salt: str = "",
    json: Json = False,
) -> None:
    """Write a record, or a part of it, as a bundle.

    A part brings the state at its beginning along, so that what is in it can be decided again.

    Examples: `kerf bundle export record.kerf incident.kerfb --pseudonymise`,
    `kerf bundle export record.kerf incident.kerfb --since -2h`,
    `kerf bundle export record.kerf incident.kerfb --since 2026-05-01T09:00:00Z --until 2026-05-01T10:00:00Z`,
    `kubectl exec deploy/kerf -- kerf bundle export - > incident.kerfb`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder. Left out, it is what KERF_STORE names.
    file
        The bundle to write; it must not exist yet. "-" is standard output.
    since
        The first position or time to take along (see kerf at).
    until
        The last position or time to take along, likewise.
    pseudonymise
        Replace names by pseudonyms, the same ones throughout the bundle.
    salt
        Keys the pseudonyms: the same salt gives the same ones in another bundle.
    json
        Print what the bundle holds as JSON.
    """
    for each in (record, file):
        if each.startswith("-") and each != STDOUT:
            raise InputError(f"Unknown option: {each}", hint="Try --help", code="KERF200")
    source, target = (record, file) if file else (_own_record(), record)
    with opened(source) as store, TemporaryDirectory() as folder:
        last = None if until == "end" else locate(store, until)
        after = 0 if since == "start" else before_turn(store, locate(store, since))
        if last is not None and last <= after:
            hint = "Give the earlier one to --since"
            raise PositionUnknown(f"--since {since} is later than --until {until}", hint=hint)
        part = after >= store.first_position()
        base = base_at(store, after) if part else None
        place = Path(target) if target != STDOUT else Path(folder) / "bundle"
        info = export_bundle(
            store, place, after=after if part else 0, until=last, base=base, pseudonymise=pseudonymise, salt=salt
        )
        if target == STDOUT:
            with place.open("rb") as made:
                shutil.copyfileobj(made, sys.stdout.buffer)
            sys.stdout.flush()
            return
    _show(info, place, json)


def _own_record() -> str:
    """The record of the controller in whose pod this runs."""
    if found := os.environ.get("KERF_STORE"):
        return found
    raise InputError("no record is named", hint="Name it before the file, or in KERF_STORE", code="KERF200")


@bundle.command
def inspect(file: Path, /, *, json: Json = False) -> None:
    """Check every byte of a bundle, and show what it holds.

    Examples: `kerf bundle inspect incident.kerfb`

    Parameters
    ----------
    file
        A .kerfb bundle.
    json
        Print JSON.
    """
    _show(inspect_bundle(file), file, json)


@bundle.command
def golden(record: str, folder: Path, /, *, guards: str, until: _Place = "end") -> None:
    """Write a record, from its beginning, as a golden folder: below a folder named golden it is a test for pytest.

    Examples: `kerf bundle golden my.kerf tests/golden/bad-morning --guards "The last spot node is replaced"`

    Parameters
    ----------
    record
        A .kerf file or a .kerfb bundle.
    folder
        The folder to write; it must not hold a record yet.
    guards
        What the case guards: the line of its README.md.
    until
        The last position or time to take along (see kerf at).
    """
    with opened(record) as store:
        write_golden(store, folder, until=None if until == "end" else locate(store, until))
    readme = folder / "README.md"
    if not readme.exists():
        with refused_by_system(readme):
            readme.write_text(f"# {folder.name}\n\n{guards}\n", encoding="utf-8")
    Printer().line(f"{folder}: run pytest on it; pytest --golden-update writes it anew, on purpose")


def _show(info: BundleInfo, file: Path, json: bool) -> None:
    if json:
        emit_json(info)
        return
    printer = Printer()
    printer.line(f"{file}: positions {info.first} to {info.last} of record {info.record}", "title")
    why = "left out, for their names" if info.sanitised else "missing in the source"  # whole NodeClasses, at least
    printer.line(f"{count(info.blobs, 'blob')}" + (f", {info.missing} {why}" if info.missing else ""))
    if info.based:
        before = f", and what is kept from before ({info.kept} of claims and decisions)" if info.kept else ""
        printer.line(f"it begins with the state after position {info.first - 1}{before}")
    printer.line(f"made {moment(info.created)} by kerf {info.engine}, format {info.format}")
    printer.line(f"chain {info.chain}")
    printer.line("names are pseudonyms" if info.sanitised else "names are as they were")
