"""lp4k's table becomes a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.engine.record.claim_events import Cancelled, Initialized, Launched, Tainted, Terminated
from kerf.engine.record.observations import ControllerDecided
from kerf.replay.verify.verify import verify
from tests.support.imports.imported import SAMPLES, entries_of, imported, payloads, told, written

AT = 1_772_442_000_000  # 2026-03-02T09:00:00Z


def test_the_sample_of_33_columns_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "lp4k-33.csv") as (summary, store):
        assert {e.payload.claim: e.at - AT for e in entries_of(store, Launched)} == {
            "general-aaaaa": 3_900, "general-bbbbb": 4_050,
        }  # fmt: skip
        assert len(payloads(store, Initialized)) == 2
        assert [(t.claim, t.why) for t in payloads(store, Tainted)] == [("general-bbbbb", "empty")]
        assert [c.claim for c in payloads(store, Cancelled)] == ["general-zzzzz"]
        assert (summary.claims, summary.gone) == (3, 1)
        assert verify(store).exit_code == 0


def test_the_sample_of_36_columns_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "lp4k-36.csv") as (_, store):
        (decided,) = payloads(store, ControllerDecided)
        assert (decided.claims, decided.replacements) == (("general-ccccc", "general-ddddd"), ("general-eeeee",))
        assert (decided.why, decided.pods, decided.savings) == ("underutilized", 9, 0.19)
        assert [t.lifetime for t in payloads(store, Terminated)] == [12_722_600, 12_737_700]  # since the launch


@pytest.mark.parametrize("spelling", ["{}", "{}({})", "{}[{}]"])
def test_f99_headers_of_all_releases_are_read(tmp_path: Path, spelling: str) -> None:
    header, *rows = (SAMPLES / "lp4k-33.csv").read_text().splitlines()
    names = [name.partition("[")[0].partition("(")[0].lower() for name in header.split(",")]
    spelled = ",".join(spelling.format(name, number) for number, name in enumerate(names, start=1))
    with imported(tmp_path, written(tmp_path, "table", spelled, *rows)) as (summary, _):
        assert summary.claims == 3


def test_f108_a_decision_that_lost_nodes_says_so(tmp_path: Path) -> None:
    header, first, second, *rows = (SAMPLES / "lp4k-36.csv").read_text().splitlines()
    cells = first.split(",")
    cells[14:20] = [""] * 6  # the columns of the decision
    with imported(tmp_path, written(tmp_path, "table", header, ",".join(cells), second, *rows)) as (_, store):
        assert "karpenter: the decision was about 2 nodes, and the table names 1: the others are not known" in told(
            store
        )


def test_rows_of_other_lengths_are_counted(tmp_path: Path) -> None:
    lines = (SAMPLES / "lp4k-33.csv").read_text().splitlines()
    with imported(tmp_path, written(tmp_path, "table", *lines, "a,b", "x" * 5_000, "\x00" * 9)) as (summary, _):
        assert (summary.files[0].read, summary.files[0].unread) == (3, 3)
