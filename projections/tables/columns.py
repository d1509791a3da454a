"""Say what a column of a table is: its SQL type, its unit and its meaning, read from the struct that is its row."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

from msgspec import Struct


class Kind(NamedTuple):
    """How a column is stored: its SQL type, and the unit of its numbers."""

    sql: str
    unit: str = ""


TIMESTAMP = Kind("TIMESTAMP", "UTC")
Text = Annotated[str, Kind("VARCHAR")]
"""A name, code or sentence; NULL where there is none."""
Texts = Annotated[tuple[str, ...], Kind("VARCHAR[]")]
Time = Annotated[int, TIMESTAMP]
"""Milliseconds since the epoch; NULL for 0, which is not yet or not known."""
Count = Annotated[int, Kind("BIGINT")]
CountIfKnown = Annotated[int | None, Kind("BIGINT")]
Number = Annotated[int, Kind("BIGINT", "position")]
"""A position of the record."""
Flag = Annotated[bool, Kind("BOOLEAN")]
Usd = Annotated[float | None, Kind("DOUBLE", "USD")]
UsdPerHour = Annotated[float | None, Kind("DOUBLE", "USD per hour")]
Hours = Annotated[float, Kind("DOUBLE", "hours")]
HoursIfKnown = Annotated[float | None, Kind("DOUBLE", "hours")]
Seconds = Annotated[float | None, Kind("DOUBLE", "seconds")]
Cores = Annotated[float | None, Kind("DOUBLE", "cores")]
Bytes = Annotated[int | None, Kind("BIGINT", "bytes")]


class Column(NamedTuple):
    """A column: its name, SQL type, unit ("" for none) and meaning."""

    name: str
    sql: str
    unit: str
    meaning: str


@cache
def columns_of(row: type[Struct]) -> tuple[Column, ...]:
    """Return the columns of a table, in order, from the annotations of its row."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(_column(name, hints[name].__metadata__) for name in row.__struct_fields__)


def _column(name: str, said: tuple[Any, ...]) -> Column:
    kind, meaning = said
    return Column(name, kind.sql, kind.unit, meaning)
