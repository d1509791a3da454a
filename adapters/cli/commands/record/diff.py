"""`kerf diff`: what is different between two moments."""

from __future__ import annotations

from typing import Annotated

from kerf.adapters.cli.parameters import Json, Record, when


def diff(
    record: Record,
    before: Annotated[str, when("The earlier moment")],
    after: Annotated[str, when("The later moment")] = "end",
    /,
    *,
    json: Json = False,
) -> None:
    """Show what is different between two moments: objects, nodes, pods, price.

    "+" came, "-" is gone, "~" changed, field by field. What happened in between
    and was undone again is in kerf log.

    For example:

        kerf diff record.kerf 10:00 10:05
        kerf diff record.kerf -15m
        kerf diff incident.kerfb 1200 1300 --json

    Parameters
    ----------
    json
        Print JSON (docs/diff.md).
    """
    from kerf.adapters.cli.records import located, opened
    from kerf.adapters.cli.render.moment.difference import difference_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.projections.json_times import with_times
    from kerf.replay.time_travel.difference import difference_of

    with opened(record) as store:
        found = difference_of(store, located(store, before), located(store, after))
    if json:
        emit_json(with_times(found))
    else:
        difference_text(Printer(), found)
