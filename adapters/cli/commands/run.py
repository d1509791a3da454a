"""`kerf run`: the controller in, or beside, a real cluster."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from msgspec import Struct
from msgspec.structs import replace

import kerf
from kerf.adapters.cli.render.notes import print_gate_notes
from kerf.adapters.controller.controller import wall_clock
from kerf.adapters.kubernetes.cluster_identity import cluster_uid
from kerf.adapters.kubernetes.events import EventRecorder
from kerf.adapters.kubernetes.lease import Lease
from kerf.adapters.kubernetes.objects.pod_nominations import supported
from kerf.adapters.kubernetes.read_only_session import ReadingSession
from kerf.adapters.kubernetes.session import Session, connect
from kerf.adapters.manager.gated_status import GatedObjects
from kerf.adapters.manager.kubernetes_controller import InCluster
from kerf.adapters.manager.leadership import FileLock, Nobody, Office, lock_of
from kerf.adapters.manager.metrics.serving import Serving, Telemetry
from kerf.adapters.manager.own_record import open_own
from kerf.adapters.manager.providers.provider import Provider, kwok_provider
from kerf.adapters.manager.reporting import Log, Telling, kept_up
from kerf.adapters.manager.retention import Retaining
from kerf.adapters.manager.settings import Flags, Options, read_settings
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import require_url
from kerf.engine.errors import KerfError
from kerf.engine.model.settings import Settings
from kerf.engine.runtime.runtime import Runtime

_NONE = Flags()
NODE_CLASS_KINDS = {"kwok": "karpenter.kwok.sh/KWOKNodeClass", "aws": "karpenter.k8s.aws/EC2NodeClass"}
"""By provider."""
_SETTINGS = Group("Settings", help="Karpenter's. Each is an environment variable too: METRICS_PORT for --metrics-port.")


def run(
    *,
    mode: Annotated[
        Literal["control", "observe"],
        Parameter(
            env_var="KERF_MODE",
            help="control: kerf acts, and holds Karpenter's Lease. observe: it only reads, beside a Karpenter.",
        ),
    ] = "control",
    provider: Annotated[
        Literal["kwok", "aws"], Parameter(env_var="KERF_PROVIDER", help="Where nodes come from.")
    ] = "kwok",
    store: Annotated[
        str,
        Parameter(env_var="KERF_STORE", help="Where the record is kept: sqlite:///absolute/path or postgresql://…"),
    ],
    kubeconfig: Annotated[Path | None, Parameter(help="Default: this pod's cluster, else KUBECONFIG.")] = None,
    context: Annotated[str | None, Parameter(help="The kubeconfig's context, if not its current one.")] = None,
    nominate: Annotated[bool, Parameter(help="Write planned nodes' names into pending pods (KEP-5278).")] = True,
    settings: Annotated[Flags, Parameter(name="*", group=_SETTINGS)] = _NONE,
) -> int:
    """Run the controller on a Kubernetes cluster until it is told to stop (SIGTERM, Ctrl-C).

    It waits for the Lease, reads the record, watches the cluster and acts. Its log has Karpenter's lines, as JSON. All
    that it saw and decided is in the record: `kerf log`, `kerf explain`, `kerf verify`. In observe mode it takes no
    Lease and writes nothing to the cluster; `kerf observe report` compares what it decided with what Karpenter did.

    Example: `kerf run --provider kwok --store sqlite:///var/lib/kerf/record.kerf --kubeconfig ~/.kube/config`
    """
    require_url(store)
    options = read_settings(settings, os.environ)
    print_gate_notes(options.notes)
    return asyncio.run(_run(_Wanted(mode == "observe", provider, store, kubeconfig, context, nominate, options)))


class _Wanted(Struct, frozen=True):
    observe: bool
    provider: str
    store: str
    kubeconfig: Path | None
    context: str | None
    nominate: bool
    options: Options
    cluster: str = ""  # its uid, once the API server has said it

    @property
    def engine(self) -> Settings:
        kind = NODE_CLASS_KINDS[self.provider]
        return replace(self.options.engine, observe=self.observe, cluster=self.cluster, node_classes=kind)


async def _run(wanted: _Wanted) -> int:
    kubeconfig = wanted.kubeconfig or _from_environment()
    options = wanted.options
    kind = ReadingSession if wanted.observe else Session
    session = await connect(kubeconfig, wanted.context, qps=options.qps, burst=options.burst, kind=kind)
    identity = f"{socket.gethostname()}_{secrets.token_hex(8)}"
    office = _office(wanted, session, identity)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    telemetry = Telemetry(provider=wanted.provider, state_metrics=options.state_metrics)
    session.note = telemetry.requests.note
    serving = Serving(telemetry, metrics_port=options.metrics_port, health_port=options.health_port)
    try:
        await serving.open()
        epoch = await _or_stopped(office.acquire(), stopping)
        if epoch is None:
            return 0
        try:
            cluster = await cluster_uid(session)
            store = await asyncio.to_thread(open_own, wanted.store, observe=wanted.observe)
            wanted = replace(wanted, cluster=cluster)
            try:
                provider = await _provider(session, wanted)
                await _in_office(session, office, store, provider, epoch, identity, stopping, wanted, telemetry)
            finally:
                store.close()
        finally:
            await office.release()
    finally:
        await serving.close()
        await session.close()
    return 0


async def _in_office(
    session: Session,
    office: Office,
    store: ChainedStore,
    provider: Provider,
    epoch: int,
    identity: str,
    stopping: asyncio.Event,
    wanted: _Wanted,
    telemetry: Telemetry,
) -> None:
    """Until told to stop, or until the Lease is lost, which is an error."""
    holding = asyncio.create_task(office.hold(), name="office")
    try:
        nominations = wanted.nominate and not wanted.observe and await supported(session)
        settings = replace(wanted.engine, nominations=nominations)
        runtime = await _read(store, holding, epoch, identity, stopping, settings, telemetry)
        if runtime is not None:
            await _work(session, runtime, store, provider, holding, stopping, wanted, telemetry)
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)


async def _work(
    session: Session,
    runtime: Runtime,
    store: ChainedStore,
    provider: Provider,
    holding: asyncio.Task[None],
    stopping: asyncio.Event,
    wanted: _Wanted,
    telemetry: Telemetry,
) -> None:
    """As `_in_office`, once the record is read."""
    options = wanted.options
    telemetry.take_office(runtime)
    telling = Telling(runtime.state, Log(options.log_level, options.outputs), telemetry)
    world = InCluster(session, runtime, provider, tell=telling, nominate=wanted.nominate)
    telemetry.watch(world)
    tasks: list[asyncio.Task[Any]] = []
    if not wanted.observe:
        telling.recorder = EventRecorder(session, world.claim_uid, host=socket.gethostname())
        provider.tell_with(telling.recorder)
        telling.keeper = keeper = GatedObjects(session, runtime.state)
        keeping = partial(keeper.run, world.controller.between_turns)
        tasks.append(asyncio.create_task(kept_up(telling.recorder.run, "events"), name="events"))
        tasks.append(asyncio.create_task(kept_up(keeping, "gated objects"), name="gated objects"))
    telemetry.retaining = Retaining(
        store, runtime, world.observe, options.retention, now=wall_clock, failed=_say
    )  # fmt: skip
    tasks.append(asyncio.create_task(telemetry.retaining.run(), name="retention"))
    running = asyncio.create_task(world.run(), name="kerf")
    told = asyncio.create_task(stopping.wait(), name="stop")
    tasks += [running, told]
    try:
        done, _ = await asyncio.wait([running, holding, told], return_when=asyncio.FIRST_COMPLETED)
        world.stop()
        if told not in done and holding in done:
            holding.result()
        await running
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Ended(Exception):
    """The record need not be read any further."""


async def _read(
    store: ChainedStore,
    holding: asyncio.Task[None],
    epoch: int,
    identity: str,
    stopping: asyncio.Event,
    settings: Settings,
    telemetry: Telemetry,
) -> Runtime | None:
    """A runtime in office, None when told to stop before. A long record is read for a while: in a thread, so that the
    probes are answered and the Lease is renewed. Raises what `holding` does, and StoreError."""
    last = await asyncio.to_thread(store.last_position)
    over = Event()

    def progress(position: int) -> None:
        telemetry.read(position, last)
        if over.is_set():
            raise _Ended

    def take_office() -> Runtime:
        return Runtime(
            store,
            holder=identity,
            settings=settings,
            record=secrets.token_hex(16),
            engine=kerf.__version__,
            now=wall_clock(),
            epoch=epoch,
            progress=progress,
        )

    telemetry.read(0, last)
    reading = asyncio.create_task(asyncio.to_thread(take_office), name="read the record")
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([reading, holding, told], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return reading.result()
        over.set()
        await asyncio.gather(reading, return_exceptions=True)
        if holding.done():
            holding.result()
        return None
    finally:
        told.cancel()


def _say(error: KerfError) -> None:
    sys.stderr.write(f"{error}\n")


async def _or_stopped(work: Coroutine[Any, Any, int], stopping: asyncio.Event) -> int | None:
    """The result, or None when told to stop before."""
    task, told = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    await asyncio.wait([task, told], return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if task.done():
        return task.result()
    task.cancel()
    return None


async def _provider(session: Session, wanted: _Wanted) -> Provider:
    """boto3 is loaded only where it is used: it is a hundred megabytes."""
    if wanted.provider == "kwok":
        return kwok_provider(session, wanted.options)
    from kerf.adapters.manager.providers.aws import aws_provider

    return await aws_provider(session, wanted.options.aws, observe=wanted.observe)


def _office(wanted: _Wanted, session: Session, identity: str) -> Office:
    options = wanted.options
    if wanted.observe:
        return FileLock(lock_of(wanted.store))
    if options.leader_election:
        namespace, name = options.lease_namespace, options.lease_name

        def waits(holder: str) -> None:
            print(f"waiting for the Lease {namespace}/{name}, which {holder} holds", file=sys.stderr, flush=True)

        return Lease(session, namespace=namespace, identity=identity, name=name, waits=waits)
    return Nobody()


def _from_environment() -> Path | None:
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None
