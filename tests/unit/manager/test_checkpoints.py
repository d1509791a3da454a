"""The checkpoints that a controller tells the outside, and the record that is compared with one later."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.kubernetes.events import Happening
from kerf.adapters.manager.checkpoints import CheckpointLoop
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import KerfError
from kerf.engine.record.errors import StoreLocked
from kerf.engine.record.hash_chain import Checkpoint
from tests.support.records import changed, position_of, stored, tampered, whole_life
from tests.support.world import World

NOT_THE_ONE = "KERF126: the record is not the one of the checkpoint: "
LEASE = "kube-system", "karpenter-leader-election"


@pytest.fixture(scope="module")
def life() -> World:
    return whole_life()


@pytest.fixture
def record(tmp_path: Path, life: World) -> Path:
    return stored(tmp_path / "life.kerf", life.store)


class Told:
    """Takes the place of the recorder of Events."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def tell(self, happenings: Any) -> None:
        self.happenings += happenings


@pytest.mark.asyncio(loop_scope="function")
async def test_the_metric_and_the_event_say_what_verify_takes(record: Path, life: World) -> None:
    store, told = SQLiteStore(record, "read"), Told()
    loop = CheckpointLoop(store, LEASE, told, failed=pytest.fail)  # type: ignore[arg-type]
    await loop.look()
    end = store.checkpoint()
    store.close()
    value = f"{end.position}:{end.value.hex()}"
    assert end.position == len(life.store.entries)
    assert f'kerf_record_checkpoint_position{{chain="{end.value.hex()}"}} {end.position}' in (
        exposition(loop.families()).decode()
    )
    (event,) = told.happenings
    assert (event.about.kind, event.about.namespace, event.about.name) == ("Lease", *LEASE)
    assert event.reason == "RecordCheckpoint"
    assert event.message.endswith(f"--checkpoint {value}")
    assert main(["verify", str(record), "--checkpoint", value]) == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_store_that_fails_is_asked_again(tmp_path: Path) -> None:
    """The loop has virtual time."""
    said: list[KerfError] = []

    class Failing:
        asked = 0

        def checkpoint(self) -> Checkpoint:
            self.asked += 1
            if self.asked == 1:
                raise StoreLocked("locked")
            return Checkpoint(7, bytes(16))

    loop = CheckpointLoop(Failing(), LEASE, None, failed=said.append, every=0.0)  # type: ignore[arg-type]
    running = asyncio.create_task(loop.run())
    while not loop.latest.position:
        await asyncio.sleep(0)
    running.cancel()
    assert [error.code for error in said] == ["KERF106"]
    assert loop.latest == Checkpoint(7, bytes(16))


def test_a_record_that_was_changed_and_chained_anew_misses_its_checkpoint(
    record: Path, life: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each copy is consistent in itself: `verify` alone finds nothing amiss in the shortened one."""
    with closing(SQLiteStore(record, "read")) as store:
        end = store.checkpoint()
        middle = store.checkpoint(end.position // 2)
    last, half = (f"{point.position}:{point.value.hex()}" for point in (end, middle))
    forged = stored(
        tmp_path / "forged.kerf", tampered(life.store, changed(position_of(life.store, "claim.launched"), price=9.0))
    )
    shorter = tmp_path / "shorter.kerfb"
    assert main(["bundle", "export", str(record), str(shorter), "--until", str(middle.position)]) == 0
    assert main(["verify", str(shorter), "--checkpoint", half]) == 0
    capsys.readouterr()
    for place in (forged, shorter):
        assert main(["verify", str(place), "--checkpoint", last]) == 3
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(". ")[0].removeprefix(NOT_THE_ONE) for line in told] == [
        f"an entry up to here was changed [position {end.position}]",
        f"entries are missing at the end [position {middle.position}]",
    ]


@pytest.mark.parametrize("text", ["", "102", "x:00", "1:" + "0" * 31, "-1:" + "0" * 32, "1" * 5000 + ":" + "0" * 32])
def test_what_is_no_checkpoint_is_refused(record: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(record), "--checkpoint", text]) == 2
    assert capsys.readouterr().err.startswith("KERF20")
