"""The records of released engines verify as "same": see tests/records/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.store.files.bundle import BundleStore, inspect_bundle
from kerf.replay.verify.decide_again import VERSIONS
from kerf.replay.verify.verify import verify
from tests.records import make

UNSUPPORTED_SINCE: dict[str, int] = {
    "provision": 23, "moves": 16, "move": 12, "advance": 6, "adopt": 4, "static": 5, "drain": 5,
}  # fmt: skip
"""Decider → the first VERSION that cannot decide older decisions again, as in {"provision": 23}."""

FOLDERS = sorted(path.parent for path in make.HERE.glob(f"*/{make.DIGESTS}"))
RECORDS = [path for folder in FOLDERS for path in sorted(folder.glob("*.kerfb"))]
KINDS = {"random.kerfb", "adopted.kerfb", "pseudonymised.kerfb", "cut.kerfb", "postgresql.kerfb"}


def committed(record: Path) -> dict[str, Any]:
    digests: dict[str, dict[str, Any]] = json.loads((record.parent / make.DIGESTS).read_text())
    return digests[record.name]


def unsupported_deciders(record: Path) -> set[str]:
    """The deciders of a record whose recorded version is older than the one that `UNSUPPORTED_SINCE` names."""
    recorded = committed(record)["deciders"]
    return {
        decider
        for decider, since in UNSUPPORTED_SINCE.items()
        if decider in recorded and recorded[decider]["version"] < since
    }


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.parent.name}/{record.stem}")
def test_a_record_verifies_as_same(record: Path) -> None:
    inspect_bundle(record)
    report = verify(BundleStore(record))
    expected = unsupported_deciders(record)
    assert (report.fault, report.diverged) == (None, 0), report.divergences
    assert {turns.detail.partition(" ")[0] for turns in report.unsupported} == expected
    if not expected:
        assert report.exit_code == 0
        assert report.decisions == sum(decider["decisions"] for decider in committed(record)["deciders"].values())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.parent.name}/{record.stem}")
def test_a_record_has_its_committed_digests(record: Path) -> None:
    assert make.digests(record) == committed(record)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_kind_of_record_is_there_and_none_is_missing(folder: Path) -> None:
    records = {path.name for path in folder.glob("*.kerfb")}
    assert records == json.loads((folder / make.DIGESTS).read_text()).keys()
    assert records >= KINDS
    assert len([name for name in records if name.startswith("golden-")]) >= 8


def test_the_records_use_every_decider() -> None:
    """ "consistency" speaks only where a Node reports too little (L-241): no simulated Node does."""
    used = {decider for record in RECORDS for decider in committed(record)["deciders"]}
    assert used >= VERSIONS.keys() - {"consistency"}


def test_a_record_that_exists_is_never_overwritten() -> None:
    with pytest.raises(FileExistsError):
        make.make(FOLDERS[0])
