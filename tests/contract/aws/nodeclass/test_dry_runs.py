"""EC2 is asked whether it would launch, before a class is ready (A-129 to A-136)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.engine.model.karpenter.ec2nodeclasses import NetworkInterface
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.record.observations import NodeClassSeen, Observation
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, resolved


def trying(world: AwsWorld) -> AwsCloud:
    """A new process that asks EC2 whether it would launch."""
    environment = world.environment
    settings = replace(environment.settings, dry_run=True)
    return AwsCloud(environment.operator.shim, settings, lambda: environment.node_classes, CLOCK)


def without_templates(world: AwsWorld) -> None:
    """Those of other tests are gone."""
    ec2 = world.environment.operator.ec2
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])


def validation(seen: Sequence[Observation]) -> tuple[str, str]:
    (found,) = [c for c in resolved(seen).status.conditions if c.type == "ValidationSucceeded"]
    return found.status, found.reason


def test_a_131_a_132_a_133_ec2_is_asked_once_in_half_an_hour(world: AwsWorld) -> None:
    calls = Calls(world.environment, "CreateFleet", "RunInstances")
    cloud = trying(world)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    (fleet,), (run,) = calls.of("CreateFleet"), calls.of("RunInstances")
    assert fleet["DryRun"] is run["DryRun"] is True
    overrides = [o for config in fleet["LaunchTemplateConfigs"] for o in config["Overrides"]]
    assert {override["InstanceType"] for override in overrides} == {"m5.large"}
    assert {override["AvailabilityZone"] for override in overrides} == {f"us-west-2{letter}" for letter in "abc"}
    assert run["LaunchTemplate"]["LaunchTemplateName"].startswith("karpenter.k8s.aws/")
    assert not world.alive("")
    for _ in range(3):
        world.advance(61_000)
        assert not [o for o in cloud.observe() if isinstance(o.payload, NodeClassSeen)]
    assert len(calls.of("CreateFleet")) == 1
    world.advance(1_800_000)
    cloud.observe()
    assert len(calls.of("CreateFleet")) == 2


def test_a63_user_data_that_cannot_be_put_together_is_the_class_s_own_condition(world: AwsWorld) -> None:
    (known,) = world.environment.node_classes
    wrong = "MIME-Version: 1.0\nContent-Type: text/plain\n\necho hello\n"
    world.environment.node_classes[:] = [replace(known, spec=replace(known.spec, user_data=wrong))]
    calls = Calls(world.environment, "CreateFleet")
    seen = trying(world).observe()
    assert validation(seen) == ("False", "UserDataInvalid")
    (condition,) = [c for c in resolved(seen).status.conditions if c.type == "ValidationSucceeded"]
    assert "not multipart" in condition.message
    assert not calls.of("CreateFleet")


def test_a_130_an_annotation_of_somebody_asks_again(world: AwsWorld) -> None:
    """After its rights were mended, a class need not wait for half an hour. kerf's own annotations ask nothing."""
    world.environment.operator.fault("CreateFleet", "refused", 1)
    calls = Calls(world.environment, "CreateFleet")
    cloud = trying(world)
    assert validation(cloud.observe()) == ("False", "CreateFleetAuthCheckFailed")
    (known,) = world.environment.node_classes
    hashed = {"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "kerf/1"}
    world.environment.node_classes[:] = [replace(known, annotations=hashed)]
    cloud.observe()
    assert len(calls.of("CreateFleet")) == 1
    world.environment.node_classes[:] = [replace(known, annotations=hashed | {"karpenter.k8s.aws/checked": "2026"})]
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    assert len(calls.of("CreateFleet")) == 2
    cloud.observe()
    assert len(calls.of("CreateFleet")) == 2


def test_a_135_of_the_types_of_a_nodepool_one_without_accelerators_is_tried(world: AwsWorld) -> None:
    calls = Calls(world.environment, "CreateFleet")
    cloud = trying(world)
    (known,) = world.environment.node_classes
    family = RequirementSpec("karpenter.k8s.aws/instance-family", "In", ("g5", "r5"))
    cloud.serve(
        [NodePool("mine", NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", known.name), requirements=(family,))]
    )
    cloud.observe()
    (request,) = calls.of("CreateFleet")
    tried = {
        override["InstanceType"] for config in request["LaunchTemplateConfigs"] for override in config["Overrides"]
    }
    assert {name.partition(".")[0] for name in tried} == {"r5"}


def test_a_136_when_ec2_cannot_say_after_an_annotation_a_class_stays_as_it_was(world: AwsWorld) -> None:
    cloud = trying(world)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    world.environment.operator.fault("CreateFleet", "unavailable", 1)
    (known,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(known, annotations={"karpenter.k8s.aws/checked": "2026"})]
    seen = cloud.observe()
    assert world.environment.operator.plan.hits == ["CreateFleet unavailable"]
    assert not [o for o in seen if isinstance(o.payload, NodeClassSeen) and not o.payload.ready]


def test_a_135_a_type_is_tried_that_a_nodepool_of_the_class_can_have(world: AwsWorld) -> None:
    """A policy of the account forbids all but some types, so that the usual one would be refused."""
    world.environment.operator.fault("CreateFleet", "refused", 1)
    calls = Calls(world.environment, "CreateFleet")
    cloud = trying(world)
    assert validation(cloud.observe()) == ("False", "CreateFleetAuthCheckFailed")
    (known,) = world.environment.node_classes
    family = RequirementSpec("karpenter.k8s.aws/instance-family", "In", ("r5",))
    pools = [
        NodePool("mine", NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", known.name), requirements=(family,)),
        NodePool("other", NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "another")),
    ]
    cloud.serve(pools)
    world.advance(61_000)
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    tried = [
        {override["InstanceType"].partition(".")[0] for override in config["Overrides"]}
        for request in calls.of("CreateFleet")
        for config in request["LaunchTemplateConfigs"]
    ]
    assert tried == [{"m5"}, {"r5"}]
    cloud.serve(pools)
    world.advance(61_000)
    cloud.observe()
    assert len(calls.of("CreateFleet")) == 2


def tenancies(calls: Calls) -> list[str]:
    """Of the launch templates that were made."""
    return [made["LaunchTemplateData"]["Placement"]["Tenancy"] for made in calls.of("CreateLaunchTemplate")]


def pool_of_tenancies(*values: str) -> NodePool:
    tenancy = RequirementSpec("karpenter.k8s.aws/instance-tenancy", "In", values)
    family = RequirementSpec("karpenter.k8s.aws/instance-family", "In", ("m5",))
    ref = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
    return NodePool("-".join(values), ref, requirements=(tenancy, family))


@pytest.mark.parametrize(
    ("pools", "tried"),
    [
        ([], "default"),
        ([("default",)], "default"),
        ([("dedicated",)], "dedicated"),
        ([("default", "dedicated")], "dedicated"),
        ([("default",), ("dedicated",)], "dedicated"),
    ],
)
def test_a_131_dedicated_hardware_is_tried_where_a_nodepool_lists_it(
    world: AwsWorld, pools: list[tuple[str, ...]], tried: str
) -> None:
    without_templates(world)
    calls = Calls(world.environment, "CreateLaunchTemplate", "CreateFleet")
    cloud = trying(world)
    cloud.serve([pool_of_tenancies(*values) for values in pools])
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    assert tenancies(calls) == [tried]
    assert len(calls.of("CreateFleet")) == 1


def test_a_131_an_account_that_forbids_dedicated_hardware_keeps_its_shared_nodes(world: AwsWorld) -> None:
    world.environment.operator.fault("CreateFleet", "refused", 1)
    without_templates(world)
    calls = Calls(world.environment, "CreateLaunchTemplate")
    cloud = trying(world)
    cloud.serve([pool_of_tenancies("default", "dedicated")])
    assert validation(cloud.observe()) == ("True", "ValidationSucceeded")
    assert tenancies(calls) == ["dedicated", "default"]


def test_a_131_a_class_that_only_dedicated_nodes_use_is_refused_with_them(world: AwsWorld) -> None:
    world.environment.operator.fault("CreateFleet", "refused", 1)
    without_templates(world)
    calls = Calls(world.environment, "CreateLaunchTemplate")
    cloud = trying(world)
    cloud.serve([pool_of_tenancies("dedicated")])
    assert validation(cloud.observe()) == ("False", "CreateFleetAuthCheckFailed")
    assert tenancies(calls) == ["dedicated"]


def test_a_132_all_subnets_of_the_class_are_tried(world: AwsWorld) -> None:
    """Also the second of a zone: a policy may forbid it."""
    ec2 = world.environment.operator.ec2
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]}]
    second = ec2.create_subnet(
        VpcId=vpc["VpcId"], CidrBlock="10.0.225.0/24", AvailabilityZone="us-west-2a", TagSpecifications=tags
    )["Subnet"]["SubnetId"]
    calls = Calls(world.environment, "CreateFleet")
    try:
        seen = trying(world).observe()
    finally:
        ec2.delete_subnet(SubnetId=second)
    (fleet,) = calls.of("CreateFleet")
    overrides = [override for config in fleet["LaunchTemplateConfigs"] for override in config["Overrides"]]
    tried = sorted((override["SubnetId"], override["AvailabilityZone"]) for override in overrides)
    assert tried == sorted((subnet.id, subnet.zone) for subnet in resolved(seen).status.subnets)
    assert second in dict(tried)
    assert len(tried) == 4


