"""kerf observe: what kerf would have done beside what Karpenter did."""

from __future__ import annotations

from itertools import chain

from cyclopts import App

from kerf.adapters.cli.parameters import Json
from kerf.adapters.cli.records import opened
from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.adapters.cli.render.text import counted, dollars
from kerf.engine.record.store import Store
from kerf.projections.karpenter_comparison import Batch, Comparison, ComparisonFold, Removal, UnremovedNode
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import NotObserved
from kerf.replay.time_travel.record_beginning import base_as_entries, first_settings

observe = App(name="observe", help="Compare what kerf decided in observe mode with what Karpenter did.")


@observe.command
def report(record: str, /, *, json: Json = False) -> None:
    """Print the comparison of a record that `kerf run --mode observe` makes, also while it runs.

    Per batch of pods: new nodes, their price and how long it took. Per node that Karpenter removed: its reason and
    kerf's. Last, the nodes that kerf would have removed and Karpenter still has.

    Examples: `kerf observe report record.kerf`, `kerf observe report record.kerf --json`

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder.
    json
        Print the comparison as JSON: times are ms since the epoch, durations ms, prices USD per hour.
    """
    observer = ComparisonFold()
    with opened(record) as store:
        _refuse_control(store, record)
        for entry in chain(base_as_entries(store), store.scan()):
            observer.apply(entry)
    found = observer.report()
    if json:
        emit_json(found)
    else:
        _print(found, Printer())


def _refuse_control(store: Store, record: str) -> None:
    """Where kerf acts itself there is nothing to compare: the report would be empty."""
    made = first_settings(store)
    if made is not None and not made.observe:
        hint = "Observe beside Karpenter with kerf run --mode observe; what kerf did itself: kerf log, kerf explain"
        raise NotObserved(
            "this record was made in control mode, so it says nothing of Karpenter", where=record, hint=hint
        )


def _print(found: Comparison, out: Printer) -> None:
    out.line("Batches of pods", "title")
    if found.batches:
        header = ("since", "pods", "kerf", "decided", "Karpenter", "launched", "all bound", "on older nodes")
        out.table(header, [_batch(each) for each in found.batches])
        out.line(f"  in all: {_totals(found)}")
    else:
        out.line("  none needed a new node")
    out.line()
    out.line("Nodes that Karpenter removed", "title")
    if found.removals:
        out.table(("at", "NodeClaim", "Karpenter", "kerf"), [_removal(each) for each in found.removals])
        agreed = sum(each.agreed for each in found.removals)
        out.line(f"  kerf would have removed {agreed} of {counted(len(found.removals), 'node')}")
    else:
        out.line("  none")
    out.line()
    out.line("Nodes that kerf would have removed and Karpenter has", "title")
    if found.wanted:
        out.table(("since", "NodeClaim", "reason", "price"), [_wanted(each) for each in found.wanted])
    else:
        out.line("  none")


def _totals(found: Comparison) -> str:
    ours = sum(each.kerf.price for each in found.batches), sum(each.kerf.nodes for each in found.batches)
    theirs = sum(each.karpenter.price for each in found.batches), sum(each.karpenter.nodes for each in found.batches)
    return f"kerf {_made(*ours)}, Karpenter {_made(*theirs)}"


def _made(price: float, nodes: int) -> str:
    return f"{counted(nodes, 'node')} at {dollars(price)}/h"


def _batch(each: Batch) -> tuple[str, ...]:
    return (
        moment(each.at), str(each.pods), _made(each.kerf.price, each.kerf.nodes), _seconds(each.kerf.took),
        _made(each.karpenter.price, each.karpenter.nodes), _seconds(each.karpenter.took), _seconds(each.bound_in),
        str(each.elsewhere),
    )  # fmt: skip


def _removal(each: Removal) -> tuple[str, ...]:
    ours = f"{each.kerf}: {each.reason}" if each.kerf else "not judged"
    return (moment(each.at), each.claim, each.karpenter, ours)


def _wanted(each: UnremovedNode) -> tuple[str, ...]:
    return (moment(each.since), each.claim, each.reason, f"{dollars(each.price)}/h")


def _seconds(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s"
