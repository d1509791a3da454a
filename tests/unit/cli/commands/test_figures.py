"""`kerf cost`, `evictions`, `churn` and `capacity` from outside."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.cli.render.figures.loops import show_loops
from kerf.projections.figures.loops import UNUSED, Loop
from tests.support.repository import ROOT

RECORD = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
CHEAPER_NODE = ROOT / "tests" / "golden" / "cheaper-node"
DRIFTED = ROOT / "tests" / "golden" / "drifted-replacement-first"
NO_CAPACITY = ROOT / "tests" / "golden" / "no-capacity"
IMPORTED = ROOT / "tests" / "golden" / "imported-karpenter-log"


@pytest.mark.parametrize("command", ["cost", "evictions", "churn", "capacity"])
def test_json_and_csv_have_the_rows_of_the_table(kerf: Any, command: str) -> None:
    code, out, err = kerf(command, NO_CAPACITY, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    as_csv = list(csv.DictReader(io.StringIO(kerf(command, NO_CAPACITY, "--csv")[1])))
    assert [row[answer["by"]] for row in as_csv] == [row[answer["by"]] for row in answer["rows"]]
    for name, total in answer["total"].items():
        assert sum(float(row[name]) for row in as_csv) == pytest.approx(total)
    counts = [
        amount for name, amount in answer["total"].items() if name not in ("cost", "node_hours", "lifetime_hours")
    ]
    assert all(isinstance(count, int) for count in counts if command != "cost")
    text = kerf(command, NO_CAPACITY)[1]
    assert all(row[answer["by"]] in text for row in answer["rows"])


def test_a_price_list_is_used_and_counted(kerf: Any, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("on-demand: +100%\nm5.large/us-west-2c: 7\n")
    before = json.loads(kerf("cost", RECORD, "--json")[1])
    after = json.loads(kerf("cost", RECORD, "--prices", prices, "--json")[1])
    assert after["total"]["cost"] == pytest.approx(2 * before["total"]["cost"])
    assert after["notes"] == [f"priced by {prices}: 1 node"]


@pytest.mark.parametrize(
    ("mistyped", "meant"), [("m5.lagre", "m5.large"), ("spott", "spot"), ("m5large/spot", "m5.large")]
)
def test_a_mistyped_name_in_a_price_list_is_noted(kerf: Any, tmp_path: Path, mistyped: str, meant: str) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"{mistyped}: 0.05\n")
    answer = json.loads(kerf("cost", RECORD, "--prices", prices, "--json")[1])
    part = mistyped.partition("/")[0]
    assert answer["notes"][1:] == [f"{part} is no instance type, zone or capacity type that kerf knows. Is it {meant}?"]


def test_a_list_of_all_types_may_know_more_of_them_than_kerf(kerf: Any, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    names = [*tables().types, *(name.replace("m8g.", "m99g.") for name in tables().types if "m8g." in name)]
    prices.write_text("".join(f"{name}: 0.05\n" for name in names) + "us-west-2-lax-1a: +10%\nme-new-1b: 1\n")
    answer = json.loads(kerf("cost", RECORD, "--prices", prices, "--json")[1])
    assert answer["notes"] == [f"priced by {prices}: 1 node"]


@pytest.mark.parametrize("price", ["0.05", "-10%"])
def test_nodes_of_an_imported_record_without_a_price_are_not_said_to_keep_one(
    kerf: Any, tmp_path: Path, price: str
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"on-demand: {price}\n")
    answer = json.loads(kerf("cost", IMPORTED, "--prices", prices, "--json")[1])
    (note,) = answer["notes"]
    assert note.endswith(" others without a price, counted as $0")
    assert ("priced by" in note, ": 0 nodes" in note) == (True, price == "-10%")


def test_what_a_row_cost_in_an_hour_is_said_to_be_a_mean(kerf: Any) -> None:
    """Beside an instance type it would read like its price."""
    for arguments in (("--by", "type"), ("--help",)):
        assert "mean per hour" in kerf("cost", RECORD, *arguments)[1].lower()


def test_what_was_saved_is_told_by_reason_with_the_evictions_that_it_took(kerf: Any) -> None:
    code, out, err = kerf("cost", CHEAPER_NODE, "--saved")
    assert (code, err) == (0, "")
    assert "REASON         SAVED     GONE  REPLACEMENTS  EVICTED  FORCED\n" in out
    assert "Reckoned as if each node had stayed until a later one came for pods of its NodePool" in out
    answer = json.loads(kerf("cost", CHEAPER_NODE, "--saved", "--json")[1])
    (row,) = [row for row in answer["rows"] if row["reason"] == "underutilized"]
    evicted = json.loads(kerf("evictions", CHEAPER_NODE, "--by", "reason", "--json")[1])
    assert (row["gone"], row["replacements"]) == (1, 1)
    assert row["evicted"] == evicted["total"]["evicted"] > 0


def test_what_was_saved_may_be_less_than_nothing(kerf: Any) -> None:
    assert "-$" in kerf("cost", DRIFTED, "--saved")[1]


@pytest.mark.parametrize("by", ["workload", "hour"])
def test_what_was_saved_is_not_divided_by_what_a_node_has_several_of(kerf: Any, by: str) -> None:
    code, out, err = kerf("cost", RECORD, "--saved", "--by", by)
    assert (code, out, err) == (2, "", err)
    assert f"KERF200: --saved is not divided by {by} [--by]" in err


@pytest.mark.parametrize("text", ["", "- 1", "m5.large: dear", "m5.large: -3", "spot: -300%", "a: [", "\x00"])
def test_a_bad_price_list_is_refused(kerf: Any, tmp_path: Path, text: str) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(text)
    code, out, err = kerf("cost", RECORD, "--prices", prices)
    assert (code, out, err[:9]) == (2, "", "KERF212: ")
    assert "m5.large/spot: 0.03" in err


def test_a_part_is_counted_alone_and_one_without_nodes_says_so(kerf: Any) -> None:
    assert "No node cost anything from" in kerf("cost", RECORD, "--until", "+1s")[1]
    whole = json.loads(kerf("cost", RECORD, "--json")[1])["total"]["cost"]
    parts = [("start", "+2m"), ("+2m", "end")]
    costs = [
        json.loads(kerf("cost", RECORD, "--since", since, "--until", until, "--json")[1]) for since, until in parts
    ]
    assert sum(cost["total"]["cost"] for cost in costs) == pytest.approx(whole)


def test_a_part_that_would_begin_before_the_record_begins_with_it_and_says_so(kerf: Any) -> None:
    code, out, err = kerf("cost", RECORD, "--since", "-7d", "--json")
    assert (code, out) == (0, kerf("cost", RECORD, "--json")[1])
    assert err.startswith("Note: -7d is before the record begins: taken from its start, 20")


def test_a_part_that_ends_before_it_begins_is_refused(kerf: Any) -> None:
    code, _, err = kerf("evictions", RECORD, "--since", "end", "--until", "start")
    assert (code, err[:9]) == (2, "KERF202: ")


def test_an_unknown_dimension_is_refused(kerf: Any) -> None:
    code, _, err = kerf("churn", RECORD, "--by", "moon")
    assert (code, err[:9]) == (2, "KERF200: ")


def test_churn_says_that_nothing_goes_round_in_circles(kerf: Any) -> None:
    assert "No node goes round in circles." in kerf("churn", RECORD)[1]


@pytest.mark.parametrize(
    ("record", "shown"),
    [("my day.kerf", "'my day.kerf'"), ("postgresql://r:hush@h/d?schema=s", "'postgresql://r@h/d?schema=s'")],
)
def test_the_command_that_tells_of_a_loop_can_be_pasted_and_has_no_password(
    record: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = Loop(
        kind=UNUSED, about="general", claims=("a", "b"), since=0, until=1, nodes=2, evicted=0, cost=0.1, reasons=()
    )
    show_loops([loop], record)
    assert f"look at: kerf story {shown} b\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cost", "evictions", "churn", "capacity"])
def test_json_and_csv_at_once_are_refused(kerf: Any, command: str) -> None:
    code, out, err = kerf(command, NO_CAPACITY, "--json", "--csv")
    assert (code, out, err[:9]) == (2, "", "KERF200: ")
    assert "Give one of them" in err
