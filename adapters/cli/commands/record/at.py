"""`kerf at`: the state at a position or a time."""

from __future__ import annotations

from kerf.adapters.cli.parameters import AsOf, Json, Record


def at(record: Record, when: AsOf = "end", /, *, json: Json = False) -> None:
    """Show the state at a position or a time.

    For example:

        kerf at record.kerf 1234
        kerf at record.kerf +1d2h
        kerf at record.kerf 10:00
        kerf at record.kerf 2026-05-01T10:00:00Z --json

    Parameters
    ----------
    json
        Print JSON.
    """
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.record import summary_text
    from kerf.engine.state.load import load
    from kerf.projections.json_times import with_times
    from kerf.replay.time_travel.state_summary import summarize

    with opened(record) as store:
        moment = located(store, when)
        state = summarize(load(store, moment.position), moment.at)
    if json:
        emit_json(with_times(state))
    else:
        summary_text(Printer(), state)
