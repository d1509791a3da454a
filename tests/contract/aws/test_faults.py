"""What `AwsCloud` makes of EC2's refusals, of silence, and of answers that come late."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.adapters.aws.session import AwsError
from kerf.engine.model import labels
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import AwsWorld, Calls, resolved


@pytest.mark.parametrize("kind", ["throttled", "unavailable", "unreachable", "lost"])
def test_a_22_the_sdk_tries_again(world: AwsWorld, kind: str) -> None:
    world.environment.operator.fault("CreateFleet", kind, 2)
    answer = world.cloud().launch(order(world, f"retried-{kind}"), intent="1.0", token=f"retried-{kind}")
    assert world.alive(f"retried-{kind}") == [answer.instance]
    assert world.environment.operator.plan.hits == [f"CreateFleet {kind}"] * 2


def test_l_154_a_throttled_launch_is_an_error_that_started_nothing(world: AwsWorld) -> None:
    world.environment.operator.fault("CreateFleet", "throttled", 3)
    answer = world.cloud().launch(order(world, "throttled"), intent="1.0", token="throttled")
    assert (answer.kind, answer.code, answer.instance) == ("error", "RequestLimitExceeded", "")


def test_a_301_a_refused_launch(world: AwsWorld) -> None:
    world.environment.operator.fault("CreateFleet", "refused")
    answer = world.cloud().launch(order(world, "refused"), intent="1.0", token="refused")
    assert (answer.kind, answer.code) == ("error", "Unauthorized")
    assert "UnauthorizedOperation" in answer.message


@pytest.mark.parametrize("kind", ["unavailable", "unreachable"])
def test_silence_raises_for_nobody_knows_what_happened(world: AwsWorld, kind: str) -> None:
    world.environment.operator.fault("CreateFleet", kind, 3)
    with pytest.raises(AwsError, match="KERF502") as caught:
        world.cloud().launch(order(world, f"silent-{kind}"), intent="1.0", token=f"silent-{kind}")
    assert caught.value.unknown
    assert world.cloud().find(order(world, f"silent-{kind}"), intent="1.0", token="") is None


@pytest.mark.parametrize("operation", ["CreateLaunchTemplate", "CreateFleet"])
@pytest.mark.parametrize("kind", ["refused", "unavailable", "lost", "throttled"])
def test_no_failure_shows_user_data(
    world: AwsWorld, operation: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes to EC2 in base64, which stands for one of three texts at each place."""
    classes, secret = world.environment.node_classes, b"hunter2-and-more"
    spec = replace(classes[0].spec, user_data=f"#!/bin/sh\nTOKEN={secret.decode()}\n# {operation} {kind}")
    classes[0] = replace(classes[0], spec=spec, generation=7)
    cloud = world.cloud()
    cloud.observe()
    world.environment.operator.fault(operation, kind, 9)
    try:
        told = repr(cloud.launch(order(world, f"secret-{kind}"), intent="1.0", token=f"{operation}-{kind}"))
    except AwsError as error:
        told = "".join(traceback.format_exception(error))
    told += caplog.text
    assert world.environment.operator.plan.hits
    for text in (secret, *(base64.b64encode(b"x" * start + secret)[4:20] for start in range(3))):
        assert text.decode() not in told


def test_a_token_used_for_another_request_finds_what_it_started(world: AwsWorld) -> None:
    """IdempotentParameterMismatch: after a restart another subnet or template may be chosen for the same intent."""
    wanted = order(world, "mismatch")
    first = world.cloud().launch(wanted, intent="1.0", token="mismatch")
    again = world.cloud().launch(replace(wanted, offers=world.offers[1:]), intent="1.0", token="mismatch")
    assert (again.instance, again.adopted) == (first.instance, True)
    assert world.alive("mismatch") == [first.instance]
    other = replace(wanted, claim="mismatch-2")
    refused = world.cloud().launch(other, intent="2.0", token="mismatch")
    assert (refused.kind, refused.instance) == ("error", "")


def test_l_154_a_launch_goes_on_after_a_token_that_another_request_has_used_up(world: AwsWorld) -> None:
    """An answer was lost, and its request started nothing. Another try may name another subnet or template, which EC2
    refuses with the same token: the claim waited for its five minutes to be over."""
    cloud, wanted = world.cloud(), order(world, "used-up")
    world.environment.operator.shortage()
    assert not cloud.launch(wanted, intent="1.0", token="used-up").instance
    world.environment.operator.plan.clear()
    cloud, other = world.restarted(), replace(wanted, offers=world.offers[1:])
    assert cloud.launch(other, intent="1.0", token="used-up").code == "LaunchFailed"
    assert cloud.launch(other, intent="1.0", token="used-up").code == "LaunchFailed", "it may not be shown yet"
    world.advance(60_000)
    launched = cloud.launch(other, intent="1.0", token="used-up").instance
    assert world.alive("used-up") == [launched]


