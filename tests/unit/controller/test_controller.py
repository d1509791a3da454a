"""The driver on asyncio: turns, effects and their answers, failures of adapters and of the store, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kerf.adapters.controller import controller as module
from kerf.adapters.controller import instance_polling
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.errors import EpochRefused, StoreFull
from kerf.engine.record.observations import ClocksAgree, EffectAnswered, LaunchAnswered
from tests.support.controller import Scene


async def play(script: Callable[[Scene], Awaitable[None]]) -> Scene:
    scene = Scene()
    running = asyncio.create_task(scene.controller.run())
    try:
        await script(scene)
    finally:
        scene.controller.stop()
        await running
    return scene


@pytest.mark.asyncio(loop_scope="function")
async def test_what_arrives_becomes_a_turn_and_its_intents_are_answered() -> None:
    async def script(scene: Scene) -> None:
        scene.pending("a", "b")
        (answer,) = await scene.seen.until(LaunchAnswered)
        assert answer.instance == "i-1"

    scene = await play(script)
    assert len(scene.cloud.launched) == 1
    assert [e.position for e in scene.seen.entries] == sorted({e.position for e in scene.seen.entries})


@pytest.mark.asyncio(loop_scope="function")
async def test_the_clocks_come_first_in_a_turn() -> None:
    """What is seen in the turn is seen at the time that they set: it moves no more (ADR 9)."""

    async def script(scene: Scene) -> None:
        scene.clocks.untold = [ClocksAgree(moved=3_600_000, since=1)]
        scene.pending("a")
        await scene.seen.until(LaunchAnswered)

    scene = await play(script)
    kinds = [type(entry.payload) for entry in scene.seen.entries]
    assert kinds.index(ClocksAgree) < kinds.index(Pod)


@pytest.mark.asyncio(loop_scope="function")
async def test_an_adapter_that_fails_in_an_unknown_way_is_one_failed_effect() -> None:
    async def script(scene: Scene) -> None:
        scene.cloud.fails = ZeroDivisionError("oops")
        scene.pending("a")
        (answer,) = await scene.seen.until(LaunchAnswered)
        assert (answer.instance, answer.kind, answer.code) == ("", "error", "KERF605")
        assert "ZeroDivisionError: oops" in answer.message
        assert scene.controller.ready

    assert "KERF605" in str((await play(script)).controller.error)


@pytest.mark.asyncio(loop_scope="function")
async def test_instances_are_looked_at_again_after_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """D-157: a claim ends when its instance is seen to be gone; a task that is over sees nothing."""
    monkeypatch.setattr(instance_polling, "LIST_AFTER", 0.0)
    listings: list[int] = []
    enough = asyncio.Event()

    async def script(scene: Scene) -> None:
        loop = asyncio.get_running_loop()

        def listing() -> None:
            listings.append(1)
            if len(listings) == 1:
                raise KeyError("LaunchTime")
            loop.call_soon_threadsafe(enough.set)

        scene.cloud.listing = listing  # type: ignore[method-assign]
        async with asyncio.timeout(10):
            await enough.wait()

    assert "KERF605" in str((await play(script)).controller.error)
    assert len(listings) >= 2


@pytest.mark.asyncio(loop_scope="function")
async def test_nothing_is_carried_out_while_the_store_fails() -> None:
    """No append, no act (design, idea 4)."""

    async def script(scene: Scene) -> None:
        scene.world.store.fail_with = StoreFull("no room is left")
        scene.pending("a")
        while scene.controller.ready:
            await asyncio.sleep(0.01)
        await asyncio.sleep(5 * module.STORE_RETRY)
        assert scene.cloud.launched == []
        scene.world.store.fail_with = None
        await scene.seen.until(LaunchAnswered)
        assert scene.controller.ready

    assert len((await play(script)).cloud.launched) == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_another_writer_ends_it() -> None:
    scene = Scene()
    running = asyncio.create_task(scene.controller.run())
    scene.world.store.fail_with = EpochRefused("another is in office")
    scene.pending("a")
    with pytest.raises(EpochRefused):
        await running
    assert scene.cloud.launched == []


@pytest.mark.asyncio(loop_scope="function")
async def test_answers_to_what_was_begun_are_recorded_at_the_end() -> None:
    async def script(scene: Scene) -> None:
        scene.pending("a")
        while not scene.cloud.launched:
            await asyncio.sleep(0.001)

    scene = await play(script)
    payloads = [entry.payload for entry in scene.world.store.entries]
    assert sum(isinstance(payload, LaunchAnswered) for payload in payloads) == 1
    assert not [payload for payload in payloads if isinstance(payload, EffectAnswered)]
