"""kerf observe: what kerf would have done beside what Karpenter did."""

from __future__ import annotations

from cyclopts import App

from kerf.adapters.cli.parameters import Json, Record

observe = App(name="observe", help="Compare what kerf decided in observe mode with what Karpenter did.")


@observe.command
def report(record: Record, /, *, json: Json = False) -> None:
    """Print the comparison of a record that `kerf run --mode observe` makes, also while it runs.

    Per batch of pods: new nodes, their price and how long it took. Per node that
    Karpenter removed: its reason and kerf's. Last, the nodes that kerf would have
    removed and Karpenter still has.

    For example:

        kerf observe report record.kerf
        kerf observe report record.kerf --json

    Parameters
    ----------
    json
        Print the comparison as JSON: times are ms since the epoch, durations ms, prices USD per hour.
    """
    from itertools import chain

    from kerf.adapters.cli.records import opened, refuse_control_mode
    from kerf.adapters.cli.render.comparison import comparison_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.projections.json_times import with_times
    from kerf.projections.karpenter_comparison import ComparisonFold
    from kerf.replay.time_travel.record_beginning import base_as_entries

    observer = ComparisonFold()
    with opened(record) as store:
        refuse_control_mode(store, record)
        for entry in chain(base_as_entries(store), store.scan()):
            observer.apply(entry)
    comparison = observer.report()
    if json:
        emit_json(with_times(comparison))
    else:
        comparison_text(Printer(), comparison)
