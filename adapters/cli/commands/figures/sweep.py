"""`kerf sweep`: a grid of configurations over many records, modelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import RECORD, Json


def sweep(
    plan: Path,
    record: Annotated[str, Parameter(help=RECORD)],
    /,
    *more: Annotated[str, Parameter(help="More records.")],
    out: Path = Path("sweep"),
    on: str = "",
    jobs: int = 0,
    anyway: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Model many configurations over many records, and rank them by cost and disruption.

    Each cell of the grid is one run of the model of kerf replay. What is done is
    kept, so an interrupted sweep goes on where it was, and a larger grid runs only
    what is new. It needs the extra analysis, and --on needs
    sweep. docs/sweep.md has the form of a plan.

    For example:

        kerf sweep plan.yaml monday.kerfb tuesday.kerfb
        kerf sweep plan.yaml week.kerf --out results --jobs 4
        kerf sweep plan.yaml *.kerfb --on tcp://scheduler:8786

    Parameters
    ----------
    plan
        A YAML file: which changes, in which combinations.
    out
        The folder of the results: a new one, or that of an earlier sweep.
    on
        Run on the Dask cluster with this scheduler: tcp://HOST:8786.
    jobs
        So many processes on this machine; 0 for all cores.
    anyway
        Also compare records whose model is too far from what was recorded.
    json
        Print JSON.
    """
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.what_if.sweep import print_swept
    from kerf.adapters.cli.sweeping.sweep import Where, sweep_records
    from kerf.engine.errors import InputError

    if jobs < 0:
        raise InputError("--jobs cannot be negative", hint="0 is for all cores", code="KERF200")
    answer = sweep_records(plan, (record, *more), out, Where(on, jobs), anyway=anyway)
    if json:
        emit_json(answer)
    else:
        print_swept(Printer(), answer)
