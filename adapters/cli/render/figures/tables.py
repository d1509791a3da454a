"""Tables of figures: as text, as JSON and as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.cli.render.output import Printer, emit_json, one_form
from kerf.adapters.cli.render.text import dollars
from kerf.projections.figures.loops import Loop
from kerf.projections.figures.measures import Table
from kerf.projections.json_times import with_times
from kerf.projections.prose.amounts import duration, moment
from kerf.projections.prose.printable import printable

Show = Callable[[float], str]
Columns = dict[str, tuple[str, Show]]
"""Amount → its heading, and how it is shown."""


def number(amount: float) -> str:
    return f"{amount:,.0f}"


def signed_dollars(amount: float) -> str:
    return f"-{dollars(-amount)}" if amount < 0 else dollars(amount)


def hours(amount: float) -> str:
    return f"{amount:,.2f}"


COST: Columns = {"cost": ("COST", dollars), "node_hours": ("NODE HOURS", hours)}
COST_AND_RATE: Columns = {**COST, "cost_per_hour": ("MEAN PER HOUR", dollars)}
EVICTIONS: Columns = {"evicted": ("EVICTED", number), "forced": ("FORCED", number), "refused": ("REFUSED", number)}
SAVINGS: Columns = {
    "saved": ("SAVED", signed_dollars),
    "gone": ("GONE", number),
    "replacements": ("REPLACEMENTS", number),
    "evicted": ("EVICTED", number),
    "forced": ("FORCED", number),
}
CAPACITY: Columns = {"refused": ("REFUSED", number), "launches_lost": ("LAUNCHES LOST", number)}
CHURN: Columns = {
    "launched": ("LAUNCHED", number),
    "gone": ("GONE", number),
    "failed": ("FAILED", number),
    "unused": ("UNUSED", number),
    "lifetime_hours": ("HOURS LIVED", hours),
}


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a command of figures, as JSON has it. Times are ms since the epoch."""

    since: int
    until: int
    by: str
    rows: list[dict[str, Any]]
    total: dict[str, float]
    notes: list[str] = []
    loops: list[Loop] = []


def show(answer: Answer, columns: Columns, nothing: str, *, json: bool, as_csv: bool, times: bool = False) -> None:
    """Print a table. `nothing` is said if it has no rows; `times`: with the first and last time of each row.

    Raises InputError (KERF200) for both `json` and `as_csv`.
    """
    one_form(json=json, csv=as_csv)
    if json:
        emit_json(with_times(answer))
    elif as_csv:
        _print_csv(answer, columns)
    else:
        _print_table(Printer(), answer, columns, nothing, times)


def answer_of(table: Table, since: int, until: int, **more: Any) -> Answer:
    """Make the answer of a table."""
    rows = [{table.by: row.group, **row.amounts, "first": row.first, "last": row.last} for row in table.rows]
    return Answer(since=since, until=until, by=table.by, rows=rows, total=table.total, **more)


def with_rate(table: Table, window_ms: int) -> Table:
    """The table with what each row cost on average in an hour of the window."""
    per_hour = 3_600_000 / window_ms if window_ms else 0.0

    def rated(amounts: dict[str, float]) -> dict[str, float]:
        return {**amounts, "cost_per_hour": amounts["cost"] * per_hour}

    rows = tuple(replace(row, amounts=rated(row.amounts)) for row in table.rows)
    return replace(table, rows=rows, total=rated(table.total))


def common_words(shared: Mapping[str, str]) -> str:
    """Write what refusals have in common (`in_common`): "zone us-west-2b, capacity type spot"."""
    names = {"zone": "zone", "capacity": "capacity type", "type": "instance type"}
    return ", ".join(f"{names.get(name, name)} {group}" for name, group in shared.items())


def _print_csv(answer: Answer, columns: Columns) -> None:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([answer.by, *columns, "first", "last"])
    for row in answer.rows:
        writer.writerow(
            [_cell(row[answer.by]), *(row[name] for name in columns), moment(row["first"]), moment(row["last"])]
        )
    sys.stdout.write(text.getvalue())


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, and that cannot steer a terminal."""
    return printable(f"'{text}" if text[:1] in "=+-@" and len(text) > 1 else text)


def _print_table(printer: Printer, answer: Answer, columns: Columns, nothing: str, times: bool) -> None:
    part = f"{moment(answer.since)} to {moment(answer.until)} ({duration(answer.until - answer.since)})"
    if not answer.rows:
        printer.line(f"{nothing} from {part}.")
    else:
        head = (answer.by.upper(), *(heading for heading, _ in columns.values()), *(("FIRST", "LAST") if times else ()))
        body = [_shown(row, answer.by, columns, times) for row in answer.rows]
        total = (
            "total",
            *(shown(answer.total[name]) for name, (_, shown) in columns.items()),
            *(("", "") if times else ()),
        )
        printer.line(part, "title")
        printer.table(head, [*body, total])
    for note in answer.notes:
        printer.line(note)


def _shown(row: dict[str, Any], by: str, columns: Columns, times: bool) -> tuple[str, ...]:
    cells = [row[by], *(shown(row[name]) for name, (_, shown) in columns.items())]
    return (*cells, *((moment(row["first"]), moment(row["last"])) if times else ()))
