"""A whole controller in virtual time on kerf's own AWS adapter and the mock: pods in, instances out, faults between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from kerf.adapters.aws.mock.environment import Environment, demo_environment
from kerf.adapters.cli.demo.story import manifests
from kerf.adapters.cli.demo.world import DemoWorld
from kerf.adapters.cli.simulate.runtime import runtime_factory
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.documents.apply import apply_document
from kerf.adapters.simulation.driver import Driver
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.record.decisions import Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state.state import State
from kerf.projections.status.nodeclaim import claim_conditions
from tests.support.memory import MemoryStore

START = 1_767_225_600_000
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
LOOK_EVERY = MINUTE
"""How often the adapter is asked what is new, as `kerf run` does."""


class Time:
    """The clock of the account: that of the life that is lived in it."""

    def __init__(self) -> None:
        self.of = Clock(START)

    def __call__(self) -> int:
        return self.of.now


class Account(Environment, frozen=True):
    """The mock's account with its time: several lives may be lived in it, one after another."""

    time: Time


@contextmanager
def account() -> Iterator[Account]:
    time = Time()
    with demo_environment(time) as made:
        made.node_classes.clear()
        yield Account(**{name: getattr(made, name) for name in made.__struct_fields__}, time=time)


class AwsLife:
    """A new record in an account, with the workshop's NodePool (on demand: c5.large, m5.large, r5.large, m5.xlarge) and
    EC2NodeClass. Other requirements take the place of the NodePool's."""

    def __init__(self, account: Account, requirements: Sequence[dict[str, Any]] = (), **class_spec: Any) -> None:
        account.time.of = self.clock = Clock(account.time.of.now)
        account.node_classes.clear()
        self.start = self.clock.now
        self.account = account
        self.world = DemoWorld(account, self.clock)
        self.world.cloud.reconnect()  # an adapter that remembers nothing of the life before
        self.store, self.entries = MemoryStore(), list[Entry]()
        make = runtime_factory(self.store, holder="life", record=f"life-{self.start}", report=self.entries.extend)
        self.driver = Driver(self.world, make, listener=self._turn)
        self.objects = {document["kind"]: document for document in manifests()}
        if requirements:
            self.objects["NodePool"]["spec"]["template"]["spec"]["requirements"] = list(requirements)
        self.objects["EC2NodeClass"]["spec"].update(class_spec)
        for document in self.objects.values():
            self.apply(document)
        self._look()

    def apply(self, document: dict[str, Any]) -> None:
        for _, error in apply_document(self.world, yaml.safe_load(yaml.safe_dump(document))):
            raise error

    def scale(self, replicas: int) -> None:
        deployment = self.objects["Deployment"]
        self.apply({**deployment, "spec": {**deployment["spec"], "replicas": replicas}})

    def run(self, milliseconds: int) -> None:
        self.driver.run(self.clock.now + milliseconds)

    def end(self) -> None:
        """Leave nothing in the account for the next life."""
        self.account.operator.plan.clear()
        if ids := self.instances():
            self.account.operator.ec2.terminate_instances(InstanceIds=ids)

    # ── what came of it ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> State:
        assert isinstance(self.driver.runtime, Runtime)
        return self.driver.runtime.state

    def of(self, kind: type[Any]) -> list[Any]:
        return [entry.payload for entry in self.entries if isinstance(entry.payload, kind)]

    def instances(self) -> list[str]:
        """The ids of the instances that run and cost."""
        wanted = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        answer = self.account.operator.ec2.describe_instances(Filters=wanted)
        return sorted(i["InstanceId"] for reservation in answer["Reservations"] for i in reservation["Instances"])

    def held(self) -> list[str]:
        """The instances that claims have."""
        return sorted(claim.instance for claim in self.state.facts.claims.values() if claim.instance)

    def launched_condition(self) -> Condition:
        """What the NodeClaim's object says of its launch."""
        (claim,) = self.state.facts.claims.values()
        return next(c for c in claim_conditions(claim, self.state, self.clock.now) if c.type == "Launched")

    def _look(self) -> None:
        self.world.cloud._unreported = True
        self.clock.after(LOOK_EVERY, "a look at AWS", self._look)

    def _turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        if isinstance(self.driver.runtime, Runtime):
            self.entries += self.driver.runtime.new_entries
