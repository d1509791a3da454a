"""`kerf import`: a record made of what other programs have written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Json


def import_history(
    *files: Path,
    record: Path | None = None,
    timeline: Path | None = None,
    jobs_run_for: Annotated[str, Parameter(help="How long pods of Jobs run whose end is not told, such as 5m.")] = "",
    json: Json = False,
) -> None:
    """Make a record of Karpenter's log, so that log, story and explain work on it.

    The format is told by what is in a file; gzip and zstd are unpacked. Several
    files become one record, in order of time. The record is partial: it says
    what its sources do not tell, and nothing is guessed.

    With --timeline, the workloads of captures, traces and audit logs become a
    Timeline: kerf simulate runs them under NodePools of yours.

    For example:

        kubectl logs -n kube-system deployment/karpenter > karpenter.log
        kerf import karpenter.log --record incident.kerf
        kerf story incident.kerf default-x7k2m
        kerf import karpenter.log audit.jsonl.gz --record incident.kerf
        kerf import capture.json --timeline week.yaml --jobs-run-for 5m
        kerf simulate nodepools.yaml week.yaml --record week.kerf

    Parameters
    ----------
    files
        Karpenter's log (JSON lines), audit logs, lp4k's CSV, kubereplay's captures, SimKube's traces.
    record
        The record to write. One that an earlier import made is replaced; nothing else is.
    timeline
        The Timeline to write, a new file. Jobs whose end is not told are left out, unless --jobs-run-for is given.
    json
        Print what was read as JSON.
    """
    from kerf.adapters.cli.importing.record import import_files
    from kerf.adapters.cli.importing.text import import_text
    from kerf.adapters.cli.importing.timeline_file import timeline_text, write_timeline
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.output import emit_json
    from kerf.engine.errors import InputError
    from kerf.engine.model.durations import parse_go_duration

    if not files:
        raise InputError("no file is named", hint="kerf import FILE… --record RECORD", code="KERF200")
    if record is None and timeline is None:
        raise InputError("kerf import needs --record or --timeline", hint="Try --help", code="KERF200")
    try:
        runs = parse_go_duration(jobs_run_for) if jobs_run_for else 0
    except InputError as error:
        raise InputError(error.message, where="--jobs-run-for", hint=error.hint, code=error.code) from error
    made = write_timeline(files, timeline, runs) if timeline is not None else None
    summary = import_files(files, record) if record is not None else None
    if json:
        emit_json(summary if made is None else made if summary is None else {"record": summary, "timeline": made})
        return
    lines = [*(import_text(summary) if summary is not None else ()), *(timeline_text(made) if made is not None else ())]
    print_text("\n".join(lines))
