"""`kerf at`: the state at a position or a time."""

from __future__ import annotations

from kerf.adapters.cli.parameters import Json, When


def at(record: str, when: When = "end", /, *, json: Json = False) -> None:
    """Show the state at a position or a time.

    For example:

        kerf at record.kerf 1234
        kerf at record.kerf +2h
        kerf at record.kerf 2026-05-01T10:00:00Z --json

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    when
        A position, an RFC 3339 time, "+2h" from the start, "-5m" before the end, "start" or "end".
    json
        Print JSON.
    """
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.record import summary_text
    from kerf.engine.state.load import load
    from kerf.replay.time_travel.state_summary import summarize

    with opened(record) as store:
        state = summarize(load(store, located(store, when)))
    if json:
        emit_json(state)
    else:
        summary_text(Printer(), state)
