"""The answer of a query: as a table, as JSON and as CSV. And the list of tables that can be asked."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Protocol, TextIO

import msgspec
from rich.table import Table
from rich.text import Text

from kerf.adapters.cli.render.console import Output
from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.projections.prose.printable import printable, printable_json
from kerf.projections.tables.columns import columns_of
from kerf.projections.tables.rows import TABLES

MOST_ROWS = 1_000
"""A table for people has so many rows at most; JSON and CSV have all."""
_NUMBERS = ("BIGINT", "HUGEINT", "INTEGER", "DOUBLE", "DECIMAL", "FLOAT")
_LARGEST_EXACT = 2**63
_FORMULA = "=+-@"


class Answer(Protocol):
    """Names of columns, their SQL types, and rows."""

    @property
    def names(self) -> list[str]: ...

    @property
    def types(self) -> list[str]: ...

    @property
    def rows(self) -> Iterator[tuple[object, ...]]: ...


def print_table(answer: Answer) -> None:
    """A table at most as wide as the terminal, where long cells are cut off. In a pipe they are whole."""
    rows: list[tuple[str, ...]] = [tuple(map(_cell, row)) for row in islice(answer.rows, MOST_ROWS)]
    more = next(answer.rows, None) is not None
    printer = Printer()
    if printer.terminal:
        Output().print(_fitting(answer, rows))
    else:
        printer.table(tuple(answer.names), rows)
    if more:
        printer.line(f"More than {MOST_ROWS:,} rows: --csv and --json have all")
    elif not rows:
        printer.line("No rows")


def _fitting(answer: Answer, rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, kind in zip(answer.names, answer.types, strict=True):
        right = kind.startswith(_NUMBERS)
        table.add_column(Text(printable(name)), justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def print_csv(answer: Answer, out: TextIO | None = None) -> None:
    """CSV with a header, on standard output if no file is given. No cell is a formula to a spreadsheet, and none can
    steer a terminal."""
    writer = csv.writer(out or sys.stdout, lineterminator="\n")
    writer.writerow([_safe(name) for name in answer.names])
    for row in answer.rows:
        writer.writerow([_safe(value) for value in row])


def print_json(answer: Answer) -> None:
    """One object: `columns`, each with name and SQL type, and `rows`, each an object. Times are RFC 3339."""
    columns = [{"name": name, "type": kind} for name, kind in zip(answer.names, answer.types, strict=True)]
    sys.stdout.write(printable_json('{"columns": ' + msgspec.json.encode(columns).decode() + ', "rows": ['))
    between = "\n"
    for row in answer.rows:
        plain = {name: _plain(value) for name, value in zip(answer.names, row, strict=True)}
        sys.stdout.write(between + printable_json(msgspec.json.encode(plain).decode()))
        between = ",\n"
    sys.stdout.write("\n]}\n")


def print_tables(*, json: bool) -> None:
    """List the tables, and each column with its type, unit and meaning."""
    if json:
        emit_json({name: [column._asdict() for column in columns_of(row)] for name, row in TABLES.items()})
        return
    printer = Printer()
    for name, row in TABLES.items():
        printer.line(f"{name}: {' '.join((row.__doc__ or '').split())}", "title")
        columns: list[tuple[str, ...]] = [tuple(column) for column in columns_of(row)]
        printer.table(("COLUMN", "TYPE", "UNIT", "MEANING"), columns)


def _cell(value: object) -> str:
    """A value for people: times in UTC, amounts to the hundredth of a cent, lists with commas."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() | Decimal():
            return f"{value:,.4f}" if math.isfinite(value) else str(value)
        case datetime():
            return _moment(value)
        case list() | tuple():
            return ", ".join(map(_cell, value))
        case _:
            return " ".join(str(value).split())


def _safe(value: object) -> object:
    """A cell of CSV: numbers as they are, everything else as text that is no formula."""
    match value:
        case None | bool() | int() | float():
            return value
        case datetime():
            text = _moment(value)
        case list():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    return printable(f"'{text}" if text[:1] in _FORMULA and len(text) > 1 else text)


def _plain(value: object) -> object:
    """A value as JSON knows it. What JSON has no number for is a text, and what is no number is null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case int() if abs(value) >= _LARGEST_EXACT:
            return str(value)
        case Decimal():
            return float(value)
        case datetime():
            return _moment(value)
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(part) for part in value]
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _moment(value: datetime) -> str:
    text = (value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)).isoformat(
        timespec="milliseconds" if value.microsecond else "seconds"
    )
    return f"{text}Z"
