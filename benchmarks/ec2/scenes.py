"""What kerf does with the account, each scene in a process of its own: `python -m benchmarks.ec2.scenes NAME` prints
what it saw as JSON. The account's address stands in AWS_ENDPOINT_URL."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kerf.adapters.aws.call_listener import CallListener
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.aws.session import Clients
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.adapters.controller.controller import Controller
from kerf.adapters.controller.inbox import Inbox
from kerf.adapters.controller.instance_polling import LIST_EVERY
from kerf.adapters.controller.process_clocks import ProcessClocks, wall_clock
from kerf.adapters.manager.providers.aws import LONGEST, SHORTEST, AwsProvider
from kerf.adapters.manager.providers.ec2_instances import LOOK_EVERY, NAMED_AT_ONCE
from kerf.adapters.store.open import open_record
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    EC2NodeClassSpec,
    SecurityGroupTerm,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import HostPort, Pod, PodShape
from kerf.engine.model.labels import CAPACITY_TYPE
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.claim_events import Launched, Tainted
from kerf.engine.record.decisions import Decision, LaunchInstance
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import (
    EffectAnswered,
    LaunchAnswered,
    Observation,
)
from kerf.engine.runtime.runtime import Runtime

REGION, VERSION, CLUSTER = "us-west-2", "1.34", "benchmark"
QUEUE = "interruptions"
SELECTED = {"karpenter.sh/discovery": CLUSTER}
Scene = dict[str, Any]


def node_class(name: str = "default") -> EC2NodeClass:
    spec = EC2NodeClassSpec(
        subnet_selector_terms=(SubnetTerm(tags=SELECTED),),
        security_group_selector_terms=(SecurityGroupTerm(tags=SELECTED),),
        ami_selector_terms=(AMITerm(alias="al2023@latest"),),
        role="node",
    )
    return EC2NodeClass(name=name, uid=f"uid-{name}", generation=1, spec=spec)


def aws_settings() -> AwsSettings:
    facts = ClusterFacts(
        endpoint="https://benchmark.invalid", ca_bundle="a2VyZg==", cidr="10.100.0.0/16", dns="10.100.0.10",
        kubernetes_version=VERSION,
    )  # fmt: skip
    return AwsSettings(cluster=CLUSTER, region=REGION, facts=facts, interruption_queue=QUEUE, dry_run=True)


def aws_cloud(classes: Sequence[EC2NodeClass], clock: Callable[[], int] = wall_clock) -> AwsCloud:
    return AwsCloud(Clients(REGION), aws_settings(), lambda: classes, clock)


@contextmanager
def recorded(**settings: Any) -> Any:
    """A runtime over a new record in a file."""
    with tempfile.TemporaryDirectory(prefix="kerf-aws-") as folder:
        store = open_record(Path(folder) / "record.kerf", "create")
        yield Runtime(
            store, holder="benchmark", settings=Settings(batch_idle=0, **settings), record="record", engine="benchmark",
            now=wall_clock(),
        )  # fmt: skip


def node_pool(**changes: Any) -> NodePool:
    ref = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
    on_demand = RequirementSpec(CAPACITY_TYPE, "In", ("on-demand",))
    return NodePool("default", ref, requirements=(on_demand,), **changes)


def pods(names: Iterable[str], memory: Callable[[int], int] = lambda _: 1 << 30) -> list[Observation]:
    """Pods of which each takes a node to itself."""
    seen = []
    for number, name in enumerate(names):
        shape = PodShape(requests={"memory": memory(number)}, host_ports=(HostPort(port=8080),))
        digest, _ = content(shape)
        pod = Pod(f"uid-{name}", "default", name, digest, created=wall_clock(), unschedulable=True)
        seen.append(Observation(pod, {digest: shape}))
    return seen


class Cluster:
    """Kubernetes does what it is told."""

    def __getattr__(self, name: str) -> Any:
        return lambda order, *, intent: EffectAnswered(intent, ok=True, code="200")


class Instances:
    """A cloud in this process that starts whatever is asked for."""

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        offer, instance = order.offers[0], f"i-{intent}"
        provider = f"aws:///{offer.zone}/{instance}"
        kind = order.capacity_type
        return LaunchAnswered(
            intent, order.claim, instance, provider, offer.instance_type, offer.zone, capacity_type=kind
        )

    def find(self, order: Any, *, intent: str, token: str) -> None:
        return None

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        return EffectAnswered(intent, ok=True, code="200")

    def describe(self, instances: Sequence[str]) -> list[Any]:
        return []

    def listing(self) -> None:
        return None


class Host:
    """A controller, and what a provider may ask of it; the listener of its turns."""

    def __init__(self, runtime: Runtime, cloud: Any) -> None:
        self.inbox, self.runtime = Inbox(), runtime
        self.decided: dict[str, float] = {}  # claim → when its launch was in the record
        self.launched: dict[str, str] = {}  # instance → claim
        self.tainted = 0
        self._turned = asyncio.Event()
        self._stored = 0
        self.controller = Controller(
            runtime, self.inbox, cluster=Cluster(), cloud=cloud, listener=self.saw, clocks=ProcessClocks()
        )

    def saw(self, runtime: Runtime, entries: Sequence[Entry]) -> None:
        now = time.monotonic()
        for payload in (entry.payload for entry in entries):
            if isinstance(payload, Decision):
                launches = (intent.claim for intent in payload.intents if isinstance(intent, LaunchInstance))
                self.decided |= dict.fromkeys(launches, now)
            elif isinstance(payload, Launched):
                self.launched[payload.instance] = payload.claim
            elif isinstance(payload, Tainted):
                self.tainted += 1
        self._stored = self.inbox.taken_out
        self._turned.set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(240):
            while not done():
                self._turned.clear()
                await self._turned.wait()

    def put(self, observations: Iterable[Observation]) -> None:
        self.inbox.put(observations)

    async def record(self, observations: Iterable[Observation]) -> None:
        self.inbox.put(observations)
        last = self.inbox.put_in
        await self.until(lambda: self._stored >= last)

    async def instances(self) -> dict[str, str]:
        return dict.fromkeys(self.launched, "")

    async def own(self, instances: Iterable[str]) -> set[str]:
        return self.launched.keys() & set(instances)

    async def awaited(self, instances: Iterable[str]) -> set[str]:
        return set()  # all claims are launched here, none is found

    async def joined(self) -> list[tuple[NodeClaim, Any]]:
        return []

    async def node_pools(self, group: str) -> list[NodePool]:
        return []

    async def claims_of(self, group: str, node_class: str) -> list[str]:
        return []


# ── the scenes ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def launches(alone: int, burst: int, *, equal: bool) -> Scene:
    """So many launches one after the other, then so many at once, each until its Node would have its name."""
    cloud = aws_cloud([node_class()])
    with recorded() as runtime:
        host = Host(runtime, cloud)
        host.put([*cloud.observe(), Observation(node_pool())])
        running = asyncio.create_task(host.controller.run())
        for number in range(alone):
            host.put(pods([f"alone-{number}"]))
            await host.until(lambda wanted=number + 1: len(host.launched) >= wanted)  # type: ignore[misc]
        used = time.process_time()
        names = [f"burst-{number}" for number in range(burst)]
        host.put(pods(names) if equal else pods(names, lambda number: (1 << 30) + number * (300 << 20)))
        await host.until(lambda: len(host.launched) >= alone + burst)
        used = time.process_time() - used
        host.controller.stop()
        await running
        ids = sorted(host.launched)
        for start in range(0, len(ids), NAMED_AT_ONCE):
            cloud.name({instance: f"node-{instance}" for instance in ids[start : start + NAMED_AT_ONCE]})
    return {"decided": host.decided, "launched": len(host.launched), "burst_cpu": used}


class Deleted(CallListener):
    """Counts the messages that are deleted."""

    def __init__(self) -> None:
        self.messages = 0

    def handled(self, seconds: float) -> None:
        self.messages += 1


async def interruptions(claims: int, messages: int) -> Scene:
    """So many messages, from the first receipt until each is deleted, and recorded if it concerns a claim; all claims
    are interrupted."""
    sqs = Clients(REGION).sqs
    with recorded(static_capacity=True, keep_until_replaced=False) as runtime:
        host = Host(runtime, Instances())
        seen = await asyncio.to_thread(aws_cloud([node_class()]).observe)
        host.put([*seen, Observation(node_pool(replicas=claims))])
        running = asyncio.create_task(host.controller.run())
        await host.until(lambda: len(host.launched) >= claims)
        own = sorted(host.launched)
        print(json.dumps(own), flush=True)  # now the account sends its messages
        await asyncio.to_thread(sys.stdin.readline)
        deleted = Deleted()
        queue = AwsInterruptions(sqs, QUEUE, listener=deleted)
        provider = AwsProvider(Clients(REGION), aws_settings(), objects=None, interruptions=queue)
        began, used = time.monotonic(), time.process_time()
        listening = asyncio.create_task(provider.run(host))
        await host.until(lambda: host.tainted >= claims or provider.error is not None)
        while deleted.messages < messages and provider.error is None:
            await asyncio.sleep(0.01)
        if provider.error is not None:
            raise provider.error
        seconds, cpu = time.monotonic() - began, time.process_time() - used
        listening.cancel()
        host.controller.stop()
        await asyncio.wait([running, listening])
    return {"seconds": seconds, "cpu": cpu, "tainted": host.tainted}


def memory_peak() -> float:
    """The most that this program had, in MiB. `ru_maxrss` would count what its parent had at the fork, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def start(classes: int) -> Scene:
    """From the start of the process to the catalogues of so many classes in the record."""
    cloud = aws_cloud([node_class(f"class-{number}") for number in range(classes)])
    with recorded() as runtime:
        seen = cloud.observe()
        runtime.turn(seen, wall_clock())
        types = [len(kinds) for kinds in (known.types for known in cloud._known.values())]
        peak = memory_peak()
        return {
            "seconds": time.monotonic() - float(os.environ["KERF_BEGAN"]),
            "cpu": time.process_time(),
            "peak_mib": peak,
            "types": types,
        }


