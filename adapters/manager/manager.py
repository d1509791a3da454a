"""The controller's process, from the first request to the API server to the last entry of the record."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import kerf
from kerf.adapters.controller.process_clocks import ProcessClocks
from kerf.adapters.kubernetes.cluster_identity import cluster_uid
from kerf.adapters.kubernetes.events import EventRecorder
from kerf.adapters.kubernetes.objects.pod_nominations import supported
from kerf.adapters.kubernetes.read_only_session import ReadingSession
from kerf.adapters.kubernetes.reviewed_access import ReviewedAccess
from kerf.adapters.kubernetes.session import Session, connect
from kerf.adapters.manager.checkpoints import CheckpointLoop
from kerf.adapters.manager.clock_watch import watch_clocks
from kerf.adapters.manager.gated_status import GatedStatus
from kerf.adapters.manager.kubernetes_controller import KubernetesController
from kerf.adapters.manager.leadership import leadership
from kerf.adapters.manager.metrics.server import METRICS_URL, MetricsServer
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.adapters.manager.providers.kwok import kwok_provider
from kerf.adapters.manager.providers.provider import Provider
from kerf.adapters.manager.reporting import LogOutput, TurnReports, repeat_lasting, restarted
from kerf.adapters.manager.retention import RetentionLoop
from kerf.adapters.manager.settings import Options
from kerf.adapters.manager.stderr import print_error
from kerf.adapters.manager.writable_record import open_writable
from kerf.adapters.store.chained import ChainedStore
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.model.settings import Settings
from kerf.engine.runtime.runtime import Runtime

NODE_CLASS_KINDS = {"kwok": "karpenter.kwok.sh/KWOKNodeClass", "aws": "karpenter.k8s.aws/EC2NodeClass"}
"""group/Kind of the NodeClass, by provider."""


class ManagerConfig(Struct, frozen=True):
    """What `kerf run` was given. `store` is the record's URL; `nominate` switches nominations on."""

    observe: bool
    provider: str
    store: str
    kubeconfig: Path | None
    context: str | None
    nominate: bool
    options: Options


async def run_manager(config: ManagerConfig) -> None:
    """Run the controller until the process is told to stop (SIGTERM, SIGINT). Raises KerfError when it cannot go on."""
    options = config.options
    kind = ReadingSession if config.observe else Session
    session = await connect(config.kubeconfig, config.context, qps=options.qps, burst=options.burst, kind=kind)
    manager = Manager(config, session)
    asyncio.get_running_loop().set_exception_handler(_print_unhandled)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, manager.stop)
    try:
        await manager.run()
    finally:
        await session.close()


