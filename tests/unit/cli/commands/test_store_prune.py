"""kerf store prune."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from tests.support.records import stored, whole_life


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """An hour of a node's life."""
    return stored(tmp_path / "r.kerf", whole_life().store)


def test_a_record_within_its_limits_stays(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "prune", str(record)]) == 0
    assert "nothing is due" in capsys.readouterr().out


def test_a_dry_run_changes_nothing(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = record.read_bytes()
    assert main(["store", "prune", str(record), "--observations", "5m", "--dry-run"]) == 0
    assert "would begin after position" in capsys.readouterr().out
    assert record.read_bytes() == before


def test_what_is_left_is_verified_told_and_says_where_it_begins(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SQLiteStore(record, "read")
    entries = len(list(store.scan()))
    store.close()
    assert main(["store", "prune", str(record), "--observations", "5m", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["done"]
    assert 0 < done["base"] < entries
    assert main(["verify", str(record)]) == 0
    said = capsys.readouterr().out
    assert f"begins after position {done['base']}" in said
    assert "kept from before, unchanged" in said
    assert main(["log", str(record)]) == 0
    assert "default-" in capsys.readouterr().out
    assert main(["at", str(record), "1"]) == 2
    assert "KERF118" in capsys.readouterr().err
    assert main(["at", str(record), "end"]) == 0
    assert main(["at", str(record), str(done["base"])]) == 0


@pytest.mark.parametrize(
    ("option", "text"),
    [("--observations", "7"), ("--decisions", "soon"), ("--size", "large")],
    ids=["age", "text", "size"],
)
def test_what_cannot_be_read(record: Path, option: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "prune", str(record), option, text]) == 2
    assert "KERF340" in capsys.readouterr().err


def test_a_bundle_is_not_cut(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(tmp_path / "b.kerfb")
    assert main(["bundle", "export", str(record), bundle, "--since", "-30m"]) == 0
    assert main(["store", "prune", bundle]) == 2
    assert "KERF107" in capsys.readouterr().err
    assert main(["verify", bundle]) == 0
    assert main(["bundle", "inspect", bundle]) == 0
    assert "it begins with the state after position" in capsys.readouterr().out


def test_a_file_of_an_older_kerf_is_written_anew(record: Path) -> None:
    assert main(["store", "prune", str(record), "--observations", "5m", "--rebuild"]) == 0
    assert main(["verify", str(record)]) == 0
