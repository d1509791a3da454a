"""What `kerf doctor --provider aws` finds in an account: each right that is missing, and what stops without it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.mock.environment import CLUSTER, Environment
from kerf.adapters.aws.nodeclass.status import status_document
from kerf.adapters.aws.session import AwsWriteRefused
from kerf.adapters.cli.doctor.aws_account import check_rights
from kerf.adapters.cli.doctor.aws_rights import STOPS, TryingClients, prices, tried
from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import AwsOptions, read_settings
from tests.contract.cloud_contract import order
from tests.support.aws.boundary import Boundary
from tests.support.aws.iam.least_privilege import policy
from tests.support.servers.aws_world import AwsWorld, resolved

UNTRIED = {
    "iam:CreateInstanceProfile", "iam:TagInstanceProfile", "iam:AddRoleToInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile", "eks:DescribeCluster",
}  # fmt: skip
"""IAM makes no dry runs; EKS has a finding of its own."""


@pytest.fixture(scope="module")
def node_class(environment: Environment) -> dict[str, Any]:
    """A resolved EC2NodeClass's object, with an instance and a launch template of its own in EC2."""
    world = AwsWorld(environment)
    cloud = world.restarted()
    (known,) = environment.node_classes
    status = status_document(resolved(cloud.observe()).status, {})
    assert cloud.launch(order(world, "doctor"), intent="1.0", token="doctor").instance
    return {"metadata": {"name": known.name}, "status": status}


def options(**more: Any) -> AwsOptions:
    made = read_settings(Flags(), {"CLUSTER_NAME": CLUSTER, "INTERRUPTION_QUEUE": CLUSTER}).aws
    return replace(made, **more)


def found(world: AwsWorld, *node_classes: dict[str, Any], observe: bool = False, **more: Any) -> list[Finding]:
    clients = world.environment.operator.shim
    return list(check_rights(clients, options(**more), node_classes, observe=observe))


def test_an_account_with_nothing_wrong(world: AwsWorld, node_class: dict[str, Any], boundary: Boundary) -> None:
    """The boundary holds each try against deploy/iam, too."""
    before = world.environment.operator.ec2.describe_instances()["Reservations"]
    seen = found(world, node_class, zonal_shift=True)
    assert [finding for finding in seen if finding.level != OK] == []
    tries = {call.method for call in boundary.calls if call.parameters.get("DryRun")}
    assert {"create_launch_template", "run_instances", "create_fleet", "terminate_instances"} <= tries
    assert world.environment.operator.ec2.describe_instances()["Reservations"] == before


def test_every_right_of_the_policy_is_tried() -> None:
    allowed = {action for statement in policy("control.json")["Statement"] for action in statement["Action"]}
    assert STOPS.keys() == allowed - UNTRIED


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("DescribeSubnets", "ec2:DescribeSubnets"), ("DescribeSpotPriceHistory", "ec2:DescribeSpotPriceHistory"),
        ("GetParameter", "ssm:GetParameter"), ("GetProducts", "pricing:GetProducts"),
        ("GetInstanceProfile", "iam:GetInstanceProfile"), ("ListInstanceProfiles", "iam:ListInstanceProfiles"),
        ("CreateLaunchTemplate", "ec2:CreateLaunchTemplate"), ("RunInstances", "ec2:RunInstances"),
        ("CreateFleet", "ec2:CreateFleet"), ("TerminateInstances", "ec2:TerminateInstances"),
        ("CreateTags", "ec2:CreateTags"), ("DeleteLaunchTemplate", "ec2:DeleteLaunchTemplate"),
        ("GetManagedResource", "arc-zonal-shift:GetManagedResource"),
        ("ReceiveMessage", "sqs:ReceiveMessage"), ("DeleteMessageBatch", "sqs:DeleteMessage"),
    ],
)  # fmt: skip
def test_a_missing_right_is_named_with_what_stops(
    world: AwsWorld, node_class: dict[str, Any], operation: str, action: str
) -> None:
    world.environment.operator.fault(operation, "refused", 1)
    (missing,) = [finding for finding in found(world, node_class, zonal_shift=True) if finding.level != OK]
    level, stops = STOPS[action]
    assert (missing.level, missing.text) == (level, f"not allowed: {action}")
    assert missing.hint.startswith(f"Without it {stops}.")


def test_a_391_a_role_that_may_not_be_passed_on(
    world: AwsWorld, node_class: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """EC2 would run the instance, and not with the class's profile."""

    def without_profile(params: dict[str, Any], **_: Any) -> None:
        if "IamInstanceProfile" in params:
            world.environment.operator.fault("RunInstances", "refused", 1)

    events = world.environment.operator.ec2.meta.events
    events.register("provide-client-params.ec2.RunInstances", without_profile)
    try:
        (missing,) = [finding for finding in found(world, node_class) if finding.level != OK]
    finally:
        events.unregister("provide-client-params.ec2.RunInstances", without_profile)
    assert (missing.level, missing.text) == (BAD, "not allowed: iam:PassRole")


def test_a205_in_govcloud_nobody_is_asked_for_prices() -> None:
    """The check ended in a traceback: the Pricing API has no address for this region."""
    (told,) = prices(TryingClients("us-gov-west-1"))
    assert (told.level, told.text.partition(":")[0]) == (OK, "the Pricing API has no prices of us-gov-west-1")


def test_what_cannot_be_tried_yet_is_said(world: AwsWorld) -> None:
    notes = [finding for finding in found(world, interruption_queue="") if finding.level != OK]
    assert [finding.level for finding in notes] == [NOTE, NOTE]
    assert "before an EC2NodeClass is resolved" in notes[0].text
    assert "does not hear of interruptions" in notes[1].text


def test_a_queue_that_kerf_may_not_ask_for(world: AwsWorld, node_class: dict[str, Any]) -> None:
    world.environment.operator.fault("GetQueueUrl", "refused", 1)
    (missing,) = [finding for finding in found(world, node_class) if finding.level != OK]
    assert (missing.what, missing.level, missing.text) == ("queue", BAD, f"{CLUSTER}: not allowed: sqs:GetQueueUrl")
    assert "kerf does not hear of interruptions. docs/install.md has the policy" in missing.hint


def test_a_queue_that_is_not_there(world: AwsWorld, node_class: dict[str, Any]) -> None:
    gone = "400 AWS.SimpleQueueService.NonExistentQueue The specified queue does not exist."
    world.environment.operator.fault("GetQueueUrl", gone, 1)
    (missing,) = [finding for finding in found(world, node_class) if finding.level != OK]
    assert (missing.what, missing.level, "does not exist" in missing.text) == ("queue", BAD, True)
    assert missing.hint == "Without it kerf does not hear of interruptions. docs/eks.md says how to make it"


def test_observe_mode_is_asked_for_no_more_than_it_needs(world: AwsWorld, boundary: Boundary) -> None:
    seen = found(world, observe=True)
    assert {finding.level for finding in seen} == {OK}
    observe = {action for statement in policy("observe.json")["Statement"] for action in statement["Action"]}
    verbs = {action.partition(":")[2] for action in observe}
    assert {call.method.title().replace("_", "") for call in boundary.calls} <= verbs


def test_what_changes_something_is_refused_here(world: AwsWorld) -> None:
    clients = TryingClients("us-west-2")
    with pytest.raises(AwsWriteRefused, match="doctor changes nothing"):
        tried("ec2:TerminateInstances", clients.ec2.terminate_instances, InstanceIds=["i-1"])
