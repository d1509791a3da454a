"""`kerf capacity`: which capacity the cloud refused, and when."""

from __future__ import annotations

from typing import Literal

from kerf.adapters.cli.parameters import Csv, Json, Record, Since, Until


def capacity(
    record: Record,
    /,
    *,
    by: Literal["offering", "type", "zone", "capacity", "pool", "workload", "reason", "hour"] = "offering",
    since: Since = "start",
    until: Until = "end",
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Show which capacity the cloud refused, by offering, type, zone, reason or hour.

    Refused counts the cloud's answers about one offering; a launch may be refused
    some offerings and get another. Launches lost came to nothing. Of a record that
    was imported from Karpenter's log it shows what the log tells: at the level INFO
    the launches that failed, at DEBUG each offering.

    For example:

        kerf capacity record.kerf
        kerf capacity record.kerf --by reason
        kerf capacity record.kerf --by hour --since -1h --csv

    Parameters
    ----------
    by
        What the rows are. A reason is the cloud's code.
    json
        Print JSON.
    csv
        Print CSV.
    """
    from kerf.adapters.cli.figures import fold_into, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.tables import CAPACITY, answer_of, common_words, show
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.projections.figures.capacity import OFFERING_PARTS, REFUSED, CapacityFold
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.measures import in_common, table, within
    from kerf.replay.partial_records import imported_from, require

    with opened(record) as store:
        window = window_of(store, since, until)
        lives = LivesFold(pods=by == "workload")
        fold = CapacityFold(lives)
        fold_into(store, window.position, lives, fold)
        if not fold.measures:  # a log that tells no refusal may only leave them out
            require(imported_from(store), Missing.CATALOGUE, "which capacity was refused")
    measures = within(fold.measures, window.since, window.until)
    shared = in_common((measure.about for measure in measures if measure.amounts.get(REFUSED)), OFFERING_PARTS)
    notes = [f"All refusals have in common: {common_words(shared)}."] if shared and by not in shared else []
    answer = answer_of(table(measures, by, CAPACITY), window.since, window.until, notes=notes)
    show(answer, CAPACITY, "No capacity was refused", json=json, as_csv=csv, times=True)
