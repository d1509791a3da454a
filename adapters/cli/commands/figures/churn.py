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

    Unused are nodes that went without having run a pod but those of DaemonSets.
    Hours lived are those of the nodes that are gone, from launch to end.

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
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.projections.figures.churn import UNUSED, churn_measures
    from kerf.projections.figures.evictions import EvictionsFold
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.loops import UNUSED as UNUSED_LOOP
    from kerf.projections.figures.loops import find_loops
    from kerf.projections.figures.measures import table
    from kerf.replay.partial_records import imported_from

    with opened(record) as store:
        window = window_of(store, since, until)
        lives = LivesFold()
        evictions = EvictionsFold(lives)
        fold_into(store, window.position, lives, evictions)
        imported = imported_from(store)
    loops = find_loops(lives, window.since, window.until, evictions.again)
    columns, notes = CHURN, list[str]()
    if imported is not None and Missing.BINDINGS in imported.lacks:  # no node is known to have served a pod
        columns = {name: column for name, column in CHURN.items() if name != UNUSED}
        loops = [loop for loop in loops if loop.kind != UNUSED_LOOP]
        notes.append("which pods ran on these nodes was not imported: which of them served nobody is not known")
    found = table(churn_measures(lives, window.since, window.until), by, columns)
    answer = answer_of(found, window.since, window.until, loops=loops, notes=notes)
    show(answer, columns, "No node came or went", json=json, as_csv=csv)
    if not json and not csv:
        show_loops(loops, record)