def test_a_133_an_instance_is_tried_with_the_interfaces_of_the_class(world: AwsWorld) -> None:
    calls = Calls(world.environment, "RunInstances")
    (known,) = world.environment.node_classes
    own = (NetworkInterface(0, 0, "interface"), NetworkInterface(1, 1, "efa-only"))
    world.environment.node_classes[:] = [replace(known, spec=replace(known.spec, network_interfaces=own))]
    trying(world).observe()
    (run,) = calls.of("RunInstances")
    cards = [(one["NetworkCardIndex"], one["DeviceIndex"]) for one in run["NetworkInterfaces"]]
    assert cards == [(0, 0), (1, 1)]
    assert len({one["SubnetId"] for one in run["NetworkInterfaces"]}) == 1


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed"),
        ("CreateFleet", "CreateFleetAuthCheckFailed"),
        ("RunInstances", "RunInstancesAuthCheckFailed"),
    ],
)
def test_a_134_what_ec2_would_refuse_makes_a_class_not_ready(world: AwsWorld, operation: str, reason: str) -> None:
    without_templates(world)
    world.environment.operator.fault(operation, "refused", 3)  # RunInstances: in each of the three subnets
    cloud = trying(world)
    seen = cloud.observe()
    assert validation(seen) == ("False", reason)
    assert {c.status for c in resolved(seen).status.conditions if c.type == "Ready"} == {"False"}


