"""`kerf churn`: how nodes came and went, and what goes round in circles."""

from __future__ import annotations

from typing import Literal

from kerf.adapters.cli.parameters import Csv, Json, Record, Since, Until


def churn(
    record: Record,
    /,
    *,
    by: Literal["reason", "pool", "workload", "type", "zone", "capacity", "hour"] = "reason",
    since: Since = "start",
    until: Until = "end",
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Show how nodes came and went, and which go round in circles.

    Below the table stand the loops, the worst first: nodes that were replaced
    again and again, pods that were evicted soon after they had come for evicted
    ones, nodes that came for pods and went without one, nodes that had drifted as
    soon as they were there, and launches that failed for the same pods.

    For example:

        kerf churn record.kerf
        kerf churn record.kerf --by hour --since -6h
        kerf churn record.kerf --by pool --json

    Parameters
    ----------
    by
        What the rows are. A reason is why a node went, or why its launch failed.
    json
        Print JSON, with the loops.
    csv
        Print CSV, without the loops.
    """
    from kerf.adapters.cli.figures import fold_into, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.loops import show_loops
    from kerf.adapters.cli.render.figures.tables import CHURN, answer_of, show
    from kerf.projections.figures.churn import churn_measures
    from kerf.projections.figures.evictions import EvictionsFold
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.loops import find_loops
    from kerf.projections.figures.measures import table

    with opened(record) as store:
        window = window_of(store, since, until)
        lives = LivesFold()
        evictions = EvictionsFold(lives)
        fold_into(store, window.position, lives, evictions)
    found = table(churn_measures(lives, window.since, window.until), by, CHURN)
    loops = find_loops(lives, window.since, window.until, evictions.again)
    answer = answer_of(found, window.since, window.until, loops=loops)
    show(answer, CHURN, "No node came or went", json=json, as_csv=csv)
    if not json and not csv:
        show_loops(loops, record)
