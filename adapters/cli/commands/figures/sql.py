"""`kerf sql`: records as tables, asked in SQL."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from kerf.adapters.cli.parameters import RECORD, Csv, Json

_HINT = 'Write kerf sql "SELECT …" record.kerf; kerf sql --tables lists the tables'


def sql(
    query: str = "",
    /,
    *records: Annotated[str, Parameter(help=RECORD)],
    tables: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Ask records in SQL: claims, pods, evictions, costs and more as tables.

    Tables hold all records that are given; the column record says which. A query
    reads nothing but them, and writes nothing. It is DuckDB's SQL, which needs the
    extra analysis. docs/sql.md has the tables and a cookbook.

    For example:

        kerf sql "SELECT workload, count(*) FROM evictions GROUP BY ALL" record.kerf
        kerf sql "SELECT record, sum(cost) FROM node_hours GROUP BY ALL" *.kerfb
        kerf sql "FROM pods WHERE seconds_waited > 60" record.kerf --csv
        kerf sql --tables

    Parameters
    ----------
    query
        One question in SQL.
    tables
        List the tables and their columns. It needs no record.
    json
        Print JSON.
    csv
        Print CSV.
    """
    from kerf.adapters.cli.analysis.ask import print_answer
    from kerf.adapters.cli.render.query import print_tables
    from kerf.engine.errors import InputError

    if tables:
        print_tables(json=json)
    elif not query or not records:
        raise InputError("a query and a record are needed", hint=_HINT, code="KERF200")
    elif query.endswith((".kerf", ".kerfb")):
        raise InputError("the query comes before the records", where=query, hint=_HINT, code="KERF200")
    else:
        print_answer(query, records, json=json, as_csv=csv)
