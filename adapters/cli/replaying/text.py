"""The answer of `kerf replay`: the runs of the model beside each other, and apart from them what was recorded."""

from __future__ import annotations

from collections.abc import Callable

from kerf.adapters.cli.render.output import Printer
from kerf.projections.prose.amounts import dollars, duration, moment
from kerf.replay.modelled.comparison import Modelled
from kerf.replay.modelled.figures import Figures

Row = tuple[str, str, Callable[[float], str]]
"""What a figure is called, its field, and how it is written."""
ROWS: tuple[Row, ...] = (
    ("cost", "cost", dollars),
    ("node hours", "node_hours", "{:,.2f}".format),
    ("evictions", "evictions", "{:,}".format),
    ("pods waited", "pending_seconds", lambda seconds: duration(round(seconds * 1000))),
    ("nodes launched", "launched", "{:,}".format),
    ("nodes gone", "gone", "{:,}".format),
    ("nodes at the end", "running", "{:,}".format),
)


def replay_text(printer: Printer, answer: Modelled) -> None:
    """Print the answer. One that does not hold is marked."""
    length = duration(answer.until - answer.since)
    printer.line(f"Modelled from {moment(answer.since)} to {moment(answer.until)} ({length}):", "title")
    for change in answer.changes:
        printer.line(f"  {change}")
    if not answer.holds:
        printer.line("This does NOT hold: the model is too far from what was recorded.", "error")
    if answer.changed is not None:
        printer.line()
        rows = [compared_row(row, answer.unchanged, answer.changed) for row in ROWS]
        printer.table(("MODELLED", "UNCHANGED", "CHANGED", "DIFFERENCE"), rows)
    printer.line()
    if answer.errors:
        rows = [checked_row(row, answer) for row in ROWS]
        printer.table(("HOW GOOD IS THE MODEL?", "RECORDED", "MODELLED, UNCHANGED", "ERROR"), rows)
        printer.line()
    printer.line(horizon_line(answer))
    printer.line("Assumed:")
    for assumption in answer.assumptions:
        printer.line(f"  - {assumption}")


def compared_row(row: Row, old: Figures, new: Figures) -> tuple[str, ...]:
    """Return the cells of one figure, modelled without and with the change."""
    title, name, show = row
    was, now = getattr(old, name), getattr(new, name)
    more = now - was
    sign = "+" if more > 0 else "-" if more < 0 else ""
    share = f" ({more / was:+.0%})" if was and more else ""
    return title, show(was), show(now), f"{sign}{show(abs(more))}{share}" if more else "="


def checked_row(row: Row, answer: Modelled) -> tuple[str, ...]:
    """Return the cells of one figure, as recorded and as modelled without the change."""
    title, name, show = row
    error = answer.errors.get(name)
    return (
        title, show(getattr(answer.recorded, name)), show(getattr(answer.unchanged, name)),
        f"{error:.1%}" if error is not None else "",
    )  # fmt: skip


def horizon_line(answer: Modelled) -> str:
    """Say up to when the model holds."""
    if not answer.errors:
        return "How good the model is cannot be told: a captured record has no history to compare it with."
    if answer.horizon <= answer.since:
        return f"The unchanged run is nowhere within {answer.most:.0%} of the record."
    return f"The unchanged run stays within {answer.most:.0%} of the record up to {moment(answer.horizon)}."
