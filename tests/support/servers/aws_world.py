"""An AWS account of moto's with the shim, for the tests of `AwsCloud` and `AwsInterruptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.mock.environment import Environment
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.record.decisions import Offer
from kerf.engine.record.observations import NodeClassSeen, Observation
from tests.contract.cloud_contract import CloudWorld

START = 1_760_000_000_000


class Clock:
    now = START

    def __call__(self) -> int:
        return self.now


CLOCK = Clock()


class AwsWorld(CloudWorld):
    """`offers` are sorted by the shim's on-demand prices, which are the table's."""

    node_class = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
    offers = (
        Offer("m6g.large", "us-west-2a", 0.077),
        Offer("c5.large", "us-west-2b", 0.085),
        Offer("m5.large", "us-west-2c", 0.096),
    )

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def cloud(self) -> AwsCloud:
        return self.environment.cloud

    def restarted(self) -> AwsCloud:
        return self.environment.restart()

    def advance(self, milliseconds: int) -> None:
        CLOCK.now += milliseconds

    def exhaust(self, offers: Sequence[Offer], capacity_type: str) -> None:
        for offer in offers:
            pool = {"instance_type": offer.instance_type, "zone": offer.zone, "capacity_type": capacity_type}
            self.environment.operator.shortage(**pool)

    def lose_answer(self) -> None:
        self.environment.operator.fault("CreateFleet", "lost", 3)  # the SDK itself tries three times

    def alive(self, claim: str) -> list[str]:
        return [found["InstanceId"] for found in self.described(claim)]

    def described(self, claim: str) -> list[dict[str, Any]]:
        wanted = [
            {"Name": "tag:karpenter.sh/nodeclaim", "Values": [claim]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        answer = self.environment.operator.ec2.describe_instances(Filters=wanted)
        return [found for reservation in answer["Reservations"] for found in reservation["Instances"]]


class Calls:
    """The parameters of every call of some operations, from the moment they are watched."""

    def __init__(self, environment: Environment, *operations: str) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []
        for operation in operations:
            # First in line: the shim narrows CreateFleet down to one override.
            environment.operator.ec2.meta.events.register_first(f"provide-client-params.ec2.{operation}", self._take)

    def _take(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.made.append((model.name, params))

    def of(self, operation: str) -> list[dict[str, Any]]:
        return [params for name, params in self.made if name == operation]


def tag_set(specification: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in specification["Tags"]}


def observed(cloud: AwsCloud) -> NodeClassSeen:
    (seen,) = [o.payload for o in cloud.observe() if isinstance(o.payload, NodeClassSeen)]
    return seen


def resolved(seen: Sequence[Observation]) -> EC2NodeClass:
    (found,) = [b for o in seen if isinstance(o.payload, NodeClassSeen) for b in o.blobs.values()]
    assert isinstance(found, EC2NodeClass)
    return found


def with_spec(world: AwsWorld, **spec: Any) -> AwsCloud:
    """A new process, for which the class has this in its spec."""
    (node_class,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(node_class, spec=replace(node_class.spec, **spec))]
    return world.restarted()


def catalogue_of(seen: Sequence[Observation]) -> Catalogue:
    (found,) = [b for o in seen for b in o.blobs.values() if isinstance(b, Catalogue)]
    return found
