"""While a decider computes for long the loop goes on: the Lease is renewed, probes are answered."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from kerf.adapters.kubernetes import lease as lease_module
from kerf.adapters.kubernetes.lease import Lease
from kerf.adapters.manager.metrics.server import MetricsServer
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.engine.record.observations import LaunchAnswered
from kerf.engine.scheduling import provision as provisioning
from tests.support.controller import Scene
from tests.support.servers.fake_kubernetes import serving
from tests.support.servers.lease_api import LeaseApi

pytestmark = pytest.mark.real_time

GIVE_UP = 60.0  # seconds, for a loop that stands still
RENEWALS, ANSWERS = 3, 3


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.asyncio(loop_scope="function")
async def test_the_loop_goes_on_while_a_decider_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decider computes, without ever waiting for anything, until all that has happened; or for ever."""
    monkeypatch.setattr(lease_module, "RETRY", 0.01)
    happened = {"renewals": 0, "answers": 0, "arrived": 0}
    decide = provisioning.provision

    def slow(*given: Any) -> Any:
        until = time.monotonic() + GIVE_UP
        before = dict(happened)
        while time.monotonic() < until:
            if happened["renewals"] >= before["renewals"] + RENEWALS and happened["answers"] >= ANSWERS:
                break
        happened["arrived"] = int(happened["answers"] >= ANSWERS)
        return decide(*given)

    monkeypatch.setattr(provisioning, "provision", slow)

    class Counting(LeaseApi):
        def write(self, **spec: Any) -> None:
            super().write(**spec)
            happened["renewals"] += 1

    async def ask(port: int) -> None:
        async with aiohttp.ClientSession() as client:
            while True:
                async with client.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    happened["answers"] += answer.status == 200
                await asyncio.sleep(0.01)

    scene, port = Scene(), _free_port()
    probes = MetricsServer(Telemetry(provider="kwok", state_metrics=False), metrics_port=0, health_port=port)
    await probes.open()
    async with serving(Counting()) as session:
        lease = Lease(session, namespace="kube-system", identity="me")
        await lease.acquire()
        tasks = [asyncio.create_task(coroutine) for coroutine in (lease.hold(), ask(port), scene.controller.run())]
        scene.pending("a")
        async with asyncio.timeout(2 * GIVE_UP):
            while not scene.seen.of(LaunchAnswered):
                await asyncio.sleep(0.01)
        scene.controller.stop()
        await tasks.pop()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await probes.close()
    assert happened["arrived"], f"the loop stood still: {happened}"
