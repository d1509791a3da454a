"""kerf bundle: a record as one file to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from kerf.adapters.cli.output import Printer, emit_json
from kerf.adapters.cli.record import Json, opened
from kerf.adapters.store.bundle import BundleInfo, export_bundle, inspect_bundle
from kerf.adapters.store.faults import refused_by_system
from kerf.adapters.store.golden import write_golden
from kerf.projections.prose import count, moment
from kerf.replay.at import locate

bundle = App(name="bundle", help="Make and inspect bundles: a record as one file to hand on.")


@bundle.command
def export(
    record: str,
    file: Path,
    /,
    *,
    until: str = "end",
    pseudonymise: Annotated[bool, Parameter(negative="")] = False,
    salt: str = "",
    json: Json = False,
) -> None:
    """Write a record, from its beginning, as a bundle.

    Examples: `kerf bundle export record.kerf incident.kerfb --pseudonymise`,
    `kerf bundle export record.kerf incident.kerfb --until 2026-05-01T10:00:00Z`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    file
        The bundle to write; it must not exist yet.
    until
        The last position or time to take along (see kerf at).
    pseudonymise
        Replace names by pseudonyms, the same ones throughout the bundle.
    salt
        Keys the pseudonyms: the same salt gives the same ones in another bundle.
    json
        Print what the bundle holds as JSON.
    """
    with opened(record) as store:
        last = None if until == "end" else locate(store, until)
        info = export_bundle(store, file, until=last, pseudonymise=pseudonymise, salt=salt)
    _show(info, file, json)


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
def golden(record: str, folder: Path, /, *, guards: str, until: str = "end") -> None:
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
    printer.line(f"{count(info.blobs, 'blob')}" + (f", {info.missing} missing in the source" if info.missing else ""))
    printer.line(f"made {moment(info.created)} by kerf {info.engine}, format {info.format}")
    printer.line(f"chain {info.chain}")
    printer.line("names are pseudonyms" if info.sanitised else "names are as they were")
