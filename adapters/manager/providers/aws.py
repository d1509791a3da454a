"""The AWS provider: adapters/aws on a session with the API server. It resolves EC2NodeClasses and keeps their objects,
reads the interruption queue, and finds out the settings that are not given. All calls to AWS run in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec import Raw, Struct

from kerf.adapters.aws.account import region
from kerf.adapters.aws.call_listener import CallListener
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.nodeclass.resolved import lacks_cidr
from kerf.adapters.aws.nodeclass.seen import GROUP, KIND
from kerf.adapters.aws.nodeclass.status import FINALIZER, HASH, status_document
from kerf.adapters.aws.pacing import Pace
from kerf.adapters.aws.session import Clients, ReadingClients
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.adapters.controller.process_clocks import wall_clock
from kerf.adapters.kubernetes.events import EventRecorder, Happening, Subject
from kerf.adapters.kubernetes.objects.nodeclasses import NodeClassObjects
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.watch.watched_kinds import EC2_NODE_CLASSES, Resource
from kerf.adapters.manager.providers.cluster_facts import cluster_facts, discover, unknown_version
from kerf.adapters.manager.providers.ec2_instances import InstanceMaintenance
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.adapters.manager.settings import AwsOptions
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclass_terms import ec2_terms, hash_annotations
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import InputRefused, InterruptionSeen, NodeClassSeen, Observation
from kerf.engine.runtime.ports import Cloud

LONGEST, SHORTEST = 60.0, 1.0  # seconds between two looks at what is due
RETRY = (1.0, 60.0)  # seconds, from a queue that cannot be read to the next try
DELETING = 5.0  # seconds between two looks at a class that is being deleted
MAX_NAMES_SHOWN = 5  # in an Event
FACTS_EVERY = 300.0  # seconds between two looks at what may change of the cluster
FACTS_SOON = 60.0  # where nobody told them, or classes cannot be ready without them
T = TypeVar("T")


class AwsProvider:
    """`objects` and `interruptions` are None in observe mode: nothing is written, and messages stay in the queue for
    Karpenter. `facts` asks how the cluster is now; without it the settings stay as they are."""

    node_classes: Resource = EC2_NODE_CLASSES

    def __init__(
        self,
        clients: Clients,
        settings: AwsSettings,
        *,
        objects: NodeClassObjects | None,
        interruptions: AwsInterruptions | None,
        clock: Callable[[], int] = wall_clock,
        facts: Callable[[], Awaitable[ClusterFacts]] | None = None,
    ) -> None:
        self._settings, self._facts = settings, facts
        self.error: KerfError | None = None
        self._recorder: EventRecorder | None = None
        self._classes: dict[str, EC2NodeClass] = {}
        self._cloud = AwsCloud(
            clients, settings, lambda: list(self._classes.values()), clock, observing=objects is None
        )
        self._objects, self._interruptions, self._clock = objects, interruptions, clock
        self._news = asyncio.Event()
        self._pool = ThreadPoolExecutor(3, thread_name_prefix="aws")  # classes, instances, messages
        self._instances = InstanceMaintenance(self._cloud, self._pool)

    @property
    def cloud(self) -> Cloud:
        return self._cloud

    def put(self, node_class: Struct) -> None:
        assert isinstance(node_class, EC2NodeClass)
        self._classes[node_class.name] = node_class
        self._news.set()

    def drop(self, name: str) -> None:
        self._classes.pop(name, None)
        self._news.set()

    def seen(self, name: str, data: Raw | None) -> None:
        if self._objects is not None:
            self._objects.seen(name, data)

    def changed(self) -> list[Observation]:
        """Nothing: EC2 has to be asked first."""
        return []

    async def first(self, host: ProviderHost) -> list[Observation]:
        self._news.clear()
        return await self._looked(host)

    def report_to(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def node_name(self, claim: NodeClaim) -> str:
        """ "": EC2 names the Nodes, and does not tell kerf."""
        return ""

    async def run(self, host: ProviderHost) -> None:
        tasks = [asyncio.create_task(self._keep(host), name="EC2NodeClasses")]
        if self._facts is not None:
            tasks.append(asyncio.create_task(self._follow(host, self._facts), name="facts of the cluster"))
        if self._objects is not None:
            tasks.append(asyncio.create_task(self._instances.name(host), name="names of instances"))
            tasks.append(asyncio.create_task(self._instances.look(host), name="health of instances"))
            tasks.append(asyncio.create_task(self._instances.measure(host), name="memory of nodes"))
        if self._interruptions is not None:
            tasks.append(asyncio.create_task(self._listen(host, self._interruptions), name="interruption queue"))
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def _elsewhere(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _follow(self, host: ProviderHost, facts: Callable[[], Awaitable[ClusterFacts]]) -> None:
        """Ask for ever how the cluster is now (A-372): after an upgrade of the control plane aliases select other
        images (A-342), and nodes whose certificate authority is another one drift (A-64). What cannot be asked stays
        as it was; a trouble is recorded once."""
        said = ""
        while True:
            pause = FACTS_EVERY
            try:
                if self._settings.learn(await facts()):
                    await self._elsewhere(self._cloud.reconsider)
                    self._news.set()
                trouble = unknown_version(self._settings.facts.kubernetes_version)
                if any(lacks_cidr(node_class, self._settings.facts) for node_class in self._classes.values()):
                    pause = FACTS_SOON
            except Exception as error:
                trouble, pause = fault_of(error, "cluster"), FACTS_SOON
            if trouble is not None and str(trouble) != said:
                host.put([Observation(InputRefused(trouble.code, "aws", "cluster", message=str(trouble)))])
            said = str(trouble or "")
            await asyncio.sleep(pause)

    # ── NodeClasses ─────────────────────────────────────────────────────────────────────────────────────────

    async def _keep(self, host: ProviderHost) -> None:
        """Write the objects as they were last resolved, then resolve what is due or has changed; for ever."""
        while True:
            for node_class in list(self._classes.values()):
                await self._bring(node_class, host)
            await self._pause()
            host.put(await self._looked(host))

    async def _pause(self) -> None:
        """Wait until a class changed or something is due."""
        seconds = min(LONGEST, max(SHORTEST, (self._cloud.next_due() - self._clock()) / 1000))
        if any(node_class.deleting for node_class in self._classes.values()):
            seconds = min(seconds, DELETING)
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    async def _looked(self, host: ProviderHost) -> list[Observation]:
        """Resolve all classes, for the NodePools that there are. A defect in the adapter becomes an observation, too:
        it must not end the resolving."""
        self._cloud.serve(await host.node_pools(GROUP))
        for node_class in list(self._classes.values()):
            await self._hold(node_class)
        try:
            found = await self._elsewhere(self._cloud.observe)
            return [observation for observation in found if not self._gone(observation.payload)]
        except Exception as error:
            self.error = fault = fault_of(error, "EC2NodeClasses")
            return [Observation(InputRefused(fault.code, "aws", "EC2NodeClasses", message=str(fault)))]

    def _gone(self, payload: Struct) -> bool:
        """Whether an observation is of a class that went while EC2 was asked: the record has that already, and would
        have the class for ever."""
        return isinstance(payload, NodeClassSeen) and payload.name not in self._classes

    async def _hold(self, node_class: EC2NodeClass) -> None:
        """Put the finalizer on a class before anything is made for it: it must not go without that (A-74)."""
        if self._objects is None or node_class.deleting:
            return
        try:
            await self._objects.mark(node_class.name, FINALIZER, {})
        except Exception as error:  # it is told when the class is written
            self.error = fault_of(error, f"{KIND}/{node_class.name}")

    async def _bring(self, node_class: EC2NodeClass, host: ProviderHost) -> None:
        """Write a class's finalizer, hash and status, or let it go (A-66, A-74). A refused write is tried again after
        the next resolving."""
        resolved = self._cloud.resolved(node_class.name)
        if self._objects is None or resolved is None:
            return
        try:
            if node_class.deleting:
                await self._end(node_class, self._objects, host)
                return
            terms = ec2_terms(resolved, self._settings.facts.ca_bundle)
            hashes = hash_annotations(HASH, terms.hash, node_class.annotations)
            await self._objects.mark(node_class.name, FINALIZER, hashes)
            status = resolved.status
            document = status_document(status, self._cloud.free_addresses())
            await self._objects.write_status(node_class.name, resolved.generation, document, status.conditions)
        except Exception as error:  # what goes wrong with one class must not keep the others from being written
            self.error = fault_of(error, f"{KIND}/{node_class.name}")

    async def _end(self, node_class: EC2NodeClass, objects: NodeClassObjects, host: ProviderHost) -> None:
        """Let a class go once no NodeClaim names it; what was made for it in AWS is deleted before (A-81)."""
        if not objects.held(node_class.name, FINALIZER):
            return
        users = await host.claims_of(GROUP, node_class.name)
        if users:
            self._tell_waiting(node_class, users)
            return
        await self._elsewhere(lambda: self._cloud.release(node_class))
        await objects.let_go(node_class.name, FINALIZER)

    def _tell_waiting(self, node_class: EC2NodeClass, users: list[str]) -> None:
        if self._recorder is None:
            return
        more = f" and {len(users) - MAX_NAMES_SHOWN} other(s)" if len(users) > MAX_NAMES_SHOWN else ""
        message = f"Waiting on NodeClaim termination for {', '.join(users[:MAX_NAMES_SHOWN])}{more}"
        about = Subject(f"{GROUP}/v1", KIND, node_class.name, uid=node_class.uid)
        key = (node_class.uid or node_class.name,)
        event = Happening(about, "Normal", "WaitingOnNodeClaimTermination", message, key, window=600_000)
        self._recorder.tell([event])

    # ── interruptions ───────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self, host: ProviderHost, queue: AwsInterruptions) -> None:
        """Read the interruption queue for ever. A message is deleted once it is in the record, not before (A-343,
        A-344). One that comes before its claim is adopted stays in the queue, which gives it again. A defect ends
        neither this nor the provider: it is recorded, and the queue is read again later."""
        delay, most = RETRY
        said = ""
        while True:
            try:
                polled = await _aside(queue.poll)
                waiting = await host.awaited(_instances(polled))
                seen = await _of_own(polled, host)
                if seen:
                    await host.record(seen)
                self._cloud.interrupted(seen)
                early = waiting - _instances(seen)
                await self._elsewhere(partial(queue.acknowledge, early))
                delay, said, self.error = RETRY[0], "", None
            except Exception as error:
                self.error = fault = fault_of(error, "interruption queue")
                if str(fault) != said:  # once, not with every try
                    said = str(fault)
                    host.put([Observation(InputRefused(fault.code, "queue", "interruptions", message=said))])
                await asyncio.sleep(delay)
                delay = min(most, delay * 2)


async def _of_own(seen: list[Observation], host: ProviderHost) -> list[Observation]:
    """What there is to record of messages: refusals, and what concerns instances of claims (A-354). EventBridge tells
    of all instances of the account, which would fill the record."""
    own = await host.own(_instances(seen))
    return [each for each in seen if not isinstance(each.payload, InterruptionSeen) or each.payload.instance in own]


def _instances(seen: Iterable[Observation]) -> set[str]:
    return {each.payload.instance for each in seen if isinstance(each.payload, InterruptionSeen)}


async def _aside(work: Callable[[], T]) -> T:
    """Run work in a thread that nobody waits for at the end, so that a long poll does not keep the process from
    ending."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(how: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(lambda: None if answer.done() else how())

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            failure = error
            tell(lambda: answer.set_exception(failure))
        else:
            tell(lambda: answer.set_result(result))

    threading.Thread(target=run, name="queue", daemon=True).start()
    return await answer


async def aws_provider(
    session: Session, options: AwsOptions, *, observe: bool, clock: Callable[[], int], listener: CallListener
) -> AwsProvider:
    """The provider with its clients, whose calls the `listener` is told of, and its settings; `clock` gives ms since
    the epoch.

    Raises what `discover` does, and NoRegion (KERF344).
    """
    where = await asyncio.to_thread(region)
    clients = (ReadingClients if observe else Clients)(where, pace=Pace(), listener=listener)
    settings = await discover(session, clients, options)

    async def facts() -> ClusterFacts:
        return await cluster_facts(session, clients, options)

    if observe:
        return AwsProvider(clients, settings, objects=None, interruptions=None, clock=clock, facts=facts)
    name = settings.interruption_queue
    queue = AwsInterruptions(clients.sqs, name, listener=listener, clock=clock) if name else None
    objects = NodeClassObjects(session, EC2_NODE_CLASSES)
    return AwsProvider(clients, settings, objects=objects, interruptions=queue, clock=clock, facts=facts)
