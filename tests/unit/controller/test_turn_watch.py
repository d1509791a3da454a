"""A turn that hangs: who asks whether kerf lives is told what it is doing."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from kerf.adapters.controller.turn_watch import TurnHangs, TurnWatch
from kerf.adapters.manager.kubernetes_controller import KubernetesController
from kerf.adapters.manager.metrics.server import MetricsServer
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.engine.record.observations import InputRefused, ObjectGone, Observation
from kerf.engine.scheduling import provision as provisioning
from tests.support.controller import Scene

LIMIT = 300.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_turn_is_overdue_after_the_limit_and_not_before() -> None:
    clock = Clock()
    watch = TurnWatch(clock)
    assert watch.overdue(LIMIT) is None, "no turn is under way"
    watch.begin([Observation(ObjectGone("pod", "a"))] * 3 + [Observation(InputRefused("KERF350", "queue", "m"))])
    clock.now += LIMIT
    assert watch.overdue(LIMIT) is None
    clock.now += 1
    assert watch.overdue(0) is None, "no limit"
    hanging = watch.overdue(LIMIT)
    assert isinstance(hanging, TurnHangs)
    assert "KERF703: a turn has taken 301 s, 300 are allowed (LONGEST_TURN)" in str(hanging)
    assert hanging.where == "a turn about 3 ObjectGone, 1 InputRefused"
    assert watch.end() == LIMIT + 1
    assert watch.overdue(LIMIT) is None


def test_the_process_is_busy_while_a_turn_takes_long_and_while_the_record_is_read() -> None:
    """The Lease is renewed more often then (L-341)."""
    clock, telemetry = Clock(), Telemetry(provider="kwok", state_metrics=False)
    watch = TurnWatch(clock)
    assert not telemetry.busy(), "it waits for the Lease"
    telemetry.read(1, 10)
    assert telemetry.busy()
    telemetry._reading = None
    telemetry.watch(cast(KubernetesController, SimpleNamespace(controller=SimpleNamespace(watch=watch))))
    assert not telemetry.busy(), "no turn"
    watch.begin(())
    assert not telemetry.busy(), "a short turn"
    clock.now += 0.2
    assert telemetry.busy()
    watch.end()
    assert not telemetry.busy()


def test_slow_turns_one_after_another_are_not_one_that_hangs() -> None:
    """A start that adopts a large cluster is slow, and goes on."""
    clock = Clock()
    watch = TurnWatch(clock)
    for _ in range(10):
        watch.begin(())
        clock.now += LIMIT - 1
        assert watch.overdue(LIMIT) is None
        watch.end()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.real_time
@pytest.mark.asyncio(loop_scope="function")
async def test_healthz_says_what_a_turn_that_hangs_is_doing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It saw the event loop alone, which goes on."""
    entered, released = threading.Event(), threading.Event()
    decide = provisioning.provision

    def hangs(*given: Any) -> Any:
        entered.set()
        released.wait(60)
        return decide(*given)

    monkeypatch.setattr(provisioning, "provision", hangs)
    clock, port = Clock(), free_port()
    telemetry = Telemetry(provider="kwok", state_metrics=False, longest_turn=LIMIT)
    serving = MetricsServer(telemetry, metrics_port=0, health_port=port)
    await serving.open()
    scene = Scene()
    scene.controller.watch = TurnWatch(clock)
    world = SimpleNamespace(
        controller=scene.controller, reflectors=[], forbidden=[], runtime=scene.world.runtime, ready=True
    )
    telemetry.watch(cast(KubernetesController, world))
    running = asyncio.create_task(scene.controller.run())

    async def ask(path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{port}{path}"
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            return answer.status, await answer.text()

    try:
        scene.pending("a")
        while not entered.is_set():
            await asyncio.sleep(0.01)
        assert await ask("/healthz") == (200, "ok\n")
        clock.now += LIMIT + 1
        found = [await ask(path) for path in ("/healthz", "/healthz", "/readyz")]
        assert [status for status, _ in found] == [503, 503, 503]
        assert all("KERF703" in text and "engine.runtime." in text and "Pod" in text for _, text in found)
        assert capfd.readouterr().err.count("KERF703") == 1, "once, for whoever reads the log of the one that was ended"
        released.set()
        while (await ask("/healthz"))[0] != 200:
            await asyncio.sleep(0.01)
    finally:
        released.set()
        scene.controller.stop()
        await running
        await serving.close()
