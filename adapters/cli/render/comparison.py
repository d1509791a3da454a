"""What kerf decided in observe mode beside what Karpenter did, as text."""

from __future__ import annotations

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import counted, dollars
from kerf.projections.karpenter_comparison import Batch, Comparison, Removal, UnremovedNode
from kerf.projections.prose.amounts import moment


def comparison_text(out: Printer, comparison: Comparison) -> None:
    out.line("Batches of pods", "title")
    if comparison.batches:
        header = ("since", "pods", "kerf", "decided", "Karpenter", "launched", "all bound", "on older nodes")
        out.table(header, [_batch(batch) for batch in comparison.batches])
        out.line(f"  in all: {_totals(comparison)}")
    else:
        out.line("  none needed a new node")
    out.line()
    out.line("Nodes that Karpenter removed", "title")
    if comparison.removals:
        out.table(("at", "NodeClaim", "Karpenter", "kerf"), [_removal(removal) for removal in comparison.removals])
        agreed = sum(removal.agreed for removal in comparison.removals)
        out.line(f"  kerf would have removed {agreed} of {counted(len(comparison.removals), 'node')}")
    else:
        out.line("  none")
    out.line()
    out.line("Nodes that kerf would have removed and Karpenter has", "title")
    if comparison.wanted:
        out.table(("since", "NodeClaim", "reason", "price"), [_wanted(unremoved) for unremoved in comparison.wanted])
    else:
        out.line("  none")


def _totals(comparison: Comparison) -> str:
    ours = sum(batch.kerf.price for batch in comparison.batches), sum(batch.kerf.nodes for batch in comparison.batches)
    theirs = (
        sum(batch.karpenter.price for batch in comparison.batches),
        sum(batch.karpenter.nodes for batch in comparison.batches),
    )
    return f"kerf {_made(*ours)}, Karpenter {_made(*theirs)}"


def _made(price: float, nodes: int) -> str:
    return f"{counted(nodes, 'node')} at {dollars(price)}/h"


def _batch(batch: Batch) -> tuple[str, ...]:
    return (
        moment(batch.at), str(batch.pods), _made(batch.kerf.price, batch.kerf.nodes), _seconds(batch.kerf.took),
        _made(batch.karpenter.price, batch.karpenter.nodes), _seconds(batch.karpenter.took), _seconds(batch.bound_in),
        str(batch.elsewhere),
    )  # fmt: skip


def _removal(removal: Removal) -> tuple[str, ...]:
    ours = f"{removal.kerf}: {removal.reason}" if removal.kerf else "not judged"
    return (moment(removal.at), removal.claim, removal.karpenter, ours)


def _wanted(unremoved: UnremovedNode) -> tuple[str, ...]:
    return (moment(unremoved.since), unremoved.claim, unremoved.reason, f"{dollars(unremoved.price)}/h")


def _seconds(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s"
