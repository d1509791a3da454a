"""A database in memory that holds the tables of records and reaches nothing else.

DuckDB opens no file but in the folder that an export names, loads no extension, sees no variable of Python and no
environment, and takes no settings any more once it is open.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from kerf.adapters.cli.analysis.errors import AnalysisUnavailable, QueryRefused
from kerf.adapters.cli.analysis.interruptible import interruptible
from kerf.engine.errors import extra_hint
from kerf.projections.tables.columns import TIMESTAMP, Column, columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RECORD_COLUMN = Column("record", "VARCHAR", "", "the record, as it was named on the command line")
ROWS_AT_ONCE = 10_000
_ERRNO = re.compile(r'"errno":"([0-9]{1,4})"')
"""In DuckDB's message of a file that the system refuses, which is JSON then."""
_MOST_SAID = 300  # characters of DuckDB's message
_CLOSED = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "threads": "2",
}


class Result(NamedTuple):
    """The answer of a query: names and SQL types of its columns, and its rows, which are read as they are taken."""

    names: list[str]
    types: list[str]
    rows: Iterator[tuple[object, ...]]


class Database:
    """Tables in memory. Make one with `opened_database`."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection

    def add(self, table: str, row: type[Struct], record: str, rows: Iterable[Struct]) -> None:
        """Add a record's rows to a table, which is made if it is not there."""
        columns = columns_of(row)
        self._run(f"CREATE TABLE IF NOT EXISTS {table} ({_declared((RECORD_COLUMN, *columns))})")
        form = msgspec.json.encode([{column.name: _carried(column) for column in columns}]).decode()
        values = ", ".join(_stored(column) for column in columns)
        statement = f"INSERT INTO {table} SELECT $record, {values} FROM (SELECT unnest(from_json($rows, $form)) AS r)"
        left = iter(rows)
        while chunk := list(islice(left, ROWS_AT_ONCE)):
            encoded = msgspec.json.encode(chunk).decode()
            self._run(statement, {"record": record, "rows": encoded, "form": form})

    def ask(self, query: str) -> Result:
        """Answer one query. Raises QueryRefused (KERF241) for anything that DuckDB cannot answer or that is no
        question; MemoryError for one that needs more memory than there is."""
        with _coded():
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type.name not in ("SELECT", "EXPLAIN"):
                hint = "Ask one question: SELECT …, DESCRIBE claims, SHOW TABLES"
                raise QueryRefused("kerf sql only answers questions, one at a time", hint=hint)
            interruptible(lambda: self._connection.execute(statements[0]), self._connection.interrupt)
            description = self._connection.description or []
        names = [str(column[0]) for column in description]
        return Result(_distinct(names), [str(column[1]) for column in description], self._fetched())

    def write_parquet(self, table: str, file: Path) -> None:
        """Write a table as a Parquet file into the folder that the database may write to. Raises OSError."""
        import duckdb

        place = str(file).replace("'", "''")
        try:
            self._connection.execute(f"COPY (SELECT * FROM {table}) TO '{place}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.IOException as error:
            found = _ERRNO.search(str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number)) from error

    def _run(self, statement: str, parameters: dict[str, str] | None = None) -> None:
        with _coded():
            self._connection.execute(statement, parameters)

    def _fetched(self) -> Iterator[tuple[object, ...]]:
        while True:
            with _coded():
                rows = interruptible(lambda: self._connection.fetchmany(ROWS_AT_ONCE), self._connection.interrupt)
            if not rows:
                return
            yield from rows


@contextmanager
def opened_database(*, folder: Path | None = None, megabytes: int | None = None) -> Iterator[Database]:
    """Open an empty database, which ends with the block. It may write to `folder` alone, and take so much memory.

    Raises AnalysisUnavailable (KERF240) without DuckDB.
    """
    try:
        import duckdb
    except ImportError as error:
        hint = extra_hint("analysis")
        raise AnalysisUnavailable("SQL and Parquet need DuckDB, which is not installed", hint=hint) from error
    limit = {} if megabytes is None else {"memory_limit": f"{megabytes}MB"}
    connection = duckdb.connect(":memory:", config={**_CLOSED, **limit})
    try:
        if folder is not None:
            connection.execute("SET allowed_directories = $folders", {"folders": [str(folder)]})
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield Database(connection)
    finally:
        with suppress(duckdb.Error):  # a query that nothing interrupts still has it
            connection.close()


@contextmanager
def _coded() -> Iterator[None]:
    """Give DuckDB's errors a code. One that Ctrl-C or a limit interrupted ends as by Ctrl-C."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from error
    except duckdb.Error as error:
        said = " ".join(str(error).partition("\n\nLINE")[0].split())[:_MOST_SAID]
        hint = "docs/sql.md has the tables and their columns; kerf sql --tables lists them"
        raise QueryRefused(said, hint=hint) from error
    except RuntimeError as error:
        if "interrupted" in str(error):
            raise KeyboardInterrupt from error
        raise


def _declared(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.name} {column.sql}" for column in columns)


def _carried(column: Column) -> object:
    """The type by which JSON brings a column: times are numbers there, lists are lists."""
    if column.sql == TIMESTAMP.sql:
        return "BIGINT"
    return [column.sql.removesuffix("[]")] if column.sql.endswith("[]") else column.sql


def _stored(column: Column) -> str:
    """The value of a column out of a row `r`: what is not there is NULL."""
    value = f"r.{column.name}"
    if column.sql == TIMESTAMP.sql:
        return f"epoch_ms(nullif({value}, 0))"
    return f"nullif({value}, '')" if column.sql == "VARCHAR" else value


def _distinct(names: list[str]) -> list[str]:
    """Names of which none comes twice, as keys of JSON have to be."""
    told: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        told.append(name if name not in told else next(fresh for fresh in numbered if fresh not in told))
    return told