class Manager:
    """Waits for leadership, reads the record, then watches the cluster and acts. `run` until `stop`."""

    def __init__(self, config: ManagerConfig, session: Session) -> None:
        self._config, self._options, self._session = config, config.options, session
        self._identity = f"{socket.gethostname()}_{secrets.token_hex(8)}"
        self._holding: asyncio.Task[None] | None = None  # of the leadership: it ends only with an error
        self._stopping = asyncio.Event()
        self._telemetry = Telemetry(
            provider=config.provider,
            state_metrics=config.options.state_metrics,
            per_object=config.options.condition_metrics_per_object,
            longest_turn=config.options.longest_turn,
        )
        self._leadership = leadership(
            config.store,
            session,
            config.options,
            self._identity,
            observe=config.observe,
            busy=self._telemetry.busy,
        )
        session.note = self._telemetry.requests.note
        self._clocks = self._telemetry.clocks = ProcessClocks()
        session.dated = self._clocks.dated
        self._server = MetricsServer(
            self._telemetry,
            metrics_port=config.options.metrics_port,
            health_port=config.options.health_port,
            access=ReviewedAccess(session, METRICS_URL) if config.options.metrics_authorization else None,
        )

    def stop(self) -> None:
        """`run` ends soon: what was begun is recorded first."""
        self._stopping.set()

    async def run(self) -> None:
        """Ends when it is told to stop. Raises what ends the controller before: a lost Lease, a refused epoch."""
        try:
            await self._server.open()
            epoch = await self._unless_stopped(self._leadership.acquire())
            if epoch is None:
                return
            try:
                await self._lead(epoch)
            finally:
                await self._leadership.release()
        finally:
            await self._server.close()

    async def _lead(self, epoch: int) -> None:
        cluster = await cluster_uid(self._session)
        store = await asyncio.to_thread(open_writable, self._config.store, observe=self._config.observe)
        try:
            provider = await self._provider()
            self._holding = asyncio.create_task(self._leadership.hold(), name="leadership")
            try:
                runtime = await self._read_record(store, epoch, await self._engine_settings(cluster))
                if runtime is not None:
                    await self._control(runtime, store, provider)
            finally:
                await _cancelled([self._holding])
        finally:
            store.close()

    async def _engine_settings(self, cluster: str) -> Settings:
        nominations = self._config.nominate and not self._config.observe and await supported(self._session)
        return replace(
            self._options.engine,
            observe=self._config.observe,
            cluster=cluster,
            node_classes=NODE_CLASS_KINDS[self._config.provider],
            nominations=nominations,
        )

    async def _provider(self) -> Provider:
        """Imports boto3 only where it is used: it takes a hundred megabytes."""
        if self._config.provider == "kwok":
            return kwok_provider(self._session, self._options, clock=self._clocks.now)
        from kerf.adapters.manager.providers.aws import aws_provider

        return await aws_provider(
            self._session,
            self._options.aws,
            observe=self._config.observe,
            clock=self._clocks.now,
            listener=self._telemetry.aws,
        )

    # ── the record ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_record(self, store: ChainedStore, epoch: int, settings: Settings) -> Runtime | None:
        """The runtime that goes on with the record; None when told to stop before. A long record takes a while to
        read: a thread does it, so that probes are answered and the Lease is renewed. Raises StoreError, and LeaseLost
        when the Lease is lost meanwhile."""
        last = await asyncio.to_thread(store.last_position)
        abandoned = threading.Event()

        def progress(position: int) -> None:
            self._telemetry.read(position, last)
            if abandoned.is_set():
                raise _Abandoned

        self._telemetry.read(0, last)
        work = asyncio.to_thread(self._runtime, store, epoch, settings, progress)
        reading = asyncio.create_task(work, name="read the record")
        await self._wait_for(reading)
        if reading.done():
            return reading.result()
        abandoned.set()
        await asyncio.gather(reading, return_exceptions=True)
        self._raise_if_lost()
        return None

    def _runtime(self, store: ChainedStore, epoch: int, settings: Settings, progress: Callable[[int], None]) -> Runtime:
        """The record goes on from its own time if the clocks differ."""
        differ = self._clocks.begin()
        runtime = Runtime(
            store,
            holder=self._identity,
            settings=settings,
            record=secrets.token_hex(16),
            engine=kerf.__version__,
            now=self._clocks.now(),
            clocks=differ,
            epoch=epoch,
            progress=progress,
        )
        self._clocks.go_on_from(runtime.state.facts.at)
        return runtime

    # ── at work ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _control(self, runtime: Runtime, store: ChainedStore, provider: Provider) -> None:
        """Until told to stop, or until the Lease is lost, which is an error."""
        self._telemetry.record_is_read(runtime)
        log = LogOutput(self._options.log_level, self._options.outputs)
        reports = TurnReports(runtime.state, log, self._telemetry)
        reports.recall(store)
        controller = KubernetesController(
            self._session,
            runtime,
            provider,
            report=reports,
            clocks=self._clocks,
            nominate=self._config.nominate,
            report_quiet=reports.consolidatable,
        )
        self._telemetry.watch(controller)
        tasks = self._start_writers(controller, provider, reports)
        tasks += self._start_care(controller, store, reports.events)
        tasks.append(self._start_clocks(controller))
        running = asyncio.create_task(controller.run(), name="kerf")
        try:
            await self._wait_for(running)
            controller.stop()
            if not self._stopping.is_set():
                self._raise_if_lost()
            await running
        finally:
            await _cancelled([*tasks, running])
            log.close()

    def _start_writers(
        self, controller: KubernetesController, provider: Provider, reports: TurnReports
    ) -> list[asyncio.Task[None]]:
        """Events and the status of gated objects; nothing in observe mode."""
        if self._config.observe:
            return []
        events = EventRecorder(self._session, controller.claim_uid, host=socket.gethostname())
        provider.report_to(events)
        gated = GatedStatus(self._session, controller.runtime.state)
        reports.events, reports.gated = events, gated
        between_turns = controller.controller.between_turns
        write_status = partial(gated.run, between_turns)
        repeat = partial(repeat_lasting, reports, events, between_turns, self._clocks.now)
        return [
            asyncio.create_task(restarted(events.run, "events"), name="events"),
            asyncio.create_task(restarted(repeat, "events that last"), name="events that last"),
            asyncio.create_task(restarted(write_status, "gated objects"), name="gated objects"),
        ]

    def _start_care(
        self, controller: KubernetesController, store: ChainedStore, events: EventRecorder | None
    ) -> list[asyncio.Task[None]]:
        """What the record needs: its cuts, and checkpoints that somebody may keep."""
        lease = self._options.lease_namespace, self._options.lease_name
        checkpoints = CheckpointLoop(store, lease, events, failed=_print_error)
        retention = RetentionLoop(
            store,
            controller.runtime,
            controller.observe,
            self._options.retention,
            now=self._clocks.now,
            failed=_print_error,
        )
        self._telemetry.told = [retention, checkpoints]
        return [
            asyncio.create_task(retention.run(), name="retention"),
            asyncio.create_task(checkpoints.run(), name="checkpoints"),
        ]

    def _start_clocks(self, controller: KubernetesController) -> asyncio.Task[None]:
        watch = partial(watch_clocks, self._session, self._clocks, controller.wake)
        return asyncio.create_task(restarted(watch, "clocks"), name="clocks")

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _wait_for(self, work: asyncio.Task[Any]) -> None:
        """Returns when the work is done, the leadership is lost, or the process is told to stop."""
        assert self._holding is not None
        stopping = asyncio.create_task(self._stopping.wait(), name="stop")
        try:
            await asyncio.wait([work, self._holding, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    def _raise_if_lost(self) -> None:
        if self._holding is not None and self._holding.done():
            self._holding.result()

    async def _unless_stopped(self, work: Coroutine[Any, Any, int]) -> int | None:
        """The result of the work, or None when told to stop before it is there."""
        task, stopping = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if task.done():
            return task.result()
        task.cancel()
        return None


class _Abandoned(Exception):
    """The record need not be read any further."""


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they are over."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _print_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print what a task or callback left unhandled as every other defect, and not as a traceback."""
    error = context.get("exception")
    if isinstance(error, Exception):
        _print_error(fault_of(error, context["message"]))
    else:
        print_error(context["message"])


def _print_error(error: KerfError) -> None:
    print_error(str(error))
