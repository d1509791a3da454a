"""Retention while a controller runs: what is due by age and size, and that turns go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.manager.retention import RetentionLoop
from kerf.adapters.store.retention import cut as cutting
from kerf.adapters.store.retention.policy import DAY, Due, Retention, due, extent
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import KerfError
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.settings import Settings
from kerf.engine.record.errors import StoreError, StoreFull
from kerf.engine.record.observations import ObjectGone, Observation, RecordCut
from kerf.engine.runtime import runtime as running
from kerf.engine.runtime.runtime import Runtime
from kerf.replay.verify.verify import verify
from tests.contract.cut_contract import filled
from tests.contract.store_contract import AT, SHAPE_BYTES, pod

FOR_EVER = Retention(0, 0, 0)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = SQLiteStore(tmp_path / "r.kerf", "create")
    yield made
    made.close()


class Controller:
    """A runtime whose turns come as observations do, one pod a day of the record's own time."""

    def __init__(self, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "SNAPSHOT_EVERY", 5)
        self.now = AT
        self.runtime = Runtime(
            store, holder="me", settings=Settings(), record="r" * 32, engine="0", now=self.now
        )  # fmt: skip
        self.said: list[KerfError] = []

    def days(self, count: int) -> None:
        for _ in range(count):
            self.now += DAY
            shape = PodShape(requests={"cpu": 250})
            seen = replace(pod(self.now // DAY), shape=content(shape)[0], unschedulable=False, node="n1")
            self.put([Observation(seen, {seen.shape: shape})])

    def put(self, observations: Iterable[Observation]) -> None:
        self.runtime.turn(list(observations), self.now)

    def retaining(self, store: SQLiteStore, wanted: Retention) -> RetentionLoop:
        return RetentionLoop(
            store, self.runtime, self.put, wanted, now=lambda: self.now, failed=self.said.append, every=0.0
        )  # fmt: skip


@pytest.fixture
def controller(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(store, monkeypatch)


@pytest.mark.asyncio(loop_scope="function")
async def test_what_is_older_than_it_is_kept_goes(store: SQLiteStore, controller: Controller) -> None:
    controller.days(40)
    retaining = controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0))
    await retaining.look()
    base = store.base()
    assert base is not None
    assert controller.now - 15 * DAY < base.at <= controller.now - 7 * DAY  # at a snapshot: of these there are few
    assert retaining.extent is not None
    assert retaining.extent.since == base.at
    assert controller.now - retaining.extent.oldest <= 21 * DAY
    assert verify(store).exit_code == 0
    await retaining.look()
    assert sum(isinstance(entry.payload, RecordCut) for entry in store.scan()) == 1  # nothing more is due
    controller.days(30)
    await retaining.look()
    later = store.base()
    assert later is not None
    assert later.at > base.at
    assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_kept_for_ever_nothing_goes(store: SQLiteStore, controller: Controller) -> None:
    controller.days(400)
    await controller.retaining(store, FOR_EVER).look()
    assert store.base() is None


@pytest.mark.asyncio(loop_scope="function")
async def test_a_record_that_is_too_large_is_cut(store: SQLiteStore, controller: Controller) -> None:
    """Observations go as far as must be, though they are young."""
    controller.days(300)
    before = extent(store)
    wanted = Retention(10_000 * DAY, 0, before.size * 3 // 4)
    await controller.retaining(store, wanted).look()
    assert extent(store).live < before.live
    assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_what_one_process_leaves_the_next_one_removes(store: SQLiteStore, controller: Controller) -> None:
    controller.days(40)
    retaining = controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0))
    announced = retaining._propose(retaining._due() or Due(0, 0))
    controller.put([Observation(announced)])
    cutting.begin(store, controller.runtime.state.facts.cut)  # and then it was killed
    assert store.cut().moved == 0
    await controller.retaining(store, FOR_EVER).look()
    assert store.cut().moved == announced.base
    assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cut_that_was_announced_and_not_begun_is_no_damage(store: SQLiteStore, controller: Controller) -> None:
    """kerf was killed in between, or somebody verifies just then; the cut before it stands."""
    controller.days(40)
    await controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0)).look()
    cut, base = store.cut(), store.base()
    assert base is not None
    announced = cutting.propose(store, base, after=cut.after + 5)
    assert announced.after > cut.after
    controller.put([Observation(announced)])
    assert verify(store).exit_code == 0
    cutting.begin(store, controller.runtime.state.facts.cut)
    assert verify(store).exit_code == 0, "what is to go has not gone yet"
    for _ in cutting.steps(store):
        assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_who_has_lost_office_does_not_cut_back(store: SQLiteStore, controller: Controller) -> None:
    """Of two replicas one stood still between announcing a cut and beginning it; the other has cut further."""
    controller.days(40)
    earlier = controller.retaining(store, Retention(30 * DAY, 0, 0))
    controller.put([Observation(earlier._propose(earlier._due() or Due(0, 0)))])
    announced = controller.runtime.state.facts.cut
    await controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0)).look()
    later = store.cut()
    with pytest.raises(StoreError, match="cut further"):
        cutting.begin(store, announced)
    assert store.cut() == later
    assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_sweep_ends_when_another_cuts_further(
    store: SQLiteStore, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it looked at may have gone, and with it what names a blob."""
    monkeypatch.setattr(cutting, "_BLOBS_PER_STEP", 1)
    for day in range(40):
        controller.now += DAY
        shape = PodShape(requests={"cpu": 250 + day})
        seen = replace(pod(day), shape=content(shape)[0], unschedulable=False, node="n1")
        gone = ObjectGone("pod", pod(day - 1).uid)
        controller.put([Observation(seen, {seen.shape: shape}), Observation(gone)])

    def begin(wanted: Retention) -> None:
        retaining = controller.retaining(store, wanted)
        controller.put([Observation(retaining._propose(retaining._due() or Due(0, 0)))])
        cutting.begin(store, controller.runtime.state.facts.cut)
        while store.cut().moved < store.cut().base:
            cutting._move(store)

    def blobs() -> int:
        with store.session() as session:
            return int(session.run("SELECT count(*) FROM blobs")[0][0])

    before = blobs()
    begin(Retention(20 * DAY, 0, 0))
    sweep = cutting._sweep(store)
    next(sweep)
    assert blobs() == before - 1
    begin(Retention(7 * DAY, 0, 0))
    assert list(sweep) == []
    assert blobs() == before - 1
    assert not store.cut().swept
    await controller.retaining(store, FOR_EVER).look()
    assert blobs() < before - 1
    assert verify(store).exit_code == 0


@pytest.mark.asyncio(loop_scope="function")
async def test_what_fails_is_told_and_tried_again(
    store: SQLiteStore, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.days(40)
    retaining = controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0))
    with monkeypatch.context() as patched:
        patched.setattr(cutting, "propose", lambda *_, **__: (_ for _ in ()).throw(StoreFull("no room")))

        async def run() -> None:
            task = asyncio.create_task(retaining.run())
            async with asyncio.timeout(60):
                while retaining.errors < 3:
                    await asyncio.sleep(0)
            task.cancel()

        await run()
    assert {error.code for error in controller.said} == {"KERF105"}
    assert store.base() is None
    await retaining.look()
    assert store.base() is not None
    told = {family.name: family for family in retaining.families()}
    assert told["kerf_record_retention_errors_total"].samples[()] >= 3
    assert told["kerf_record_size_bytes"].samples[()] > 0


@pytest.mark.asyncio(loop_scope="function")
async def test_a_defect_is_told_and_does_not_end_retention(
    store: SQLiteStore, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that ended in silence would leave the record to grow until the disk is full."""
    controller.days(40)
    retaining = controller.retaining(store, Retention(7 * DAY, 20 * DAY, 0))
    real, asked = cutting.propose, []

    def propose(*given: Any, **more: Any) -> RecordCut:
        asked.append(given)
        if len(asked) == 1:
            raise ZeroDivisionError
        return real(*given, **more)

    monkeypatch.setattr(cutting, "propose", propose)

    task = asyncio.create_task(retaining.run())
    async with asyncio.timeout(60):
        while not task.done() and store.base() is None:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [error.code for error in controller.said] == ["KERF605"]
    assert store.base() is not None


# ── what is due ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_when_nothing_is_due(store: SQLiteStore) -> None:
    assert due(store, Retention(), AT) is None  # an empty record
    filled(store, 40)
    assert due(store, FOR_EVER, AT + 1_000 * DAY) is None
    assert due(store, Retention(DAY, DAY, 0), AT) is None


def test_observations_go_before_what_is_kept(store: SQLiteStore) -> None:
    """An entry is as old as its position, in ms."""
    filled(store, 100)
    assert due(store, Retention(20, 0, 0), AT + 71) == Due(60, 0)  # turns of ten, each at its first position
    assert due(store, Retention(20, 50, 0), AT + 71) == Due(60, 30)
    assert due(store, Retention(20, 0, 0), AT + 71, candidates=[20, 40, 70]) == Due(40, 0)
    assert due(store, Retention(20, 0, 0), AT + 71, candidates=[70]) is None
    found = extent(store)
    assert (found.since, found.oldest, found.kept) == (AT + 1, AT + 1, 0)
    assert found.size > found.live > 100 * len(SHAPE_BYTES)


def test_a_small_size_takes_all_it_can(store: SQLiteStore) -> None:
    filled(store, 100)
    found = due(store, Retention(0, 0, 1_000), AT)
    assert found == Due(100, 0)
    assert due(store, Retention(0, 0, 1_000), AT, candidates=[20, 80]) == Due(80, 0)
