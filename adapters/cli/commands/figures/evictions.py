"""`kerf evictions`: which pods had to leave their nodes, and why."""

from __future__ import annotations

from typing import Literal

from kerf.adapters.cli.parameters import Csv, Json, Record, Since, Until


def evictions(
    record: Record,
    /,
    *,
    by: Literal["workload", "pool", "type", "zone", "capacity", "node", "pod", "reason", "hour"] = "workload",
    since: Since = "start",
    until: Until = "end",
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Show which pods had to leave their nodes, by workload, NodePool, reason or hour.

    Evicted are pods that kerf evicted, forced those that it deleted because a
    deadline was near. Refused counts evictions that the API refused, mostly for a
    PodDisruptionBudget; such a pod is tried again.

    For example:

        kerf evictions record.kerf
        kerf evictions record.kerf --by reason --since -1h
        kerf evictions record.kerf --by hour --json

    Parameters
    ----------
    by
        What the rows are. A reason is why the node had to go.
    json
        Print JSON.
    csv
        Print CSV.
    """
    from kerf.adapters.cli.figures import fold_into, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.tables import EVICTIONS, answer_of, show
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.projections.figures.evictions import EvictionsFold, evicted_pods
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.measures import table, within
    from kerf.replay.partial_records import imported_from, require

    with opened(record) as store:
        require(imported_from(store), Missing.EVICTIONS, "how many pods were evicted")
        window = window_of(store, since, until)
        lives = LivesFold()
        fold = EvictionsFold(lives)
        fold_into(store, window.position, lives, fold, pods=evicted_pods)
    found = table(within(fold.measures, window.since, window.until), by, EVICTIONS)
    answer = answer_of(found, window.since, window.until)
    show(answer, EVICTIONS, "No pod was evicted", json=json, as_csv=csv)
