"""`kerf import`: a record made of what other programs have written."""

from __future__ import annotations

from pathlib import Path

from kerf.adapters.cli.parameters import Json


def import_history(*files: Path, record: Path, json: Json = False) -> None:
    """Make a record of Karpenter's log, so that log, story and explain work on it.

    The format is told by what is in a file; gzip and zstd are unpacked. Several
    files become one record, in order of time. The record is partial: it says
    what its sources do not tell, and nothing is guessed.

    For example:

        kubectl logs -n kube-system deployment/karpenter > karpenter.log
        kerf import karpenter.log --record incident.kerf
        kerf story incident.kerf default-x7k2m
        kerf import karpenter.log audit.jsonl.gz --record incident.kerf

    Parameters
    ----------
    files
        Karpenter's log (JSON lines), audit logs, lp4k's CSV, kubereplay's captures, SimKube's traces.
    record
        The record to write. One that an earlier import made is replaced; nothing else is.
    json
        Print what was read as JSON.
    """
    from kerf.adapters.cli.importing.record import import_files
    from kerf.adapters.cli.importing.text import import_text
    from kerf.adapters.cli.render.lines import print_text
    from kerf.adapters.cli.render.output import emit_json
    from kerf.engine.errors import InputError

    if not files:
        raise InputError("no file is named", hint="kerf import FILE… --record RECORD", code="KERF200")
    summary = import_files(files, record)
    if json:
        emit_json(summary)
    else:
        print_text("\n".join(import_text(summary)))
