"""What a cut of a record came to, as text."""

from __future__ import annotations

from kerf.adapters.cli.pruning import Pruned
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.store.retention.policy import Extent
from kerf.projections.prose.amounts import moment


def pruned_text(out: Printer, pruned: Pruned) -> None:
    if not pruned.base:
        out.line("nothing is due: the record is within its ages and its size", "good")
    else:
        word = "begins" if pruned.done else "would begin"
        out.line(f"the record {word} after position {pruned.base}", "title")
        if pruned.after:
            out.line(
                f"of claims and decisions what is up to position {pruned.after} {'went' if pruned.done else 'would go'}"
            )
    out.line(f"it takes {_bytes(pruned.now)}" + (f", and took {_bytes(pruned.before)}" if pruned.done else ""))
    if pruned.now.oldest:
        since, oldest = moment(pruned.now.since), moment(pruned.now.oldest)
        out.line(f"everything is there since {since}, claims and decisions since {oldest}")


def _bytes(extent: Extent) -> str:
    return f"{extent.size / (1 << 20):,.1f} MiB"
