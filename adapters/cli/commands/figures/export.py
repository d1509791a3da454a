"""`kerf export`: the tables of records as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from kerf.adapters.cli.parameters import RECORD, Json
from kerf.engine.errors import InputError


def export(
    record: Annotated[str, Parameter(help=RECORD)],
    /,
    *more: Annotated[str, Parameter(help="More records, in the same tables.")],
    parquet: Path | None = None,
    csv: Path | None = None,
    json: Json = False,
) -> None:
    """Write the tables of records as Parquet or CSV, for other programs.

    Each table of kerf sql becomes one file in a new folder, which its owner alone
    can read. It needs the extra analysis. docs/sql.md has the
    tables and their columns.

    For example:

        kerf export record.kerf --parquet tables
        kerf export monday.kerfb tuesday.kerfb --csv tables

    Parameters
    ----------
    parquet
        The folder to make for files of Parquet. Nothing may be there yet.
    csv
        The folder to make for files of CSV.
    json
        Print JSON.
    """
    from kerf.adapters.cli.analysis.table_files import export_tables
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.output import emit_json

    folder = parquet or csv
    if folder is None or (parquet and csv):
        hint = "kerf export RECORD --parquet FOLDER, or --csv FOLDER"
        raise InputError("one folder is needed, for Parquet or for CSV", hint=hint, code="KERF200")
    form: Literal["parquet", "csv"] = "parquet" if parquet else "csv"
    files = [str(file) for file in export_tables(folder, form, (record, *more))]
    if json:
        emit_json({"files": files})
    else:
        print_text(f"{folder}: {', '.join(Path(file).name for file in files)}")