@pytest.mark.parametrize("code", ["InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateName.NotFoundException"])
def test_a_304_a_template_that_a_fleet_does_not_find_is_made_again(world: AwsWorld, code: str) -> None:
    cloud, wanted = world.restarted(), order(world, f"gone-{code}")
    calls = Calls(world.environment, "CreateLaunchTemplate")
    world.environment.operator.shortage(code=code, message="The specified launch template does not exist.")
    assert not cloud.launch(wanted, intent="1.0", token=wanted.claim).instance
    made = len(calls.of("CreateLaunchTemplate"))
    world.environment.operator.plan.clear()
    assert cloud.launch(wanted, intent="1.0", token=wanted.claim).instance
    assert len(calls.of("CreateLaunchTemplate")) == 2 * made > 0


def test_a_447_capacity_and_authorisation_errors_together_are_an_error(world: AwsWorld) -> None:
    world.exhaust(world.offers[:2], labels.ON_DEMAND)
    world.environment.operator.shortage(code="UnauthorizedOperation", message="no")
    answer = world.cloud().launch(order(world, "mixed"), intent="1.0", token="mixed")
    assert (answer.kind, answer.code) == ("error", "Unauthorized")
    assert [e.code for e in answer.errors] == ["InsufficientInstanceCapacity"] * 2 + ["UnauthorizedOperation"]
    ids = {e.zone: e.zone_id for e in answer.errors if e.zone}
    assert ids
    assert all(name.startswith("usw2-az") for name in ids.values()), "A-292: of the class's subnets"


def test_an_intent_whose_fleet_started_nothing_may_be_tried_again(world: AwsWorld) -> None:
    """L-154: the same token would only get the same errors; also a process that forgot gets on in the end."""
    world.environment.operator.shortage(code="InternalError", message="try again", count=3)
    wanted = order(world, "empty")
    assert world.cloud().launch(wanted, intent="1.0", token="empty").code == "InternalError"
    cloud = world.restarted()
    assert cloud.launch(wanted, intent="1.0", token="empty").code == "InternalError"
    answer = cloud.launch(wanted, intent="1.0", token="empty")
    assert answer.instance
    assert world.restarted().find(wanted, intent="1.0", token="empty") is not None
    assert world.alive("empty") == [answer.instance]


def test_a_started_instance_that_ec2_does_not_show_yet_is_pending(world: AwsWorld) -> None:
    """Eventual consistency: an answer that leaves it out must not read as its end."""
    cloud = world.restarted()
    instance = cloud.launch(order(world, "unseen"), intent="1.0", token="unseen").instance
    hide = world.environment.operator.ec2.meta.events
    hide.register("after-call.ec2.DescribeInstances", _show_nothing)
    try:
        assert [seen.status for seen in cloud.describe([instance])] == ["pending"]
        world.advance(60_001)
        assert [seen.status for seen in cloud.describe([instance])] == ["gone"]
    finally:
        hide.unregister("after-call.ec2.DescribeInstances", _show_nothing)


def test_a327_nor_does_a_listing_leave_it_out(world: AwsWorld) -> None:
    cloud = world.restarted()
    instance = cloud.launch(order(world, "unlisted"), intent="1.0", token="unlisted").instance
    hide = world.environment.operator.ec2.meta.events
    hide.register("after-call.ec2.DescribeInstances", _show_nothing)
    try:
        assert [listed.claim for listed in cloud.listing() or [] if listed.instance == instance] == ["unlisted"]
        world.advance(60_001)
        assert cloud.listing() == []
    finally:
        hide.unregister("after-call.ec2.DescribeInstances", _show_nothing)


def test_a327_instances_of_other_clusters_are_not_listed(world: AwsWorld) -> None:
    """Its tags make an instance kerf's own to end: each of the three is asked for."""
    cloud, ec2 = world.cloud(), world.environment.operator.ec2
    for missing in ("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name"):
        claim = "foreign-" + missing.rpartition("/")[2].rpartition(":")[2]
        instance = cloud.launch(order(world, claim), intent="1.0", token=claim).instance
        assert instance in {listed.instance for listed in cloud.listing() or []}
        ec2.delete_tags(Resources=[instance], Tags=[{"Key": missing}])
        assert instance not in {listed.instance for listed in world.restarted().listing() or []}


def _show_nothing(parsed: dict[str, Any], **_: Any) -> None:
    parsed["Reservations"] = []


def subnet_of(world: AwsWorld, claim: str) -> str:
    (found,) = world.described(claim)
    return str(found["SubnetId"])