async def quiet_hour(classes: int) -> Scene:
    """An hour in which nothing happens, with what `AwsProvider` and `InstancePolling` do by themselves."""
    now = [wall_clock()]
    cloud = aws_cloud([node_class(f"class-{number}") for number in range(classes)], lambda: now[0])
    cloud.observe()
    begin = now[0] = now[0] + 1  # the calls of the start are counted before this
    print("begun", flush=True)
    sys.stdin.readline()
    end, look, listed = begin + 3_600_000, begin, begin
    due = begin
    while (at := min(due, look, listed)) < end:
        now[0] = at
        if at >= due:
            cloud.observe()
            due = at + int(1000 * min(LONGEST, max(SHORTEST, (cloud.next_due() - at) / 1000)))
        if at >= look:
            cloud.unhealthy()
            look = at + int(LOOK_EVERY * 1000)
        if at >= listed:
            cloud.listing()
            listed = at + int(LIST_EVERY * 1000)
    return {}


SCENES: dict[str, Callable[..., Any]] = {
    "launches": lambda alone, burst, equal: launches(int(alone), int(burst), equal=equal == "equal"),
    "interruptions": lambda claims, messages: interruptions(int(claims), int(messages)),
    "start": lambda classes: start(int(classes)),
    "quiet-hour": lambda classes: quiet_hour(int(classes)),
}


def main() -> None:
    name, *arguments = sys.argv[1:]
    print(json.dumps(asyncio.run(SCENES[name](*arguments))), flush=True)


if __name__ == "__main__":
    main()
