"""`kerf sql` and `kerf export`: the tables are documented, agree with the figures, and give nothing else away."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli import limits
from kerf.adapters.cli.analysis.database import RECORD_COLUMN, Database, opened_database
from kerf.adapters.cli.analysis.record_rows import add_records, names_of
from kerf.projections.tables.columns import columns_of
from kerf.projections.tables.rows import TABLES
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/sql.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "golden"
CASES = ("workshop-scale-up-and-down", "spot-interruption", "no-capacity", "lost-answer", "static-pool")
RECORDS = [str(GOLDEN / name) for name in CASES]
WORKSHOP, SPOT = RECORDS[:2]
IMPORTED = str(GOLDEN / "imported-karpenter-log")


def documented_tables() -> str:
    """Each table as docs/sql.md shows it."""
    text = ""
    for name, row in TABLES.items():
        text += f"\n### {name}\n\n{' '.join((row.__doc__ or '').split())}\n\n"
        text += "| column | type | unit | meaning |\n|---|---|---|---|\n"
        for column in (RECORD_COLUMN, *columns_of(row)):
            text += f"| {column.name} | {column.sql} | {column.unit} | {column.meaning} |\n"
    return text


@pytest.fixture(scope="module")
def records() -> Any:
    with opened_database() as database:
        add_records(database, RECORDS)
        yield database


def answer(database: Database, query: str) -> list[tuple[Any, ...]]:
    return list(database.ask(query).rows)


def test_the_page_documents_each_table_as_it_is() -> None:
    """After a change: write what `documented_tables` returns below the heading."""
    assert PAGE.partition("## Tables\n")[2] == documented_tables()


def test_the_database_has_the_columns_that_are_documented(records: Database) -> None:
    found = answer(records, "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal")
    declared = [
        (name, column.name, column.sql)
        for name, row in TABLES.items()
        for column in (RECORD_COLUMN, *columns_of(row))
    ]  # fmt: skip
    assert sorted(found) == sorted(declared)


@pytest.mark.parametrize("query", re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_the_cookbook_runs(records: Database, query: str) -> None:
    found = records.ask(query)
    assert found.names
    rows = list(found.rows)
    assert rows or "HAVING" in query or "QUALIFY time" in query


def test_the_cookbook_has_a_dozen_queries() -> None:
    assert PAGE.count("```sql") >= 12


def test_costs_agree_with_kerf_cost_to_the_cent(records: Database, kerf: Any) -> None:
    for record in RECORDS:
        name = Path(record).name
        for by, column in (("pool", "node_pool"), ("type", "instance_type"), ("reason", "launched_for")):
            told = {row[by]: row["cost"] for row in json.loads(kerf("cost", record, "--by", by, "--json")[1])["rows"]}
            query = f"SELECT {column}, sum(cost) FROM node_hours WHERE record = '{name}' GROUP BY ALL"
            assert dict(answer(records, query)) == pytest.approx(told)
        shares = json.loads(kerf("cost", record, "--by", "workload", "--json")[1])["rows"]
        query = f"SELECT workload, sum(cost) FROM workload_costs WHERE record = '{name}' GROUP BY ALL"
        assert dict(answer(records, query)) == pytest.approx({row["workload"]: row["cost"] for row in shares})
        total = json.loads(kerf("cost", record, "--json")[1])["total"]
        claims = answer(records, f"SELECT sum(cost), sum(node_hours) FROM claims WHERE record = '{name}'")
        assert claims == [pytest.approx((total["cost"], total["node_hours"]))]


def test_a_part_of_a_record_costs_what_kerf_cost_says(kerf: Any, tmp_path: Path) -> None:
    part = tmp_path / "part.kerfb"
    assert kerf("bundle", "export", WORKSHOP, part, "--since", "+5m")[0] == 0
    total = json.loads(kerf("cost", part, "--json")[1])["total"]
    assert total["cost"] < json.loads(kerf("cost", WORKSHOP, "--json")[1])["total"]["cost"]
    query = """SELECT (SELECT sum(cost) FROM claims) AS claims, (SELECT sum(cost) FROM node_hours) AS hours,
        (SELECT sum(cost) FROM workload_costs) AS workloads, (SELECT count(*) FROM prices) > 0 AS priced"""
    [row] = json.loads(kerf("sql", query, part, "--json")[1])["rows"]
    assert row == {"claims": pytest.approx(total["cost"]), "hours": pytest.approx(total["cost"]),
                   "workloads": pytest.approx(total["cost"]), "priced": True}  # fmt: skip


def test_evictions_churn_and_capacity_agree_with_their_commands(records: Database, kerf: Any) -> None:
    for record in RECORDS:
        where = f"record = '{Path(record).name}'"
        told = json.loads(kerf("evictions", record, "--json")[1])["total"]
        counted = dict(answer(records, f"SELECT outcome, count(*) FROM evictions WHERE {where} GROUP BY ALL"))
        assert counted == {name: number for name, number in told.items() if number}
        told = json.loads(kerf("churn", record, "--json")[1])["total"]
        query = f"""SELECT count(launched), count(*) FILTER (ended IS NOT NULL AND launched IS NOT NULL),
            count(*) FILTER (failed IS NOT NULL AND launched IS NULL) FROM claims WHERE {where}"""
        assert answer(records, query) == [(told["launched"], told["gone"], told["failed"])]
        told = json.loads(kerf("capacity", record, "--json")[1])["total"]
        query = f"SELECT coalesce(sum(refused), 0), coalesce(sum(launches_lost), 0) FROM launch_failures WHERE {where}"
        assert answer(records, query) == [(told["refused"], told["launches_lost"])]


def test_states_follow_one_another_without_a_gap(records: Database) -> None:
    query = """SELECT claim, until, lead(since) OVER (PARTITION BY record, claim ORDER BY since, position) AS next
        FROM claim_states QUALIFY next IS DISTINCT FROM until"""
    assert answer(records, query) == []
    ends = "SELECT count(*) FROM claims WHERE (state = 'terminated') <> (ended IS NOT NULL)"
    assert answer(records, ends) == [(0,)]


def test_a_reason_keeps_a_node_until_the_next_one_or_until_the_node_begins_to_go(records: Database) -> None:
    overlapping = """SELECT claim, until, lead(time) OVER (PARTITION BY record, claim ORDER BY position) AS next
        FROM verdicts WHERE action = 'keep' QUALIFY until > next"""
    assert answer(records, overlapping) == []
    kept = """SELECT v.reason, v.seconds, v.until = c.tainted FROM verdicts v JOIN claims c USING (record, claim)
        WHERE record = 'workshop-scale-up-and-down' AND claim = 'default-2tkt8' AND action = 'keep'
        ORDER BY v.position"""
    assert answer(records, kept) == [
        ("not-consolidatable", 60.0, False),
        ("nothing-cheaper", 1039.501, False),
        ("empty-not-long-enough", 59.0, False),
        ("move-proposed", 15.0, True),
    ]
    still = """SELECT count(*) FROM verdicts v JOIN claims c USING (record, claim)
        WHERE v.until IS NULL AND c.ended IS NOT NULL"""
    assert answer(records, still) == [(0,)]


def test_moves_end_as_their_decisions_say(records: Database) -> None:
    rows = answer(records, "SELECT outcome, len(claims), started <= ended, because FROM moves WHERE outcome = 'over'")
    assert rows
    assert all(claims >= 1 and ordered and because for _, claims, ordered, because in rows)


def test_what_has_not_happened_is_null(records: Database) -> None:
    query = "SELECT count(*) FROM claims WHERE node = '' OR ended = TIMESTAMP '1970-01-01' OR launched < '2000-01-01'"
    assert answer(records, query) == [(0,)]


REFUSED = {
    "SELECT * FROM read_csv('/etc/passwd')": "disabled",
    "SELECT * FROM '/etc/passwd'": "does not exist",
    "SELECT * FROM glob('/*')": "disabled",
    "COPY claims TO 'stolen.csv'": "only answers questions",
    "ATTACH 'other.db'": "only answers questions",
    "INSTALL httpfs": "only answers questions",
    "SET enable_external_access = true": "only answers questions",
    "EXPLAIN ANALYZE COPY claims TO 'stolen.csv'": "disabled",
    "SELECT getenv('HOME')": "does not exist",
    "SELECT * FROM RECORDS_OF_TEST": "does not exist",
    "DELETE FROM claims": "only answers questions",
    "SELECT 1; SELECT 2": "only answers questions",
    "": "only answers questions",
    "SELEC": "syntax error",
    "SELECT nobody FROM claims": "nobody",
    "SELECT CAST('x' AS BIGINT)": "Could not convert",
}
"""Each query that is refused, and a part of the sentence."""
RECORDS_OF_TEST = [1]


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_reaches_nothing_but_the_tables(
    records: Database, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    RECORDS_OF_TEST = [2]  # noqa: N806
    with pytest.raises(Exception, match="KERF241: ") as refused:
        answer(records, query)
    assert REFUSED[query] in str(refused.value)
    assert (list(tmp_path.iterdir()), RECORDS_OF_TEST) == ([], [2])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory by RLIMIT_DATA")
def test_a_query_without_end_or_bounds_is_ended(kerf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = kerf("sql", "SELECT list_sum(range(100000000))", SPOT)
    assert (code, out, err[:9]) == (2, "", "KERF128: ")
    monkeypatch.setattr(limits, "SECONDS", 0.5)
    monkeypatch.setattr(limits, "TO_READ", 0)
    endless = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    code, out, err = kerf("sql", endless, SPOT)
    assert (code, out) == (2, "")
    assert re.match("KERF128: .*CPU time", err)


def test_json_and_csv_have_the_rows_of_the_table(kerf: Any) -> None:
    query = "SELECT claim, price, launched, replaces, 7::HUGEINT AS n, 1 AS n FROM claims ORDER BY ALL"
    found = json.loads(kerf("sql", query, SPOT, "--json")[1])
    assert [column["name"] for column in found["columns"]] == ["claim", "price", "launched", "replaces", "n", "n_1"]
    rows = list(csv.DictReader(io.StringIO(kerf("sql", query, SPOT, "--csv")[1])))
    assert [row["claim"] for row in rows] == [row["claim"] for row in found["rows"]]
    assert [float(row["price"]) for row in rows] == [row["price"] for row in found["rows"]]
    assert all(row["launched"].endswith("Z") and row["replaces"] == [] and row["n"] == 7 for row in found["rows"])
    assert all(row["claim"] in kerf("sql", query, SPOT)[1] for row in rows)


def test_what_a_query_makes_cannot_steer_a_terminal_or_a_spreadsheet(kerf: Any) -> None:
    query = "SELECT chr(27) || '[2J' AS a, '=1+1' AS \"\x1bb\", 'nan'::DOUBLE AS c, 1e30::HUGEINT AS d, 'x'::BLOB AS e"
    for flags in ([], ["--csv"], ["--json"]):
        code, out, err = kerf("sql", query, SPOT, *flags)
        assert (code, err) == (0, "")
        assert "\x1b" not in out
    assert "'=1+1" in kerf("sql", query, SPOT, "--csv")[1]
    [row] = json.loads(kerf("sql", query, SPOT, "--json")[1])["rows"]
    assert (row["c"], int(row["d"]) > 10**29) == (None, True)


def test_a_long_table_is_cut_and_says_so(kerf: Any) -> None:
    out = kerf("sql", "SELECT * FROM range(1001)", SPOT)[1]
    assert out.splitlines()[-1] == "More than 1,000 rows: --csv and --json have all"
    assert len(kerf("sql", "SELECT * FROM range(1001)", SPOT, "--csv")[1].splitlines()) == 1002
    assert kerf("sql", "SELECT 1 WHERE false", SPOT)[1].splitlines()[-1] == "No rows"


def test_records_of_one_name_are_told_apart(kerf: Any) -> None:
    assert names_of(["a/x.kerf", "b/x.kerf", "c/y.kerfb"]) == ["a/x.kerf", "b/x.kerf", "y"]
    assert names_of(["postgresql://me:secret@host/db"]) == ["postgresql://me@host/db"]
    out = kerf("sql", "SELECT record, last FROM records ORDER BY record", WORKSHOP, SPOT, SPOT, "--csv")[1]
    assert [line.split(",")[0] for line in out.splitlines()] == ["record", Path(SPOT).name, Path(WORKSHOP).name]


def test_an_imported_record_says_what_it_lacks_and_guesses_no_price(kerf: Any) -> None:
    query = "SELECT count(*) AS n, count(price) AS priced, count(cost) AS paid FROM claims"
    code, out, err = kerf("sql", query, IMPORTED, "--json")
    assert code == 0
    assert "Note: imported-karpenter-log is an imported record. Not in it: " in err
    [row] = json.loads(out)["rows"]
    assert row["n"] > 0
    assert (row["priced"], row["paid"]) == (0, 0)


def test_without_duckdb_the_extra_is_named(kerf: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for command in (("sql", "SELECT 1", SPOT), ("export", SPOT, "--parquet", tmp_path / "new")):
        code, out, err = kerf(*command)
        assert (code, out, err[:9]) == (2, "", "KERF240: ")
        assert "pip install '.[analysis]'" in err
    assert list(tmp_path.iterdir()) == []


def test_tables_are_listed_without_a_record(kerf: Any) -> None:
    listed = json.loads(kerf("sql", "--tables", "--json")[1])
    assert list(listed) == list(TABLES)
    out = kerf("sql", "--tables")[1]
    assert all(f"{name}: " in out for name in TABLES)
    assert kerf("sql", "SELECT 1")[2].startswith("KERF200: ")
    assert kerf("sql", "demo.kerf", "SELECT 1")[2].startswith("KERF200: the query comes before the records")


def test_parquet_holds_the_tables(kerf: Any, tmp_path: Path) -> None:
    import duckdb

    folder = tmp_path / "it's new"
    code, _, err = kerf("export", WORKSHOP, SPOT, "--parquet", folder)
    assert (code, err) == (0, "")
    assert sorted(file.stem for file in folder.iterdir()) == sorted(TABLES)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())} == {0o700, 0o600}
    place = str(folder / "claims.parquet").replace("'", "''")
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT record, sum(cost) FROM '{place}' GROUP BY ALL").fetchall()
    for record in (WORKSHOP, SPOT):
        told = json.loads(kerf("cost", record, "--json")[1])["total"]["cost"]
        assert dict(found)[Path(record).name] == pytest.approx(told)


def test_csv_holds_the_tables(kerf: Any, tmp_path: Path) -> None:
    code, out, err = kerf("export", SPOT, "--csv", tmp_path / "new", "--json")
    assert (code, err) == (0, "")
    files = [Path(file) for file in json.loads(out)["files"]]
    assert sorted(file.name for file in files) == sorted(f"{table}.csv" for table in TABLES)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    asked = kerf("sql", "SELECT * FROM claims", SPOT, "--csv")[1]
    assert (tmp_path / "new" / "claims.csv").read_text() == asked


@pytest.mark.parametrize("flags", [(), ("--csv", "a", "--parquet", "b")])
def test_an_export_needs_one_folder(kerf: Any, flags: tuple[str, ...]) -> None:
    code, _, err = kerf("export", SPOT, *flags)
    assert (code, err[:9]) == (2, "KERF200: ")


@pytest.mark.parametrize("what", ["folder", "file", "link", "dangling link"])
def test_an_export_writes_to_a_new_folder_alone(kerf: Any, tmp_path: Path, what: str) -> None:
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    if what == "folder":
        place.mkdir()
    elif what == "file":
        place.write_text("mine")
    else:
        place.symlink_to(elsewhere)
        if what == "link":
            elsewhere.mkdir()
    before = sorted(tmp_path.rglob("*"))
    code, out, err = kerf("export", SPOT, "--parquet", place)
    assert (code, out) == (2, "")
    assert err.startswith("KERF119: " if "link" in what else "KERF114: ")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_that_the_system_refuses_says_which_file_and_why(kerf: Any, tmp_path: Path, form: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        code, out, err = kerf("export", SPOT, f"--{form}", tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out) == (2, "")
    assert err.startswith(f"KERF100: it cannot be written: File too large [{tmp_path / 'new'}")
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_nothing(kerf: Any, tmp_path: Path) -> None:
    code, _, err = kerf("export", SPOT, tmp_path / "missing.kerf", "--parquet", tmp_path / "new")
    assert (code, err[:9]) == (2, "KERF113: ")
    assert list(tmp_path.iterdir()) == []
