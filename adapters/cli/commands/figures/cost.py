"""`kerf cost`: what the nodes cost."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kerf.adapters.cli.parameters import Csv, Json, Record, Since, Until


def cost(
    record: Record,
    /,
    *,
    by: Literal["pool", "workload", "type", "zone", "capacity", "node", "reason", "hour"] = "pool",
    since: Since = "start",
    until: Until = "end",
    prices: Path | None = None,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Show what the nodes cost, by NodePool, workload, type, zone, hour or reason.

    A node costs its price at launch from its launch to its end: list prices, no
    bill. By workload, a node's cost is divided by what its pods request of its CPU
    and memory; what no pod asked for is "(idle)". By reason, it is why the node was
    launched. The rows always add up to the total. "Per hour" is the mean over the
    time that is shown.

    For example:

        kerf cost record.kerf
        kerf cost record.kerf --by workload --since 10:00
        kerf cost record.kerf --by hour --csv
        kerf cost record.kerf --prices ours.yaml

    Parameters
    ----------
    by
        What the rows are.
    prices
        Price history anew by this list of YAML or JSON: "m5.large/spot: 0.03", "on-demand: -15%".
    json
        Print JSON.
    csv
        Print CSV.
    """
    from kerf.adapters.cli.figures import fold_into, price_of, read_prices, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.tables import COST, COST_AND_RATE, answer_of, show, with_rate
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.engine.state.load import empty
    from kerf.projections.figures.cost import cost_measures
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.measures import table
    from kerf.projections.figures.usage import UsageFold
    from kerf.projections.prose.amounts import count
    from kerf.replay.partial_records import imported_from, require

    listed = read_prices(prices) if prices is not None else None
    with opened(record) as store:
        imported = imported_from(store)
        unpriced = imported is not None and Missing.PRICES in imported.lacks
        if listed is None:
            require(imported, Missing.PRICES, "what the nodes cost (--prices FILE gives prices)")
        window = window_of(store, since, until)
        fold, usage = LivesFold(price_of(listed), pods=False), UsageFold(empty(store).indexes.blobs.shape)
        fold_into(store, window.position, fold, *([usage] if by == "workload" else []))
        measures = cost_measures(fold, by, window.since, window.until, usage)
        found = table(measures, by, COST)
    columns = COST
    if by != "hour":
        found, columns = with_rate(found, window.until - window.since), COST_AND_RATE
    notes = []
    if listed is not None:
        kept = "without a price, counted as $0" if unpriced else "kept their recorded price"
        left = f"; {count(listed.unlisted, 'other')} {kept}" if listed.unlisted else ""
        notes.append(f"priced by {prices}: {count(listed.used, 'node')}{left}")
    answer = answer_of(found, window.since, window.until, notes=notes)
    show(answer, columns, "No node cost anything", json=json, as_csv=csv)
