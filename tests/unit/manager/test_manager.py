"""The controller's process: leadership, reading the record, work, and how each of them ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.kubernetes.errors import LeaseLost
from kerf.adapters.manager import checkpoints
from kerf.adapters.manager import manager as module
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.manager import Manager, ManagerConfig
from kerf.adapters.manager.providers.kwok import KwokProvider
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.adapters.manager.reporting import LogOutput
from kerf.adapters.manager.settings import read_settings
from kerf.adapters.store.open import open_record
from kerf.engine.record.observations import Observation, OfficeTaken
from tests.support.servers.fake_kubernetes import Document, FakeApi, serving

pytestmark = pytest.mark.real_time

SECONDS = 60


class Leader:
    """A leadership that is held at once, lost when a test says so, and given up once."""

    def __init__(self) -> None:
        self.held, self.lost, self.released = asyncio.Event(), asyncio.Event(), 0
        self.api = FakeApi()
        self.held.set()

    async def acquire(self) -> int:
        await self.held.wait()
        return 4

    async def hold(self) -> None:
        await self.lost.wait()
        raise LeaseLost("another has taken it")

    async def release(self) -> None:
        self.released += 1


async def run(
    folder: Path,
    play: Callable[[Manager, Leader], Any],
    answers: dict[str, list[tuple[int, Document]]] | None = None,
    **given: str,
) -> Leader:
    """A manager on a cluster that is empty but for `answers`; `play` acts on it while it runs. Raises what the manager
    raises."""
    flags = Flags(metrics_port="0", health_probe_port="0", log_output_paths=str(folder / "log"), **given)
    store, options = f"sqlite://{folder}/record.kerf", read_settings(flags, {})
    config = ManagerConfig(False, "kwok", store, None, None, True, options)

    leader = Leader()
    leader.api.listing()
    leader.api.answers = answers or {}
    async with asyncio.timeout(SECONDS), serving(leader.api) as session:
        manager = Manager(config, session)
        manager._leadership = leader
        running = asyncio.create_task(manager.run())
        acting = asyncio.create_task(play(manager, leader))
        try:
            await running
        finally:
            acting.cancel()
        return leader


async def until_ready(manager: Manager) -> None:
    while manager._telemetry._metrics is None or manager._telemetry.faults():
        await asyncio.sleep(0.01)


def taken(folder: Path) -> list[int]:
    """The epochs in the record."""
    store = open_record(str(folder / "record.kerf"))
    found = [entry.payload.epoch for entry in store.scan() if isinstance(entry.payload, OfficeTaken)]
    store.close()
    return found


@pytest.mark.asyncio(loop_scope="function")
async def test_it_becomes_ready_and_ends_when_told_to(tmp_path: Path) -> None:
    async def play(manager: Manager, leader: Leader) -> None:
        await until_ready(manager)
        manager.stop()

    assert (await run(tmp_path, play)).released == 1
    assert taken(tmp_path) == [5]
    await run(tmp_path, play)
    assert taken(tmp_path) == [5, 6]


@pytest.mark.asyncio(loop_scope="function")
async def test_l435_what_lasts_is_looked_after_while_it_leads(tmp_path: Path) -> None:
    names: set[str] = set()

    async def play(manager: Manager, leader: Leader) -> None:
        await until_ready(manager)
        names.update(task.get_name() for task in asyncio.all_tasks())
        manager.stop()

    await run(tmp_path, play)
    assert {"events", "events that last"} <= names


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("level", ["info", "debug"])
async def test_l302_the_log_has_the_level_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    levels: list[str] = []

    class Log(LogOutput):
        def __init__(self, level: str, outputs: Sequence[str]) -> None:
            levels.append(level)
            super().__init__(level, outputs)

    async def play(manager: Manager, leader: Leader) -> None:
        await until_ready(manager)
        manager.stop()

    monkeypatch.setattr(module, "LogOutput", Log)
    await run(tmp_path, play, log_level=level)
    assert levels == [level]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_135_the_first_look_at_nodeclasses_knows_the_nodepools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are listed, and those that a record has since the last process."""
    known: list[list[str]] = []

    async def first(provider: KwokProvider, host: ProviderHost) -> list[Observation]:
        known.append([pool.name for pool in await host.node_pools("karpenter.kwok.sh")])
        return []

    async def play(manager: Manager, leader: Leader) -> None:
        await until_ready(manager)
        manager.stop()

    def pool(name: str, group: str) -> Document:
        ref = {"group": group, "kind": "KWOKNodeClass", "name": "default"}
        spec = {"template": {"spec": {"nodeClassRef": ref, "requirements": []}}}
        return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", "generation": 1}, "spec": spec}

    items = [pool("mine", "karpenter.kwok.sh"), pool("other", "karpenter.k8s.aws")]
    listed = {"metadata": {"resourceVersion": "100"}, "items": items}
    monkeypatch.setattr(KwokProvider, "first", first)
    for _ in range(2):
        await run(tmp_path, play, {"GET /apis/karpenter.sh/v1/nodepools": [(200, listed)]})
    assert known == [["mine"], ["mine"]]


@pytest.mark.asyncio(loop_scope="function")
async def test_it_tells_where_its_record_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SOON", 0.01)
    events: list[Any] = []
    metrics: list[bytes] = []

    async def play(manager: Manager, leader: Leader) -> None:
        await until_ready(manager)
        while not events:
            await asyncio.sleep(0.01)
            events.extend(body for _, path, _, body in leader.api.asked if path.endswith("/events"))
        metrics.extend(await manager._telemetry.metrics())
        manager.stop()

    await run(tmp_path, play)
    assert (events[0]["reason"], events[0]["involvedObject"]["kind"]) == ("RecordCheckpoint", "Lease")
    position, _, chain = events[0]["message"].rpartition(" ")[2].partition(":")
    assert f'kerf_record_checkpoint_position{{chain="{chain}"}} {position}' in b"".join(metrics).decode()


@pytest.mark.asyncio(loop_scope="function")
async def test_told_to_stop_while_it_waits_for_the_lease_it_opens_no_record(tmp_path: Path) -> None:
    async def play(manager: Manager, leader: Leader) -> None:
        leader.held.clear()
        await asyncio.sleep(0.05)
        manager.stop()

    assert (await run(tmp_path, play)).released == 0
    assert not (tmp_path / "record.kerf").exists()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_lost_lease_ends_it_with_an_error(tmp_path: Path) -> None:
    leaders: list[Leader] = []

    async def play(manager: Manager, leader: Leader) -> None:
        leaders.append(leader)
        await until_ready(manager)
        leader.lost.set()

    with pytest.raises(LeaseLost, match="KERF604"):
        await run(tmp_path, play)
    assert leaders[0].released == 1


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("lost", [False, True])
async def test_a_long_record_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """When the Lease is lost, that is the error; when it is told to stop, there is none."""
    positions: list[int] = []

    def endless(*_: Any, progress: Callable[[int], None], **__: Any) -> None:
        while True:
            positions.append(len(positions))
            progress(len(positions))
            time.sleep(0.001)

    monkeypatch.setattr(module, "Runtime", endless)

    async def play(manager: Manager, leader: Leader) -> None:
        while len(positions) < 5:
            await asyncio.sleep(0.01)
        if lost:
            leader.lost.set()
        else:
            manager.stop()

    if lost:
        with pytest.raises(LeaseLost):
            await run(tmp_path, play)
    else:
        assert (await run(tmp_path, play)).released == 1
    assert len(positions) >= 5
