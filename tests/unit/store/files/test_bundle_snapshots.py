"""Snapshots in a bundle: any moment is there without folding all before it, and a false one is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.files import bundle_snapshots
from kerf.adapters.store.files.bundle import BundleStore, export_bundle, inspect_bundle
from kerf.adapters.store.files.bundle_snapshots import Kept, SnapshotFold
from kerf.adapters.store.open import open_record
from kerf.engine.record.errors import RecordCorrupt
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.replay.verify.verify import verify
from tests.support.records import stored, whole_life


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("record") / "r.kerf", whole_life().store)


@pytest.fixture
def export(record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BundleStore]:
    """Exports the record with a snapshot every five entries, and opens the bundle."""
    monkeypatch.setattr(bundle_snapshots, "SPACING", 5)

    def exported(name: str = "b.kerfb", **options: object) -> BundleStore:
        source = open_record(record)
        export_bundle(source, tmp_path / name, **options)  # type: ignore[arg-type]
        source.close()
        return BundleStore(tmp_path / name)

    return exported


def test_the_state_at_any_position_is_that_of_the_record(export: Callable[..., BundleStore], record: Path) -> None:
    bundle, source = export(), open_record(record)
    assert bundle.info.format == 3
    assert bundle.info.snapshots == len(bundle.snapshots(snapshot.SCHEMA)) > 5
    for position in range(1, bundle.last_position() + 1):
        assert snapshot.digest(load(bundle, position)) == snapshot.digest(load(source, position))
        assert bundle.believed in (0, *bundle.snapshots(snapshot.SCHEMA))
        assert position - bundle.believed < 15, "a turn may be longer than the spacing"
    source.close()


def test_snapshots_stand_between_turns(export: Callable[..., BundleStore]) -> None:
    bundle = export()
    first = {entry.turn for entry in bundle.scan()}
    assert all(position + 1 in first for position in bundle.snapshots(snapshot.SCHEMA))


def test_verify_makes_each_snapshot_again(export: Callable[..., BundleStore]) -> None:
    bundle = export()
    report = verify(bundle)
    assert (report.exit_code, report.snapshots) == (0, bundle.info.snapshots)


def test_names_in_snapshots_are_pseudonyms_too(export: Callable[..., BundleStore]) -> None:
    bundle = export(pseudonymise=True)
    assert verify(bundle).snapshots == bundle.info.snapshots > 0
    found = bundle.snapshot(None, snapshot.SCHEMA)
    assert found is not None
    assert b"m5.large" in found[1]
    assert b"us-west-2a/i-1" not in found[1]


def test_a_false_snapshot_is_found_and_no_entry_is_blamed(
    export: Callable[..., BundleStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SnapshotFold._between_turns

    def false(self: SnapshotFold, state: object) -> None:
        honest(self, state)  # type: ignore[arg-type]
        if len(self.kept) == 2:
            twin = snapshot.decode(self.kept[1].state, self._blobs)
            twin.facts.epoch += 1
            data, digest = snapshot.encode(twin)
            self.kept[1] = Kept(self.kept[1].position, digest, data)

    monkeypatch.setattr(SnapshotFold, "_between_turns", false)
    bundle = export()
    position = list(bundle.snapshots(snapshot.SCHEMA))[1]
    inspect_bundle(bundle.path)
    report = verify(bundle)
    assert report.fault is not None
    assert (report.fault.code, report.fault.position, report.exit_code) == ("KERF109", position, 3)
    assert (report.diverged, report.last) == (0, bundle.last_position())


def test_a_snapshot_of_another_schema_is_not_used(
    export: Callable[..., BundleStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SCHEMA", "0" * 16)
    bundle = export()
    monkeypatch.undo()
    assert bundle.info.snapshots > 0
    assert bundle.snapshots(snapshot.SCHEMA) == {}
    assert load(bundle).facts.position == bundle.last_position()
    assert (bundle.believed, verify(bundle).snapshots) == (0, 0)


def test_a_snapshot_of_another_position_is_not_used(
    export: Callable[..., BundleStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SnapshotFold._between_turns

    def moved(self: SnapshotFold, state: object) -> None:
        honest(self, state)  # type: ignore[arg-type]
        self.kept = [Kept(kept.position - 1, kept.digest, kept.state) for kept in self.kept[-1:]]

    monkeypatch.setattr(SnapshotFold, "_between_turns", moved)
    bundle = export()
    assert load(bundle).facts.position == bundle.last_position()
    assert verify(bundle).exit_code == 3


def test_a_damaged_snapshot_is_found_by_inspect(export: Callable[..., BundleStore]) -> None:
    bundle = export()
    frame, offset = next(found for found in bundle._frames if found[0].kind == "snapshot")
    content = bytearray(bundle.path.read_bytes())
    content[offset + frame.length // 2] ^= 1
    bundle.path.write_bytes(content)
    with pytest.raises(RecordCorrupt, match="the snapshot were changed"):
        inspect_bundle(bundle.path)


def test_a_part_of_a_record_without_its_beginning_has_none(export: Callable[..., BundleStore]) -> None:
    assert export(after=12).info.snapshots == 0


def test_where_there_are_many_they_get_further_apart(
    export: Callable[..., BundleStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_snapshots, "MOST", 3)
    bundle = export()
    assert 1 < bundle.info.snapshots <= 4
    assert verify(bundle).exit_code == 0


def test_commands_say_that_they_believe_a_snapshot(
    export: Callable[..., BundleStore], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = export()
    assert main(["status", str(bundle.path)]) == 0
    assert "Note: the state comes from a snapshot in the bundle (position" in capsys.readouterr().err
    assert main(["status", str(bundle.path), "--at", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["bundle", "inspect", str(bundle.path)]) == 0
    assert f"{bundle.info.snapshots} snapshots of the state" in capsys.readouterr().out
    assert main(["verify", str(bundle.path)]) == 0
    out, err = capsys.readouterr()
    assert "snapshots" in out
    assert err == ""
