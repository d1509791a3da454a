"""`AwsCloud` and `AwsInterruptions` through boto3 against moto and the shim: the contract, and what is EC2's own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from botocore.awsrequest import AWSPreparedRequest
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.demo import CLUSTER, Environment, demo_environment
from kerf.adapters.aws.facts import facts_of, tables
from kerf.adapters.aws.moto_shim import MotoShim
from kerf.adapters.aws.resolved import DEPENDENTS
from kerf.adapters.aws.session import AwsError
from kerf.engine.errors import KerfError
from kerf.engine.model import labels
from kerf.engine.model.ec2nodeclass import AMITerm, CapacityReservationTerm, EC2NodeClass, PlacementGroupSelector
from kerf.engine.model.instances import Catalogue, InstanceType
from kerf.engine.model.nodeclass_terms import image_for
from kerf.engine.model.pods import Taint
from kerf.engine.model.pools import NodeClassRef
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.record.observations import InputRefused, InterruptionSeen, NodeClassSeen, Observation
from tests.contract.cloud_contract import HOUR, CloudContract, CloudWorld, order

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


@pytest.fixture(scope="module")
def environment() -> Iterator[Environment]:
    """One account for the whole module: starting moto takes two seconds."""
    with demo_environment(CLOCK) as made:
        yield made


@pytest.fixture
def world(environment: Environment) -> Iterator[AwsWorld]:
    classes = list(environment.node_classes)
    yield AwsWorld(environment)
    environment.operator.plan.clear()
    environment.node_classes[:] = classes


class TestContract(CloudContract):
    @pytest.fixture
    def world(self, environment: Environment) -> Iterator[CloudWorld]:
        yield AwsWorld(environment)
        environment.operator.plan.clear()


# ── the fleet request and its template ─────────────────────────────────────────────────────────────────────


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


def test_the_fleet_request(world: AwsWorld) -> None:
    """A-273…A-282, A-321."""
    calls = Calls(world.environment, "CreateFleet")
    world.cloud().launch(order(world, "fleet-request", labels.SPOT), intent="1.0", token="token-fleet")
    (request,) = calls.of("CreateFleet")
    assert (request["Type"], request["ClientToken"]) == ("instant", "token-fleet")
    assert request["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 1,
        "DefaultTargetCapacityType": "spot",
    }
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert "OnDemandOptions" not in request
    overrides = [o for config in request["LaunchTemplateConfigs"] for o in config["Overrides"]]
    assert {(o["InstanceType"], o["AvailabilityZone"], o["Priority"]) for o in overrides} == {
        (o.instance_type, o.zone, o.price) for o in world.offers
    }
    assert all(o["SubnetId"].startswith("subnet-") and o["ImageId"].startswith("ami-") for o in overrides)
    expected = {
        "eks:eks-cluster-name": CLUSTER,
        f"kubernetes.io/cluster/{CLUSTER}": "owned",
        "karpenter.sh/nodepool": "default",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/nodeclaim": "fleet-request",
    }
    assert {s["ResourceType"]: tag_set(s) for s in request["TagSpecifications"]} == dict.fromkeys(
        ("instance", "volume", "fleet"), expected
    )


def test_the_instance_carries_the_tags_and_boots_an_image_of_its_architecture(world: AwsWorld) -> None:
    """A-115, A-321: m6g.large is an Arm type."""
    answer = world.cloud().launch(order(world, "tagged"), intent="1.0", token="tagged")
    (found,) = world.described("tagged")
    assert found["ImageId"] == answer.image
    (image,) = world.environment.operator.ec2.describe_images(ImageIds=[answer.image])["Images"]
    assert image["Architecture"] == ("arm64" if answer.instance_type == "m6g.large" else "x86_64")
    assert {t["Key"]: t["Value"] for t in found["Tags"]}["karpenter.sh/nodeclaim"] == "tagged"


def test_the_launch_template(world: AwsWorld) -> None:
    """A-234…A-252, A-255."""
    fresh = replace(world.environment.node_classes[0].spec, tags={"team": "a"}, detailed_monitoring=True)
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], spec=fresh, generation=2)
    calls = Calls(world.environment, "CreateLaunchTemplate")
    world.cloud().launch(order(world, "template", labels.SPOT), intent="1.0", token="template")
    made = calls.of("CreateLaunchTemplate")
    assert len(made) == 2, "one for the Arm image, one for the other two types, which have equally many pods"
    data = made[0]["LaunchTemplateData"]
    assert data["Monitoring"] == {"Enabled": True}
    assert data["Placement"] == {"Tenancy": "default"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}
    assert data["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20}}
    ]
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    (interface,) = data["NetworkInterfaces"]
    assert interface["DeviceIndex"] == 0
    assert [group[:3] for group in interface["Groups"]] == ["sg-"]
    kinds = {s["ResourceType"]: tag_set(s) for s in data["TagSpecifications"]}
    assert set(kinds) == {"network-interface", "spot-instances-request"}
    assert kinds["network-interface"]["team"] == "a"
    assert "karpenter.sh/nodeclaim" not in kinds["network-interface"], "a template serves many claims"
    assert all(params["LaunchTemplateName"].startswith("karpenter.k8s.aws/") for params in made)


def test_the_node_config(world: AwsWorld) -> None:
    """A-258, A-259, A-264."""
    calls = Calls(world.environment, "CreateLaunchTemplate")
    wanted = replace(
        order(world, "booted"),
        offers=world.offers[2:],
        labels={labels.NODEPOOL: "default", labels.ZONE: "us-west-2c", "team": "b"},
        taints=(Taint("dedicated", "NoSchedule", "web"),),
    )
    world.cloud().launch(wanted, intent="1.0", token="booted")
    (made,) = calls.of("CreateLaunchTemplate")
    text = base64.b64decode(made["LaunchTemplateData"]["UserData"]).decode()
    assert text.startswith('MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n')
    config = yaml.safe_load(text.partition("application/node.eks.aws\n\n")[2].partition("--//--")[0])
    assert config["spec"]["cluster"] == {
        "name": CLUSTER,
        "apiServerEndpoint": "https://kerf-demo.invalid",
        "certificateAuthority": "a2VyZg==",
        "cidr": "10.100.0.0/16",
    }
    kubelet = config["spec"]["kubelet"]
    assert kubelet["config"]["maxPods"] == 29
    assert kubelet["config"]["clusterDNS"] == ["10.100.0.10"]
    assert kubelet["config"]["registerWithTaints"] == [
        {"key": "dedicated", "effect": "NoSchedule", "value": "web"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
    ]
    (flag,) = kubelet["flags"]
    assert flag == (
        '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,'
        'karpenter.sh/nodepool=default,team=b"'
    )


def test_a_452_a_template_deleted_behind_our_back_is_made_again(world: AwsWorld) -> None:
    world.cloud().launch(order(world, "before"), intent="1.0", token="before")
    ec2 = world.environment.operator.ec2
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    answer = world.cloud().launch(order(world, "after"), intent="2.0", token="after")
    assert answer.instance


def test_a_237_unused_templates_are_deleted_also_those_of_an_earlier_process(world: AwsWorld) -> None:
    ec2 = world.environment.operator.ec2
    world.cloud().launch(order(world, "swept"), intent="1.0", token="swept")
    assert ec2.describe_launch_templates()["LaunchTemplates"]
    cloud = world.restarted()
    cloud.observe()
    assert ec2.describe_launch_templates()["LaunchTemplates"], "a minute has not passed"
    world.advance(61_000)
    cloud.observe()
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert world.cloud().launch(order(world, "swept-2"), intent="2.0", token="swept-2").instance


# ── faults ─────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_a_447_capacity_and_authorisation_errors_together_are_an_error(world: AwsWorld) -> None:
    world.exhaust(world.offers[:2], labels.ON_DEMAND)
    world.environment.operator.shortage(code="UnauthorizedOperation", message="no")
    answer = world.cloud().launch(order(world, "mixed"), intent="1.0", token="mixed")
    assert (answer.kind, answer.code) == ("error", "Unauthorized")
    assert [e.code for e in answer.errors] == ["InsufficientInstanceCapacity"] * 2 + ["UnauthorizedOperation"]


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
        assert [each.claim for each in cloud.listing() or [] if each.instance == instance] == ["unlisted"]
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
        assert instance in {each.instance for each in cloud.listing() or []}
        ec2.delete_tags(Resources=[instance], Tags=[{"Key": missing}])
        assert instance not in {each.instance for each in world.restarted().listing() or []}


def _show_nothing(parsed: dict[str, Any], **_: Any) -> None:
    parsed["Reservations"] = []


def subnet_of(world: AwsWorld, claim: str) -> str:
    (found,) = world.described(claim)
    return str(found["SubnetId"])


def test_a_232_a_293_the_subnet_with_most_free_addresses_until_it_has_none(world: AwsWorld) -> None:
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
    cloud.launch(replace(wanted, claim="subnet-3"), intent="3.0", token="subnet-3")
    assert subnet_of(world, "subnet-3") == small
    for claim in ("subnet-1", "subnet-3"):
        cloud.terminate(world.alive(claim)[0], intent="4.0")
    ec2.delete_subnet(SubnetId=small)


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


# ── NodeClasses and prices ─────────────────────────────────────────────────────────────────────────────────


def observed(cloud: AwsCloud) -> NodeClassSeen:
    (seen,) = [o.payload for o in cloud.observe() if isinstance(o.payload, NodeClassSeen)]
    return seen


def resolved(seen: Sequence[Observation]) -> EC2NodeClass:
    (found,) = [b for o in seen if isinstance(o.payload, NodeClassSeen) for b in o.blobs.values()]
    assert isinstance(found, EC2NodeClass)
    return found


def test_the_resolved_node_class(world: AwsWorld) -> None:
    """A-54, A-95, A-98, A-105, A-110, A-117."""
    status = resolved(world.restarted().observe()).status
    assert [subnet.zone for subnet in sorted(status.subnets, key=lambda s: s.zone)] == [
        "us-west-2a",
        "us-west-2b",
        "us-west-2c",
    ]
    assert all(subnet.zone_id for subnet in status.subnets)
    assert [group.name for group in status.security_groups] == ["nodes"]
    assert len(status.amis) == 5
    assert status.instance_profile.startswith(CLUSTER + "_")
    assert {c.type: c.status for c in status.conditions} == dict.fromkeys((*DEPENDENTS, "Ready"), "True")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"ami_selector_terms": (AMITerm(alias="al2@latest"),)}, "UnsupportedAlias"),
        ({"ami_selector_terms": (AMITerm(id="ami-0"),), "ami_family": "AL2023"}, "AMINotFound"),
        ({"subnet_selector_terms": ()}, "SubnetsNotFound"),
        ({"security_group_selector_terms": ()}, "SecurityGroupsNotFound"),
        ({"kubelet": {"maxPods": "vcpus * 8"}}, "KubeletExpressionsDisabled"),
        (
            {"ami_selector_terms": (AMITerm(alias="bottlerocket@latest"),), "kubelet": {"podsPerCore": 4}},
            "UnsupportedKubeletConfiguration",
        ),
    ],
)
def test_a_node_class_that_is_not_ready_says_why_and_launches_nothing(
    world: AwsWorld, spec: dict[str, Any], reason: str
) -> None:
    """A-57…A-63, L-153."""
    known = world.environment.node_classes[0]
    world.environment.node_classes[0] = replace(known, spec=replace(known.spec, **spec))
    cloud = world.restarted()
    seen = cloud.observe()
    conditions = {c.type: c for c in resolved(seen).status.conditions}
    assert reason in {condition.reason for condition in conditions.values()}
    assert conditions["Ready"].status == "False"
    answer = cloud.launch(order(world, f"not-ready-{reason}"), intent="1.0", token=f"not-ready-{reason}")
    assert answer.kind == "nodeclass-not-ready"
    assert reason in answer.message


def test_a_333_an_instance_has_not_drifted_when_it_is_launched_or_found_again(world: AwsWorld) -> None:
    """What the answer says of it is what the class asks for (A-334…A-337)."""
    cloud = world.restarted()
    terms = observed(cloud).terms
    assert terms is not None
    assert terms.static["amiFamily"] == "AL2023"
    started = cloud.launch(order(world, "undrifted"), intent="1.0", token="undrifted")
    found = cloud.find(order(world, "undrifted"), intent="1.0", token="")
    assert found is not None
    assert started.class_hash == terms.hash
    arch = "arm64" if started.instance_type == "m6g.large" else "amd64"
    kind = InstanceType(started.instance_type, {}, requirements={labels.ARCH: (arch,)})
    assert started.security_groups == terms.security_groups != ()
    assert found.security_groups == (), "moto shows none of a launch template's: then it is not known"
    for answer in (started, found):
        assert answer.subnet in terms.subnets
        assert answer.image == image_for(terms.images, kind)


def with_spec(world: AwsWorld, **spec: Any) -> AwsCloud:
    """A new process, for which the class has this in its spec."""
    (node_class,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(node_class, spec=replace(node_class.spec, **spec))]
    return world.restarted()


def catalogue_of(seen: Sequence[Observation]) -> Catalogue:
    (found,) = [b for o in seen for b in o.blobs.values() if isinstance(b, Catalogue)]
    return found


def reserved(seen: Sequence[Observation]) -> list[tuple[str, int, bool]]:
    """The reserved offerings of all types: reservation, what is left, whether it may be used."""
    offerings = (o for kind in catalogue_of(seen).types for o in kind.offerings if o.capacity_type == labels.RESERVED)
    return [(o.reservation_id, o.reservation_capacity, o.available) for o in offerings]


def reservation(id: str, zone: str = "us-west-2a", **more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": id, "InstanceType": "m5.large", "AvailabilityZone": zone, "OwnerId": "123456789012",
        "InstanceMatchCriteria": "targeted", "AvailableInstanceCount": 2, "State": "active", **more,
    }  # fmt: skip


def test_a_124_a_209_a_247_a_capacity_reservation_is_offered_and_used(world: AwsWorld) -> None:
    """A-210: what a launch took is not offered again."""
    world.environment.operator.shim.reservations = [
        reservation("cr-1"),
        reservation("cr-2", Interruptible=True),  # not offered
        reservation("cr-3", EndDate=datetime.fromtimestamp(CLOCK.now / 1000 - 1, UTC)),  # over
    ]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(tags={"team": "*"}),))
    seen = cloud.observe()
    assert [each.id for each in resolved(seen).status.capacity_reservations] == ["cr-1", "cr-2"]
    assert reserved(seen) == [("cr-1", 2, True)]
    calls = Calls(world.environment, "CreateFleet", "CreateLaunchTemplate")
    wanted = order(world, "reserved", labels.RESERVED)
    wanted = replace(wanted, reservation="cr-1", offers=(Offer("m5.large", "us-west-2a", 0.0),))
    answer = cloud.launch(wanted, intent="1.0", token="reserved")
    assert (answer.capacity_type, bool(answer.instance)) == (labels.RESERVED, True)
    (fleet,), (template,) = calls.of("CreateFleet"), calls.of("CreateLaunchTemplate")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "on-demand"
    assert template["LaunchTemplateData"]["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert reserved(cloud.observe()) == [("cr-1", 1, True)]


def test_a_126_a_274_a_375_a_capacity_block_is_bought_as_one_and_given_up_before_its_end(world: AwsWorld) -> None:
    ends = datetime.fromtimestamp(CLOCK.now / 1000 + 3600, UTC)
    block = reservation("cr-b", EndDate=ends, ReservationType="capacity-block")
    world.environment.operator.shim.reservations = [block]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-b"),))
    assert reserved(cloud.observe()) == [("cr-b", 2, True)]
    calls = Calls(world.environment, "CreateFleet", "CreateLaunchTemplate")
    wanted = replace(order(world, "block", labels.RESERVED), reservation="cr-b")
    assert cloud.launch(wanted, intent="1.0", token="block").instance
    (fleet,), (template, *_) = calls.of("CreateFleet"), calls.of("CreateLaunchTemplate")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert "OnDemandOptions" not in fleet
    assert template["LaunchTemplateData"]["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    world.advance(1_260_000)  # 39 minutes before its end
    seen = cloud.observe()
    assert resolved(seen).status.capacity_reservations[0].state == "expiring"
    assert reserved(seen) == [("cr-b", 2, False)]


def test_a_124_an_unknown_reservation_is_none(world: AwsWorld) -> None:
    world.environment.operator.shim.reservations = []
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-0"),))
    seen = cloud.observe()
    assert resolved(seen).ready
    assert not reserved(seen)


def test_a_127_a_141_a_246_instances_start_in_the_placement_group(world: AwsWorld) -> None:
    group = {"GroupId": "pg-1", "GroupName": "close", "Strategy": "cluster", "State": "available"}
    world.environment.operator.shim.placement_groups = [group]
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(name="close"))
    seen = cloud.observe()
    (told,) = [o.payload for o in seen if isinstance(o.payload, NodeClassSeen)]
    assert told.terms is not None
    assert (told.ready, told.terms.placement_group) == (True, "pg-1")
    types = {kind.name: kind for kind in catalogue_of(seen).types}
    assert types["m5.large"].requirements["karpenter.k8s.aws/placement-group-id"] == ("pg-1",)
    assert not any(offer.available for offer in types["t3.medium"].offerings)  # T3 may not be in a cluster group
    calls = Calls(world.environment, "CreateLaunchTemplate")
    assert cloud.launch(order(world, "close"), intent="1.0", token="close").instance
    assert {data["LaunchTemplateData"]["Placement"]["GroupId"] for data in calls.of("CreateLaunchTemplate")} == {"pg-1"}
    world.environment.operator.fault("DescribePlacementGroups", "refused", 1)
    world.advance(61_000)
    told = observed(cloud)
    assert told.terms is not None
    assert (told.ready, told.terms.placement_group) == (False, "pg-1")  # not known to be gone: nothing drifts


def test_a_61_a_class_whose_placement_group_is_not_there_is_not_ready(world: AwsWorld) -> None:
    world.environment.operator.shim.placement_groups = []
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(id="pg-0"))
    conditions = {c.type: c for c in resolved(cloud.observe()).status.conditions}
    assert conditions["PlacementGroupReady"].reason == "PlacementGroupResolutionFailed"
    assert conditions["Ready"].status == "False"


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


def test_a_219_a_459_a_class_that_is_being_deleted_counts_as_none(world: AwsWorld) -> None:
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], deleting=START)
    cloud = world.restarted()
    seen = observed(cloud)
    assert (seen.ready, seen.reason) == (False, "Deleting")
    answer = cloud.launch(order(world, "deleting"), intent="1.0", token="deleting")
    assert (answer.kind, answer.code) == ("insufficient-capacity", "NodeClassNotFound")


def test_what_a_launch_could_not_renew_is_said_by_the_next_observe(world: AwsWorld) -> None:
    world.environment.operator.fault("DescribeSpotPriceHistory", "refused", 1)
    cloud = world.restarted()
    assert cloud.launch(order(world, "first"), intent="1.0", token="first").instance
    assert [o.payload.object for o in cloud.observe() if isinstance(o.payload, InputRefused)] == ["spot prices"]


def test_a_136_a_refused_call_leaves_the_status_as_it_was(world: AwsWorld) -> None:
    cloud = world.restarted()
    assert observed(cloud).ready
    world.environment.operator.fault("Describe*", "refused", 100)
    world.advance(61_000)
    assert cloud.observe() == []


def test_a_136_a_class_that_was_never_resolved_is_not_ready(world: AwsWorld) -> None:
    cloud = world.restarted()
    world.environment.operator.fault("DescribeSubnets", "refused", 1)
    assert not observed(cloud).ready
    answer = cloud.launch(order(world, "unknown"), intent="1.0", token="unknown")
    assert (answer.kind, answer.code) == ("error", "NodeClassReadinessUnknown")
    world.advance(61_000)
    assert observed(cloud).ready


def test_prices_come_from_the_pricing_api_and_the_spot_history(world: AwsWorld) -> None:
    """A-203…A-206."""
    (catalogue,) = [b for o in world.restarted().observe() for b in o.blobs.values() if isinstance(b, Catalogue)]
    (kind,) = [kind for kind in catalogue.types if kind.name == "m5.large"]
    assert {o.price for o in kind.offerings if o.capacity_type == labels.ON_DEMAND} == {0.096}
    assert len({o.price for o in kind.offerings if o.capacity_type == labels.SPOT}) == 3
    assert len(catalogue.types) > 700


def test_without_the_pricing_api_the_table_stands_in_and_says_its_date(world: AwsWorld) -> None:
    world.environment.operator.fault("GetProducts", "refused", 1)
    cloud = world.restarted()
    seen = cloud.observe()
    (refused,) = [o.payload for o in seen if isinstance(o.payload, InputRefused)]
    assert (refused.source, refused.object) == ("prices", "on-demand prices")
    (catalogue,) = [b for o in seen for b in o.blobs.values() if isinstance(b, Catalogue)]
    assert "us-east-1 on-demand price table of 2026-07-20" in catalogue.source


def test_the_committed_facts_are_what_describe_instance_types_says(world: AwsWorld) -> None:
    entries = world.environment.operator.ec2.describe_instance_types(InstanceTypes=["m5.large"])["InstanceTypes"]
    assert facts_of(entries[0]) == tables().types[entries[0]["InstanceType"]]


# ── interruptions ──────────────────────────────────────────────────────────────────────────────────────────


def messages(world: AwsWorld) -> list[Any]:
    found = [o.payload for o in world.environment.interruptions.poll()]
    world.environment.interruptions.acknowledge()
    return found


def test_a_346_a_spot_interruption(world: AwsWorld) -> None:
    event = world.environment.operator.interrupt_spot("i-1")
    assert messages(world) == [InterruptionSeen(event, "spot_interrupted", "i-1", CLOCK.now // 1000 * 1000)]
    assert messages(world) == []


def test_a_message_stays_until_it_is_acknowledged(world: AwsWorld) -> None:
    """A crash between poll and append loses nothing."""
    operator, queue = world.environment.operator, world.environment.interruptions
    operator.interrupt_spot("i-2")
    assert len(queue.poll()) == 1
    url = operator.queue_url
    attributes = operator.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "1"
    queue.acknowledge()
    attributes = operator.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
    queue.acknowledge()


def test_duplicates_are_passed_on_under_one_id(world: AwsWorld) -> None:
    detail = {"instance-id": "i-3", "instance-action": "terminate"}
    for _ in range(2):
        world.environment.operator.send_event("EC2 Spot Instance Interruption Warning", detail, id="twice")
    assert [seen.message for seen in messages(world)] == ["twice", "twice"]


def test_garbage_is_refused_and_takes_nothing_along(world: AwsWorld) -> None:
    operator = world.environment.operator
    operator.send("no json at all")
    operator.send(json.dumps({"version": 7}))
    operator.send_event("EC2 Instance Rebalance Recommendation", {"instance-id": "i-4"})
    operator.send_event("Something Else", {"instance-id": "i-5"})
    found = messages(world)
    assert [type(seen) for seen in found] == [InputRefused, InputRefused, InterruptionSeen]
    assert {seen.code for seen in found[:2]} == {"KERF350"}
    assert messages(world) == [], "unknown and bad messages are deleted too (A-344)"


def test_more_messages_than_one_batch(world: AwsWorld) -> None:
    for number in range(23):
        world.environment.operator.interrupt_spot(f"i-many-{number}")
    found = [seen.instance for _ in range(4) for seen in messages(world)]
    assert sorted(found) == sorted(f"i-many-{number}" for number in range(23))


# ── the shim ───────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_leaves_the_process(world: AwsWorld) -> None:
    """A request that moto does not know is an error, not a connection."""
    with pytest.raises(KerfError, match="KERF510"):
        MotoShim._moto(AWSPreparedRequest("GET", "https://example.invalid/", {}, b"", stream_output=False))


def test_the_cheapest_offer_with_capacity_is_drawn(world: AwsWorld) -> None:
    """lowest-price, whatever the order of the request."""
    wanted = replace(order(world, "cheapest"), offers=world.offers[::-1])
    assert world.cloud().launch(wanted, intent="1.0", token="cheapest").instance_type == "m6g.large"


def test_time_passes_only_by_the_clock(world: AwsWorld) -> None:
    instance = world.cloud().launch(order(world, "slow"), intent="1.0", token="slow").instance
    assert [seen.status for seen in world.cloud().describe([instance])] == ["pending"]
    world.advance(HOUR)
    world.environment.operator.reclaim(instance)
    assert [seen.status for seen in world.cloud().describe([instance])] == ["shutting-down"]
    world.advance(HOUR)
    assert [seen.status for seen in world.cloud().describe([instance])] == ["gone"]


def test_a_launch_without_a_known_type_is_an_error(world: AwsWorld) -> None:
    unknown: LaunchInstance = replace(order(world, "odd"), offers=(Offer("m5.tiny", "us-west-2a", 0.01),))
    assert world.cloud().launch(unknown, intent="1.0", token="odd").code == "NoLaunchableOffer"


@pytest.mark.slow
def test_the_environment_of_the_user_has_no_say() -> None:
    """A profile, an endpoint or a region in the shell's variables neither breaks the demonstration nor leads it out."""
    script = (
        "from kerf.adapters.aws.demo import demo_environment\n"
        "for region in ('us-west-2', 'eu-west-1'):\n"
        "    with demo_environment(lambda: 1_760_000_000_000, region=region, zones=2) as made:\n"
        "        print(made.cloud.observe()[0].payload.ready)\n"
        "import os; print(os.environ['AWS_PROFILE'])\n"
    )
    hostile = {"AWS_PROFILE": "nobody", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": "xx-nowhere-1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **hostile}, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.returncode) == (["True", "True", "nobody"], 0), done.stderr
