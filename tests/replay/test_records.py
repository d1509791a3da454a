"""The records of older engines verify as "same", or differ as declared: see tests/records/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.input.declared_changes import declared_changes
from kerf.adapters.store.files.bundle import BundleStore, inspect_bundle
from kerf.replay.verify.decide_again import VERSIONS
from kerf.replay.verify.verify import verify
from tests.records import make

FOLDERS = sorted(path.parent for path in make.HERE.glob(f"*/{make.DIGESTS}"))
RECORDS = [path for folder in FOLDERS for path in sorted(folder.glob("*.kerfb"))]
KINDS = {"random.kerfb", "adopted.kerfb", "pseudonymised.kerfb", "cut.kerfb", "postgresql.kerfb"}


def committed(record: Path) -> dict[str, Any]:
    digests: dict[str, dict[str, Any]] = json.loads((record.parent / make.DIGESTS).read_text())
    return digests[record.name]


def older_deciders(record: Path) -> set[str]:
    """The deciders of a record whose VERSION was raised since."""
    return {name for name, decider in committed(record)["deciders"].items() if decider["version"] != VERSIONS[name]}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.parent.name}/{record.stem}")
def test_a_record_is_the_same_or_differs_as_declared(record: Path) -> None:
    """Whoever raises a VERSION says in tests/records/changes.yaml why: what differs otherwise diverges here."""
    inspect_bundle(record)
    report = verify(BundleStore(record), changes=declared_changes(make.HERE / "changes.yaml", None))
    assert (report.fault, report.diverged, report.unsupported) == (None, 0, ()), report.divergences
    assert report.exit_code == 0
    assert {change.what for change in report.declared if change.version} == older_deciders(record)
    assert report.decisions == sum(decider["decisions"] for decider in committed(record)["deciders"].values())


def test_older_decisions_are_unsupported_where_nothing_is_declared() -> None:
    record = make.HERE / "0.1.0" / "golden-no-capacity.kerfb"
    report = verify(BundleStore(record))
    assert (report.exit_code, report.diverged) == (4, 0)
    assert {turns.detail.partition(" ")[0] for turns in report.unsupported} == older_deciders(record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.parent.name}/{record.stem}")
def test_a_record_has_its_committed_digests(record: Path) -> None:
    assert make.digests(record) == committed(record)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_kind_of_record_is_there_and_none_is_missing(folder: Path) -> None:
    records = {path.name for path in folder.glob("*.kerfb")}
    assert records == json.loads((folder / make.DIGESTS).read_text()).keys()
    if folder.name == make.UNRELEASED:
        return
    assert records >= KINDS
    assert len([name for name in records if name.startswith("golden-")]) >= 8


def test_the_versions_of_today_have_records_of_their_own() -> None:
    """Those that were raised since the release: tests/records/README.md says how they are made anew."""
    raised = {decider for record in RECORDS for decider in older_deciders(record)}
    kept = {name for record in RECORDS for name in committed(record)["deciders"] if name not in older_deciders(record)}
    assert raised <= kept


def test_the_records_use_every_decider() -> None:
    """ "consistency" speaks only where a Node reports too little (L-241): no simulated Node does."""
    used = {decider for record in RECORDS for decider in committed(record)["deciders"]}
    assert used >= VERSIONS.keys() - {"consistency"}


def test_a_record_that_exists_is_never_overwritten() -> None:
    with pytest.raises(FileExistsError):
        make.make(FOLDERS[0])
