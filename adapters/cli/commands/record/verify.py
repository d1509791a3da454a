"""`kerf verify`: is every recorded decision made again as it was?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from kerf.adapters.cli.parameters import Json, Record


def verify(
    record: Record,
    /,
    *,
    checkpoint: tuple[str, ...] = (),
    limit: Annotated[int, Parameter(validator=Number(gte=0))] = 20,
    json: Json = False,
) -> int:
    """Decide every recorded decision again, and compare byte for byte.

    Exit codes: 0 same, 1 diverged, 3 corrupt, 4 parts need another version of
    kerf.

    For example:

        kerf verify incident.kerfb
        kerf verify record.kerf --json
        kerf verify record.kerf
            --checkpoint 102:9c0c5dfe63f8a138c9383ee501d98696

    Parameters
    ----------
    checkpoint
        POSITION:CHAIN that somebody kept: the record up to there must be the same (docs/security.md).
    limit
        Show at most so many divergences; all are counted.
    json
        Print the whole report as JSON.
    """
    from kerf.adapters.cli.records import compare_with_checkpoint, opened
    from kerf.adapters.cli.render.output import Printer, emit_json, progress_line
    from kerf.adapters.cli.render.record import report_text
    from kerf.replay.verify.verify import verify as decide_again

    with opened(record, tells_newer=True) as store, progress_line("decided again up to position") as progress:
        kept = [compare_with_checkpoint(store, text).position for text in checkpoint]
        report = decide_again(store, keep=limit, progress=progress)
    if json:
        emit_json(report)
    else:
        for position in kept:
            Printer().line(f"as the checkpoint at position {position} says", "good")
        report_text(Printer(), report)
    return report.exit_code