def test_a_134_the_condition_tells_what_forbids_the_call(world: AwsWorld) -> None:
    said = "You are not authorized to perform this operation with an explicit deny in a service control policy."
    world.environment.operator.fault("CreateFleet", f"403 UnauthorizedOperation {said}", 1)
    (found,) = [c for c in resolved(trying(world).observe()).status.conditions if c.type == "ValidationSucceeded"]
    assert found.reason == "CreateFleetAuthCheckFailed"
    assert found.message == f"not allowed by a service control policy: {said}"


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


def test_a_133_a_subnet_that_ec2_refuses_leaves_the_others_to_be_tried(world: AwsWorld) -> None:
    calls = Calls(world.environment, "RunInstances")
    world.environment.operator.fault("RunInstances", "refused", 1)
    assert validation(trying(world).observe()) == ("True", "ValidationSucceeded")
    tried = [request["NetworkInterfaces"][0]["SubnetId"] for request in calls.of("RunInstances")]
    assert len(set(tried)) == len(tried) == 2


def test_a_133_subnets_are_tried_in_the_order_of_the_status(world: AwsWorld) -> None:
    """Those with more free addresses first (A-96); an account may leave kerf some subnets only."""
    cloud, free = trying(world), dict[str, int]()

    def emptied(parsed: dict[str, Any], **_: Any) -> None:
        for number, entry in enumerate(sorted(parsed["Subnets"], key=lambda entry: str(entry["SubnetId"]))):
            free[entry["SubnetId"]] = entry["AvailableIpAddressCount"] = 10 + number

    calls = Calls(world.environment, "RunInstances")
    world.environment.operator.fault("RunInstances", "refused", 3)
    events = world.environment.operator.ec2.meta.events
    events.register("after-call.ec2.DescribeSubnets", emptied)
    try:
        assert validation(cloud.observe()) == ("False", "RunInstancesAuthCheckFailed")
    finally:
        events.unregister("after-call.ec2.DescribeSubnets", emptied)
    tried = [request["NetworkInterfaces"][0]["SubnetId"] for request in calls.of("RunInstances")]
    assert tried == sorted(free, key=lambda subnet: -free[subnet])


def test_a_129_what_a_class_rests_on_comes_before_its_tags_and_before_ec2_is_asked(world: AwsWorld) -> None:
    calls = Calls(world.environment, "CreateFleet")
    (default,) = world.environment.node_classes
    spec = replace(default.spec, subnet_selector_terms=(), tags={"karpenter.sh/nodepool": "mine"})
    world.environment.node_classes[:] = [replace(default, spec=spec)]
    assert validation(trying(world).observe()) == ("False", "DependenciesNotReady")
    assert not calls.of("CreateFleet")
