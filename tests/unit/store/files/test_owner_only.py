"""Records, bundles and keys are for their owner alone, whatever the umask lets others do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.observations import OfficeTaken, RecordStarted
from tests.contract.store_contract import turn
from tests.support.repository import ROOT

WORKSHOP = str(ROOT / "docs/examples/workshop")


@pytest.fixture(params=["0000", "0022"], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(int(request.param, 8))
    yield
    os.umask(old)


def modes(folder: Path) -> dict[str, str]:
    """The rights of each file, by its name."""
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that others may look into."""
    made = tmp_path / "records"
    made.mkdir()
    made.chmod(0o755)
    return made


def test_the_files_of_a_controllers_record_are_for_their_owner(folder: Path) -> None:
    """Also those that SQLite makes beside it, after a restart and for a reader."""
    own = dict.fromkeys(("r.kerf", "r.kerf-wal", "r.kerf-shm"), "0o600")
    with closing(SQLiteStore(folder / "r.kerf", "create")) as store:
        store.append(turn([RecordStarted("r-1", "0.1.0"), OfficeTaken(1, "me")], first=1))
        assert modes(folder) == own
        with closing(SQLiteStore(folder / "r.kerf", "read")) as reader:
            assert len(list(reader.encoded())) == 2
            assert modes(folder) == own
    with closing(SQLiteStore(folder / "r.kerf", "write")) as store:
        store.append(turn([OfficeTaken(2, "me")], first=3))
        assert modes(folder) == own
    assert set(modes(folder).values()) == {"0o600"}


def test_records_bundles_and_keys_of_commands_are_for_their_owner(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, bundle = str(folder / "r.kerf"), str(folder / "b.kerfb")
    assert main(["simulate", WORKSHOP, "--quiet", "--until", "1m", "--record", record]) == 0
    assert main(["bundle", "export", record, bundle]) == 0
    assert main(["bundle", "export", record, f"{bundle}2", "--pseudonymise"]) == 0
    assert main(["bundle", "golden", record, str(folder / "golden"), "--guards", "rights"]) == 0
    found = modes(folder)
    assert found.pop("golden") == "0o700"
    assert set(modes(folder / "golden").values()) == {"0o600"}
    assert found == dict.fromkeys(("r.kerf", "b.kerfb", "b.kerfb2", "b.kerfb2.key"), "0o600")
