"""`kerf cost`: what the nodes cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from kerf.adapters.cli.parameters import Csv, Json, Record, Since, Until
from kerf.engine.errors import InputError

if TYPE_CHECKING:
    from kerf.adapters.cli.figures import PriceList
    from kerf.adapters.store.open import AnyStore

By = Literal["pool", "workload", "type", "zone", "capacity", "node", "reason", "hour"]


def cost(
    record: Record,
    /,
    *,
    by: By | None = None,
    saved: Annotated[bool, Parameter(negative="")] = False,
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
    launched. The rows always add up to the total. "Mean per hour" is the cost
    divided by the time that is shown: no price of a node.

    --saved shows instead what kerf saved by taking nodes away: what those that went
    as empty, underutilized or drifted would have cost had they stayed, until later
    nodes came for pods of their NodePool, less what their replacements cost.

    For example:

        kerf cost record.kerf
        kerf cost record.kerf --by workload --since 10:00
        kerf cost record.kerf --by hour --csv
        kerf cost record.kerf --prices ours.yaml
        kerf cost record.kerf --saved

    Parameters
    ----------
    by
        What the rows are: pool if nothing is said, with --saved reason.
    saved
        Show what was saved by moves, with the evictions that it took.
    prices
        Price history anew by this list of YAML or JSON: "m5.large/spot: 0.03", "on-demand: -15%".
    json
        Print JSON.
    csv
        Print CSV.
    """
    from kerf.adapters.cli.figures import read_prices

    listed = read_prices(prices) if prices is not None else None
    if saved:
        _show_saved(record, by or "reason", since, until, listed, json=json, csv=csv)
    else:
        _show_cost(record, by or "pool", since, until, listed, json=json, csv=csv)


def _show_cost(record: str, by: By, since: str, until: str, listed: PriceList | None, *, json: bool, csv: bool) -> None:
    from kerf.adapters.cli.figures import fold_into, price_of, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.tables import COST, COST_AND_RATE, answer_of, show, with_rate
    from kerf.engine.state.load import empty
    from kerf.projections.figures.cost import cost_measures
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.measures import table
    from kerf.projections.figures.usage import UsageFold

    with opened(record) as store:
        unpriced = _lacks_prices(store, listed)
        window = window_of(store, since, until)
        fold, usage = LivesFold(price_of(listed), pods=False), UsageFold(empty(store).indexes.blobs.shape)
        fold_into(store, window.position, fold, *([usage] if by == "workload" else []))
        measures = cost_measures(fold, by, window.since, window.until, usage)
        found = table(measures, by, COST)
    columns = COST
    if by != "hour":
        found, columns = with_rate(found, window.until - window.since), COST_AND_RATE
    notes = listed.notes(unpriced=unpriced) if listed is not None else []
    answer = answer_of(found, window.since, window.until, notes=notes)
    show(answer, columns, "No node cost anything", json=json, as_csv=csv)


def _show_saved(
    record: str, by: By, since: str, until: str, listed: PriceList | None, *, json: bool, csv: bool
) -> None:
    from kerf.adapters.cli.figures import fold_into, price_of, window_of
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.figures.tables import SAVINGS, answer_of, show
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.projections.figures.evictions import EvictionsFold, evicted_pods
    from kerf.projections.figures.lives import LivesFold
    from kerf.projections.figures.measures import table, within
    from kerf.projections.figures.savings import MOVED, saving_measures
    from kerf.replay.partial_records import imported_from, require

    if by in ("workload", "hour"):
        hint = "Give --by reason, pool, type, zone, capacity or node"
        raise InputError(f"--saved is not divided by {by}", where="--by", hint=hint, code="KERF200")
    with opened(record) as store:
        unpriced = _lacks_prices(store, listed)
        require(imported_from(store), Missing.EVICTIONS, "what was saved, and by how many evictions,")
        window = window_of(store, since, until)
        fold = LivesFold(price_of(listed))
        evictions = EvictionsFold(fold)
        fold_into(store, window.position, fold, evictions, pods=evicted_pods)
    evicted = [one for one in within(evictions.measures, window.since, window.until) if one.about["reason"] in MOVED]
    found = table([*saving_measures(fold, window.since, window.until), *evicted], by, SAVINGS)
    notes = listed.notes(unpriced=unpriced) if listed is not None else []
    answer = answer_of(found, window.since, window.until, notes=[*notes, *([_RECKONED] if found.rows else [])])
    show(answer, SAVINGS, "No move saved anything", json=json, as_csv=csv)


_RECKONED = "Reckoned as if each node had stayed until a later one came for pods of its NodePool; kerf replay models it"


def _lacks_prices(store: AnyStore, listed: PriceList | None) -> bool:
    """Whether an imported record has no prices. Raises PartialRecord (KERF211) where no list has them either."""
    from kerf.engine.model.missing_knowledge import Missing
    from kerf.replay.partial_records import imported_from, require

    imported = imported_from(store)
    if listed is None:
        require(imported, Missing.PRICES, "what the nodes cost (--prices FILE gives prices)")
    return imported is not None and Missing.PRICES in imported.lacks
