"""What a cut of a record came to, as text."""

from __future__ import annotations

from kerf.adapters.cli.pruning import Pruned
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.store.retention.policy import Extent
from kerf.projections.prose.amounts import moment


def pruned_text(out: Printer, found: Pruned) -> None:
    if not found.base:
        out.line("nothing is due: the record is within its ages and its size", "good")
    else:
        word = "begins" if found.done else "would begin"
        out.line(f"the record {word} after position {found.base}", "title")
        if found.after:
            out.line(
                f"of claims and decisions what is up to position {found.after} {'went' if found.done else 'would go'}"
            )
    out.line(f"it takes {_bytes(found.now)}" + (f", and took {_bytes(found.before)}" if found.done else ""))
    if found.now.oldest:
        since, oldest = moment(found.now.since), moment(found.now.oldest)
        out.line(f"everything is there since {since}, claims and decisions since {oldest}")


def _bytes(found: Extent) -> str:
    return f"{found.size / (1 << 20):,.1f} MiB"