def test_a_232_a_293_a_451_the_subnet_with_most_free_addresses_until_it_has_none(world: AwsWorld) -> None:
    ec2 = world.environment.operator.ec2
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]}]
    small = ec2.create_subnet(
        VpcId=vpc["VpcId"], CidrBlock="10.0.224.0/24", AvailabilityZone="us-west-2a", TagSpecifications=tags
    )["Subnet"]["SubnetId"]
    cloud, wanted = world.restarted(), replace(order(world, "subnet-1"), offers=world.offers[:1])
    cloud.launch(wanted, intent="1.0", token="subnet-1")
    assert subnet_of(world, "subnet-1") != small
    world.environment.operator.shortage(code="InsufficientFreeAddressesInSubnet", count=1)
    full = cloud.launch(replace(wanted, claim="subnet-2"), intent="2.0", token="subnet-2")
    assert full.kind == "insufficient-capacity"
    (error,) = full.errors
    known = ec2.describe_subnets(SubnetIds=[error.subnet])["Subnets"][0]
    assert (known["AvailabilityZone"], error.subnet != small) == ("us-west-2a", True)
    cloud.launch(replace(wanted, claim="subnet-3"), intent="3.0", token="subnet-3")
    assert subnet_of(world, "subnet-3") == small
    for claim in ("subnet-1", "subnet-3"):
        cloud.terminate(world.alive(claim)[0], intent="4.0")
    ec2.delete_subnet(SubnetId=small)


def test_a_233_what_launches_take_counts_until_the_subnets_are_asked_for_again(world: AwsWorld) -> None:
    """A class is resolved for other reasons, too: here somebody annotates it."""
    ec2 = world.environment.operator.ec2
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]}]
    second = ec2.create_subnet(
        VpcId=vpc["VpcId"], CidrBlock="10.0.96.0/19", AvailabilityZone="us-west-2a", TagSpecifications=tags
    )["Subnet"]["SubnetId"]
    cloud, wanted = world.restarted(), replace(order(world, "flight-1"), offers=world.offers[:1])
    cloud.observe()
    asked = Calls(world.environment, "DescribeSubnets")
    cloud.launch(wanted, intent="1.0", token="flight-1")
    (known,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(known, annotations={"karpenter.k8s.aws/checked": "2026"})]
    cloud.observe()
    cloud.launch(replace(wanted, claim="flight-2"), intent="2.0", token="flight-2")
    used = [subnet_of(world, claim) for claim in ("flight-1", "flight-2")]
    assert not asked.of("DescribeSubnets")
    for claim in ("flight-1", "flight-2"):
        cloud.terminate(world.alive(claim)[0], intent="3.0")
    ec2.delete_subnet(SubnetId=second)
    assert len(set(used)) == 2


def test_faults_of_the_other_services(world: AwsWorld) -> None:
    world.environment.operator.fault("ReceiveMessage", "refused")
    with pytest.raises(AwsError, match="UnauthorizedOperation"):
        world.environment.interruptions.poll()
    cloud = world.restarted()
    world.environment.operator.fault("GetInstanceProfile", "refused")
    world.environment.operator.fault("GetParameter", "unavailable", 100)
    conditions = {c.type: c for c in resolved(cloud.observe()).status.conditions}
    assert conditions["InstanceProfileReady"].status == conditions["AMIsReady"].status == "Unknown"
    assert "UnauthorizedOperation" in conditions["InstanceProfileReady"].message
    assert "InternalError" in conditions["AMIsReady"].message


@pytest.mark.parametrize("kind", ["throttled", "lost"])
def test_a_233_a_call_that_starts_nothing_takes_no_addresses(world: AwsWorld, kind: str) -> None:
    """The next try asks for the same subnet: with another one, a token of a lost answer would not fit any more."""
    cloud, calls = world.restarted(), Calls(world.environment, "CreateFleet")
    cloud.observe()
    with equal_subnets(world, "us-west-2a") as equal:
        cloud.reconsider()
        cloud.observe()
        world.environment.operator.fault("CreateFleet", kind, 3)
        wanted = order(world, f"{kind}-again")
        with suppress(AwsError):  # of the lost answer
            cloud.launch(wanted, intent="1.0", token=wanted.claim)
        assert cloud.launch(wanted, intent="1.0", token=wanted.claim).instance
    first, second = calls.of("CreateFleet")
    assert asked_in(first, "us-west-2a") in equal
    assert asked_in(first, "us-west-2a") == asked_in(second, "us-west-2a")


@contextmanager
def equal_subnets(world: AwsWorld, zone: str) -> Iterator[list[str]]:
    """Two subnets of the class in a zone, alike in size."""
    ec2 = world.environment.operator.ec2
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]}]
    (vpc,) = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.0.0.0/16"]}])["Vpcs"]
    made = [
        ec2.create_subnet(VpcId=vpc["VpcId"], CidrBlock=block, AvailabilityZone=zone, TagSpecifications=tags)
        for block in ("10.0.128.0/18", "10.0.192.0/18")
    ]
    ids = [answer["Subnet"]["SubnetId"] for answer in made]
    try:
        yield ids
    finally:
        for subnet in ids:
            ec2.delete_subnet(SubnetId=subnet)


def asked_in(fleet: dict[str, Any], zone: str) -> str:
    (subnet,) = {
        override["SubnetId"]
        for config in fleet["LaunchTemplateConfigs"]
        for override in config["Overrides"]
        if override["AvailabilityZone"] == zone
    }
    return str(subnet)
