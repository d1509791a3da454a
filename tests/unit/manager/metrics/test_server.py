"""Probes and metrics over HTTP (L-299, L-340, L-382)."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.controller.turn_watch import TurnWatch
from kerf.adapters.manager.metrics import telemetry as telemetry_module
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.manager.metrics.server import MetricsServer, PortInUse
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.record.errors import StoreFull
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.runtime.runtime import Runtime
from tests.support.lives import in_service
from tests.support.metrics import scraped, value
from tests.support.world import NODE_CLASS, World

pytestmark = pytest.mark.real_time


class Watch:
    """A reflector, as far as it is looked at."""

    def __init__(self, path: str, *, listed: bool = True, error: Exception | None = None) -> None:
        self.resource, self.error, self.listed = SimpleNamespace(path=path), error, asyncio.Event()
        if listed:
            self.listed.set()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def world(runtime: Runtime, *watches: Watch, ready: bool = True) -> Any:
    controller = SimpleNamespace(between_turns=asyncio.Lock(), watch=TurnWatch())
    return SimpleNamespace(reflectors=watches, runtime=runtime, ready=ready, controller=controller, forbidden=[])


async def asked(telemetry: Telemetry, *paths: str, health: bool = True) -> list[tuple[int, str]]:
    """Status and text of each path; metrics and probes on one port."""

    port = free_port()
    serving = MetricsServer(telemetry, metrics_port=port, health_port=port if health else 0)
    await serving.open()
    try:
        async with aiohttp.ClientSession() as client:
            found = []
            for path in paths:
                async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                    found.append((answer.status, await answer.text()))
            return found
    finally:
        await serving.close()


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(provider="kwok", state_metrics=True)


@pytest.mark.asyncio(loop_scope="function")
async def test_one_that_reads_its_record_is_alive_and_says_how_far_it_is(telemetry: Telemetry) -> None:
    """A liveness probe must not end it, and traffic must not think it ready."""
    telemetry.read(5_000, 1_000_000)
    alive, ready, metrics = await asked(telemetry, "/healthz", "/readyz", "/metrics")
    assert alive[0] == 200
    assert ready == (503, "the record is being read: position 5000 of 1000000\n")
    assert "kerf_ready 0.0" in metrics[1]
    telemetry.record_is_read(World().runtime)
    assert await asked(telemetry, "/readyz") == [(200, "ok\n")]


@pytest.mark.asyncio(loop_scope="function")
async def test_one_that_waits_for_the_lease_is_ready(telemetry: Telemetry) -> None:
    """L-340; there are metrics of it, too."""
    alive, ready, metrics = await asked(telemetry, "/healthz", "/readyz", "/metrics")
    assert (alive[0], ready[0]) == (200, 200)
    assert "karpenter_build_info{" in metrics[1]
    assert "kerf_ready 0.0" in metrics[1]


@pytest.mark.asyncio(loop_scope="function")
async def test_ready_is_what_sees_and_writes(telemetry: Telemetry) -> None:
    runtime = World().runtime
    telemetry.record_is_read(runtime)
    telemetry.watch(world(runtime, Watch("/api/v1/pods")))
    ready, metrics = await asked(telemetry, "/readyz", "/metrics")
    assert ready == (200, "ok\n")
    assert "karpenter_cluster_state_synced 1.0" in metrics[1]
    assert "kerf_ready 1.0" in metrics[1]


@pytest.mark.asyncio(loop_scope="function")
async def test_what_is_not_listed_or_watched_is_named(telemetry: Telemetry) -> None:
    runtime = World().runtime
    watches = Watch("/api/v1/pods", listed=False), Watch("/api/v1/nodes", error=StoreFull("no answer"))
    telemetry.watch(world(runtime, *watches))
    ((status, text),) = await asked(telemetry, "/readyz")
    assert (status, text.splitlines()) == (503, ["not listed yet: /api/v1/pods", "KERF105: no answer"])


@pytest.mark.asyncio(loop_scope="function")
async def test_a_record_that_cannot_be_written_is_named_and_kerf_lives_on(telemetry: Telemetry) -> None:
    runtime = World().runtime
    runtime.error = StoreFull("the disk is full")
    telemetry.watch(world(runtime, Watch("/api/v1/pods"), ready=False))
    ready, alive = await asked(telemetry, "/readyz", "/healthz")
    assert ready == (503, "KERF105: the disk is full\n")
    assert alive[0] == 200


@pytest.mark.asyncio(loop_scope="function")
async def test_clocks_that_differ_are_told_and_leave_it_ready(telemetry: Telemetry) -> None:
    """Pods get nodes all the same (ADR 9)."""
    telemetry.clocks = ProcessClocks(lambda: 1_700_086_400_000, lambda: 5_000)
    telemetry.clocks.dated("Tue, 14 Nov 2023 22:13:20 GMT", 0.0)
    telemetry.clocks.begin()
    telemetry.watch(world(World().runtime))
    ready, metrics = await asked(telemetry, "/readyz", "/metrics")
    assert ready == (
        200,
        "ok\nthe clocks differ: nothing expires, is consolidated or repaired until they agree\n"
        "the wall clock is +86399 s from the API server's\n",
    )
    assert "kerf_clocks_differ 1.0" in metrics[1]
    assert "kerf_clock_skew_seconds 86399.0" in metrics[1]
    assert "kerf_clock_jump_seconds 0.0" in metrics[1]


@pytest.mark.asyncio(loop_scope="function")
async def test_before_the_first_look_it_is_not_ready(telemetry: Telemetry) -> None:
    telemetry.watch(world(World().runtime, ready=False))
    assert (await asked(telemetry, "/readyz"))[0][0] == 503


@pytest.mark.asyncio(loop_scope="function")
async def test_a_port_of_0_is_not_opened_and_one_that_is_taken_is_an_error(telemetry: Telemetry) -> None:
    """A port of 0 is not opened and one that is taken is an error (L-299)."""
    assert (await asked(telemetry, "/readyz", health=False))[0][0] == 404
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]

        async def run() -> None:
            serving = MetricsServer(telemetry, metrics_port=port, health_port=0)
            try:
                await serving.open()
            finally:
                await serving.close()

        with pytest.raises(PortInUse, match="KERF341"):
            await run()


@pytest.mark.asyncio(loop_scope="function")
async def test_state_metrics_can_be_left_out() -> None:
    """L-293, L-236: those of pods, nodes and NodePools, and no others."""
    runtime = World().runtime
    found = {}
    for wanted in (True, False):
        telemetry = Telemetry(provider="kwok", state_metrics=wanted)
        telemetry.record_is_read(runtime)
        telemetry.watch(world(runtime))
        ((_, found[wanted]),) = await asked(telemetry, "/metrics")
    assert "karpenter_cluster_state_node_count" in found[True]
    assert "karpenter_cluster_state_node_count" not in found[False]
    assert "karpenter_nodeclaims_created_total" in found[False]
    assert "operator_nodepool_status_condition_count" in found[False]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_scrape_during_a_long_turn_gets_what_the_last_one_got_and_its_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telemetry_module, "SCRAPE_CACHED", 0.0)
    monkeypatch.setattr(telemetry_module, "MAX_TURN_WAIT", 0.0)
    driven = World()
    telemetry = Telemetry(provider="kwok", state_metrics=True)
    telemetry.record_is_read(driven.runtime)
    watched = world(driven.runtime)
    telemetry.watch(watched)

    async def run() -> tuple[str, str, str]:
        before = b"".join(await telemetry.metrics())
        driven.prepare()
        async with watched.controller.between_turns:
            during = b"".join(await telemetry.metrics())
        return before.decode(), during.decode(), b"".join(await telemetry.metrics()).decode()

    before, during, after = await run()
    parts = [text.partition("# HELP kerf_metrics_age_seconds") for text in (before, during, after)]
    assert parts[0][0] == parts[1][0]
    assert 'karpenter_nodepools_cost_total{nodepool="default"}' in parts[2][0], (
        "the turn is over, and the NodePool shows"
    )
    assert 'karpenter_nodepools_cost_total{nodepool="default"}' not in parts[1][0]
    ages = [float(part[2].split()[-1]) for part in parts]
    assert ages[0] < ages[1]


@pytest.mark.asyncio(loop_scope="function")
async def test_l416_l418_a_restart_keeps_since_when_the_conditions_of_a_nodepool_are_as_they_are() -> None:
    """Its object says so, once it is listed. A condition that is another by now has been so since then alone."""
    driven = World()
    driven.prepare()
    driven.now += 3_600_000
    telemetry = Telemetry(provider="aws", state_metrics=True)
    telemetry.clocks = ProcessClocks(wall=lambda: driven.now)
    telemetry.record_is_read(driven.runtime)
    watched = world(driven.runtime)
    shown = (
        Condition("Ready", "True", since=driven.now - 7_200_000),
        Condition("NodeClassReady", "False", since=driven.now - 9_000_000),
    )
    watched.shown_on_pool = lambda pool: shown if pool == "default" else ()
    watched.controller.took = 0.0
    telemetry.watch(watched)
    driven.see(Observation(ObjectGone("nodeclass", NODE_CLASS.key)))
    telemetry(driven.runtime.new_entries)
    found = scraped(b"".join(await telemetry.metrics()))
    kind = "operator_nodepool_status_condition"
    assert value(found, f"{kind}_transition_seconds_sum", type="Ready", status="True") == 7_200
    assert value(found, f"{kind}_transition_seconds_sum", type="NodeClassReady", status="True") == 3_600


@pytest.mark.asyncio(loop_scope="function")
async def test_scrapers_of_one_moment_share_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had a text of its own, made and kept for it."""
    rendered: list[bytes] = []

    def counted(families: Any) -> bytes:
        rendered.append(exposition(families))
        return rendered[-1]

    monkeypatch.setattr(telemetry_module, "exposition", counted)
    telemetry = Telemetry(provider="kwok", state_metrics=True)
    runtime = World().runtime
    telemetry.record_is_read(runtime)
    telemetry.watch(world(runtime))
    texts = [parts[0] for parts in await asyncio.gather(*(telemetry.metrics() for _ in range(40)))]
    assert len({id(text) for text in texts}) == 1
    assert len([text for text in rendered if b"kerf_ready" in text]) == 1


@pytest.mark.asyncio(loop_scope="function")
async def test_m13_m14_what_goes_with_the_turn_in_which_a_process_takes_office_counts() -> None:
    """A claim that expires while no process runs. It was taken for one that had been counted before. The process after
    that one counts it no more."""
    life = in_service(expire_after=3_600_000)
    life.now += 3_600_000
    for times in (1, 0):
        life.runtime = life.start()
        telemetry = Telemetry(provider="kwok", state_metrics=False)
        telemetry.record_is_read(life.runtime)
        telemetry(life.runtime.new_entries)
        telemetry.watch(world(life.runtime))
        found = scraped(b"".join(await telemetry.metrics()))
        assert value(found, "karpenter_nodeclaims_disrupted_total", reason="expired") == times
        assert value(found, "karpenter_pods_disruption_initiated_total", reason="expired") == 5 * times
