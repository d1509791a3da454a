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
        out.table(("since", "NodeClaim", "reason", "price"), [_wanted(each) for each in comparison.wanted])
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
