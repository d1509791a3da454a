"""`kerf verify`: is every recorded decision made again as it was?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from kerf.adapters.cli.parameters import Jobs, Json, Record


def verify(
    record: Record,
    /,
    *,
    checkpoint: tuple[str, ...] = (),
    changes: Path | None = None,
    write_changes: Path | None = None,
    limit: Annotated[int, Parameter(validator=Number(gte=0))] = 20,
    jobs: Jobs = 0,
    turn: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    json: Json = False,
) -> int:
    """Decide every recorded decision again, and compare byte for byte.

    Decisions of an older version of kerf's deciders are made again where --changes
    declares that they may differ; without it they are unsupported.

    Exit codes: 0 same, or different as declared, 1 diverged, 3 corrupt, 4 parts
    need another version of kerf.

    For example:

        kerf verify incident.kerfb
        kerf verify record.kerf --json
        kerf verify record.kerf --turn 1234
        kerf verify old.kerfb --changes changes.yaml
        kerf verify record.kerf
            --checkpoint 102:9c0c5dfe63f8a138c9383ee501d98696

    Parameters
    ----------
    checkpoint
        POSITION:CHAIN that somebody kept: the record up to there must be the same (docs/security.md).
    changes
        Which deciders' older versions may differ, and why (docs/check.md).
    write_changes
        Write such a file: everything that differs in older decisions. Say in it what was changed on purpose.
    limit
        Show at most so many divergences, and so many declared differences; all are counted.
    turn
        Decide only the turn again that this position belongs to, on the state that the record had before it.
    json
        Print the whole report as JSON.
    """
    from kerf.adapters.cli.boundary import reader_may_leave
    from kerf.adapters.cli.input.declared_changes import declared_changes, write_declaration
    from kerf.adapters.cli.records import compare_with_checkpoint, opened, telling_share
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.progress import progress_line
    from kerf.adapters.cli.workers import workers_on
    from kerf.replay.verify.verify import verify as decide_again

    if turn:
        return _verify_turn(record, turn, json=json)
    declared = declared_changes(changes, write_changes)
    with (
        opened(record, tells_newer=True, decides=True) as store,
        workers_on(record, jobs) as workers,
        progress_line("decided again up to position") as progress,
    ):
        kept = [compare_with_checkpoint(store, text).position for text in checkpoint]
        tell = telling_share(store, progress)
        report = decide_again(store, keep=limit, progress=tell, changes=declared, workers=workers)
    with reader_may_leave():
        if json:
            emit_json(report)
        else:
            for position in kept:
                Printer().line(f"as the checkpoint at position {position} says", "good")
            from kerf.adapters.cli.render.record import report_text

            report_text(Printer(), report)
    if write_changes is not None:
        write_declaration(report, write_changes)
    return report.exit_code


def _verify_turn(record: str, position: int, *, json: bool) -> int:
    """Decide one turn again."""
    from kerf.adapters.cli.boundary import reader_may_leave
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.replay.verify.one_turn import verify_turn

    with opened(record, tells_newer=True) as store:
        report = verify_turn(store, position)
    with reader_may_leave():
        if json:
            emit_json(report)
        else:
            from kerf.adapters.cli.render.record import turn_report_text

            turn_report_text(Printer(), report)
    return report.exit_code
