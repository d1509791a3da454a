"""What `kerf sweep` prints: configurations beside the unchanged one, best first."""

from __future__ import annotations

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import counted, dollars
from kerf.adapters.cli.sweeping.ranking import Ranked, Ranking
from kerf.adapters.cli.sweeping.sweep import Swept
from kerf.projections.prose.amounts import duration

ON_FRONT = "*"


def print_swept(printer: Printer, answer: Swept) -> None:
    """A table, what is not in it, and where the files are."""
    found = answer.ranking
    before = f", {answer.done_before} of them before" if answer.done_before else ""
    printer.line(f"{counted(answer.cells, 'cell')} done{before}; modelled over {', '.join(found.records)}", "title")
    head = ("", "CONFIGURATION", "COST", "", "EVICTIONS", "", "PODS WAITED", "LAUNCHED", "NODE HOURS")
    printer.table(head, [_row(ranked, found) for ranked in found.configurations])
    printer.line(
        f"{ON_FRONT} no other configuration costs less without more evictions, or evicts less without more cost"
    )
    for why in found.left_out:
        printer.line(f"Left out: {why}", "warning")
    printer.line(f"{answer.table}, {answer.plot}")


def _row(ranked: Ranked, found: Ranking) -> tuple[str, ...]:
    figures, unchanged = ranked.figures, found.unchanged
    more = figures.evictions - unchanged.evictions
    share = (figures.cost - unchanged.cost) / unchanged.cost if unchanged.cost else 0.0
    return (
        "" if ranked.beaten_by else ON_FRONT,
        ranked.configuration,
        dollars(figures.cost),
        f"{share:+.1%}" if round(share, 3) else "",
        f"{figures.evictions:,}",
        f"{more:+,}" if more else "",
        duration(round(figures.pending_seconds * 1000)),
        f"{figures.launched:,}",
        f"{figures.node_hours:,.2f}",
    )
