"""EC2 is asked whether it would launch, before a class is ready (A-129 to A-136)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.engine.record.observations import NodeClassSeen, Observation
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, resolved


def trying(world: AwsWorld) -> AwsCloud:
    """A new process that asks EC2 whether it would launch."""
    environment = world.environment
    settings = replace(environment.settings, dry_run=True)
    return AwsCloud(environment.operator.shim, settings, lambda: environment.node_classes, CLOCK)


def validation(seen: Sequence[Observation]) -> tuple[str, str]:
    (found,) = [c for c in resolved(seen).status.conditions if c.type == "ValidationSucceeded"]
    return found.status, found.reason


def test_a_131_a_132_a_133_ec2_is_asked_once_in_half_an_hour(world: AwsWorld) -> None:
    calls = Calls(world.environment, "CreateFleet", "RunInstances")
    cloud = trying(world)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    (fleet,), (run,) = calls.of("CreateFleet"), calls.of("RunInstances")
    assert fleet["DryRun"] is run["DryRun"] is True
    assert {o["InstanceType"] for c in fleet["LaunchTemplateConfigs"] for o in c["Overrides"]} == {"m5.large"}
    assert run["LaunchTemplate"]["LaunchTemplateName"].startswith("karpenter.k8s.aws/")
    assert not world.alive("")
    for _ in range(3):
        world.advance(61_000)
        assert not [o for o in cloud.observe() if isinstance(o.payload, NodeClassSeen)]
    assert len(calls.of("CreateFleet")) == 1
    world.advance(1_800_000)
    cloud.observe()
    assert len(calls.of("CreateFleet")) == 2


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed"),
        ("CreateFleet", "CreateFleetAuthCheckFailed"),
        ("RunInstances", "RunInstancesAuthCheckFailed"),
    ],
)
def test_a_134_what_ec2_would_refuse_makes_a_class_not_ready(world: AwsWorld, operation: str, reason: str) -> None:
    ec2 = world.environment.operator.ec2
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:  # of other tests
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    world.environment.operator.fault(operation, "refused", 1)
    cloud = trying(world)
    seen = cloud.observe()
    assert validation(seen) == ("False", reason)
    assert {c.status for c in resolved(seen).status.conditions if c.type == "Ready"} == {"False"}


def test_a_80_when_ec2_cannot_say_it_is_asked_again_soon(world: AwsWorld) -> None:
    world.environment.operator.fault("CreateFleet", "unavailable", 1)
    cloud = trying(world)
    assert validation(cloud.observe()) == ("Unknown", "AwaitingReconciliation")
    assert cloud.next_due() <= CLOCK.now + 5_000
    world.advance(5_001)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")


def test_a_136_when_ec2_cannot_say_again_a_class_stays_as_it_was(world: AwsWorld) -> None:
    cloud = trying(world)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    calls = Calls(world.environment, "CreateFleet")
    world.environment.operator.fault("CreateFleet", "unavailable", 1)
    world.advance(1_800_001)
    assert not [o for o in cloud.observe() if isinstance(o.payload, NodeClassSeen)]
    assert len(calls.of("CreateFleet")) == 1
