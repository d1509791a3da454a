"""The world of `kerf demo`: a simulated cluster, and for its cloud kerf's own AWS adapter against a mock of AWS.

Everything between kerf and AWS is real: the adapter, boto3, the requests and their answers. What a real cloud would
do to a real cluster (an instance that boots joins as a node, one that ends takes its node with it) is passed on here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from kerf.adapters.aws.mock.environment import Environment, demo_environment
from kerf.adapters.aws.session import AwsError
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.cluster import VirtualCluster
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    NodeClassSeen,
    Observation,
    TaggedInstance,
)

SPOT_WARNING = 120_000
"""Milliseconds from the interruption warning of a spot instance to its end."""


class DemoCloud:
    """The mock of EC2 as a simulation's cloud: the port `Cloud`, and NodeClasses from applied documents."""

    def __init__(self, environment: Environment, cluster: VirtualCluster) -> None:
        self._environment = environment
        self._cloud = environment.cloud
        self._cluster = cluster
        self._types: dict[str, InstanceType] = {}
        self._unreported = False
        self._booted: set[str] = set()
        self.demoted = False  # nothing is reserved in a demonstration (as adapters/simulation/cloud has it)

    def put_node_class(self, node_class: NodeClassSeen, blobs: dict[str, Struct] | None = None) -> None:
        """Apply an EC2NodeClass: the adapter resolves it when it is next asked."""
        classes = self._environment.node_classes
        applied = [blob for blob in (blobs or {}).values() if isinstance(blob, EC2NodeClass)]
        names = {applied_class.name for applied_class in applied}
        classes[:] = [known for known in classes if known.name not in names] + applied
        self._unreported = True

    def reconnect(self) -> None:
        """Begin a new process: an adapter that remembers nothing."""
        self._cloud = self._environment.restart()
        self._unreported = True

    def drain_observations(self) -> list[Observation]:
        if not self._unreported:
            return []
        self._unreported = False
        return self.observe()

    def observe(self) -> list[Observation]:
        observations = self._cloud.observe()
        for blob in (blob for observation in observations for blob in observation.blobs.values()):
            if isinstance(blob, Catalogue):
                self._types = {kind.name: kind for kind in blob.types}
        return observations

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        answer = self._cloud.launch(order, intent=intent, token=token)
        self._boot(order, answer)
        return answer

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        answer = self._cloud.find(order, intent=intent, token=token)
        if answer is not None:
            self._boot(order, answer)
        return answer

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        answer = self._cloud.terminate(instance, intent=intent)
        if answer.ok:
            self._cluster.instance_ended(instance)
        return answer

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        try:
            return self._cloud.describe(instances)
        except AwsError:  # it is asked again
            return []

    def listing(self) -> list[TaggedInstance] | None:
        try:
            return self._cloud.listing()
        except AwsError:
            return None

    def _boot(self, order: LaunchInstance, answer: LaunchAnswered) -> None:
        """Let an instance boot once, whether it was launched just now or by a request whose answer was lost."""
        if answer.instance and answer.instance not in self._booted:
            self._booted.add(answer.instance)
            self._cluster.boot(self._machine(order, answer))

    def _machine(self, order: LaunchInstance, answer: LaunchAnswered) -> Machine:
        return Machine(
            instance=answer.instance,
            claim=order.claim,
            node_pool=order.node_pool,
            provider_id=answer.provider_id,
            type=self._types[answer.instance_type],
            zone=answer.zone,
            zone_id=answer.zone_id,
            capacity_type=answer.capacity_type,
            labels=order.labels,
            taints=order.taints,
        )


class DemoQueue:
    """The interruption queue. It is polled only when something was sent: virtual time does not pass by itself."""

    def __init__(self, environment: Environment) -> None:
        self._queue = environment.interruptions
        self.waiting = False

    def poll(self) -> list[Observation]:
        return self._queue.poll() if self.waiting else []

    def acknowledge(self) -> None:
        self._queue.acknowledge()
        self.waiting = False


class DemoWorld(Simulation):
    """A simulation on the mock of AWS."""

    # Stand-ins with the methods that a demonstration uses of a simulation's own cloud and queue.
    cloud: DemoCloud  # type: ignore[assignment]
    queue: DemoQueue  # type: ignore[assignment]

    def __init__(self, environment: Environment, clock: Clock) -> None:
        super().__init__(Catalogue(()), clock=clock)
        self.cloud = DemoCloud(environment, self.cluster)
        self.queue = DemoQueue(environment)
        self._operator = environment.operator

    def interrupt(self, instance: str) -> None:
        """Interrupt a spot instance: its warning comes through SQS now, its end two minutes later."""
        self._operator.interrupt_spot(instance)
        self.queue.waiting = True
        self.clock.after(SPOT_WARNING, "spot instance is taken back", lambda: self._take_back(instance))

    def _take_back(self, instance: str) -> None:
        if self.cloud.describe([instance])[0].status in ("pending", "running"):
            self._operator.reclaim(instance)
            self.cluster.instance_ended(instance)


@contextmanager
def world(start: int, *, pace: float, sleep: Callable[[float], None]) -> Iterator[DemoWorld]:
    """A world that begins at `start` (ms since the epoch). Importing the mock of AWS takes seconds."""
    clock = Clock(start, pace=pace, sleep=sleep)
    with demo_environment(lambda: clock.now) as environment:
        environment.node_classes.clear()
        yield DemoWorld(environment, clock)
