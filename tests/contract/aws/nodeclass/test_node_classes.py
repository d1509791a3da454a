"""What `AwsCloud` says of EC2NodeClasses, their catalogues and prices."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import facts_of, tables
from kerf.adapters.aws.catalogue.market import LiveMarket
from kerf.adapters.aws.catalogue.node_memory import JoinedNode
from kerf.adapters.aws.cloud import COLLECT_EVERY, AwsCloud
from kerf.adapters.aws.launch.launch_template import LaunchTemplates
from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.adapters.aws.nodeclass.instance_profiles import InstanceProfiles
from kerf.adapters.aws.nodeclass.resolved import DEPENDENTS, condition, image_of
from kerf.adapters.aws.nodeclass.resolver import NodeClassResolver
from kerf.adapters.aws.session import AwsError
from kerf.engine.model import labels
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    BlockDevice,
    BlockDeviceMapping,
    CapacityReservationTerm,
    EC2NodeClass,
    EC2NodeClassStatus,
)
from kerf.engine.model.karpenter.nodeclass_terms import image_for
from kerf.engine.record.observations import CatalogueSeen, InputRefused, NodeClassSeen
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import CLOCK, START, AwsWorld, Calls, catalogue_of, observed, resolved, with_spec


def test_the_resolved_node_class(world: AwsWorld) -> None:
    """The status has subnets, groups, images and profile once they are resolved (A-54, A-95, A-98, A-105, A-110,
    A-117)."""
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
        ({"kubelet": {"kubeReserved": {"memory": "11 * max_pods + 255"}}}, "KubeletExpressionsDisabled"),
        ({"tags": {"team": "a", "karpenter.sh/nodepool": "mine"}}, "TagValidationFailed"),
        ({"kubelet": {"maxPods": 1e19}}, "InvalidKubeletConfiguration"),
        (
            {"block_device_mappings": (BlockDeviceMapping(ebs=BlockDevice(volume_size="Ti")),)},
            "InvalidBlockDeviceMappings",
        ),
        (
            {"ami_selector_terms": (AMITerm(alias="bottlerocket@latest"),), "kubelet": {"podsPerCore": 4}},
            "UnsupportedKubeletConfiguration",
        ),
    ],
)
def test_a_node_class_that_is_not_ready_says_why_and_launches_nothing(
    world: AwsWorld, spec: dict[str, Any], reason: str
) -> None:
    """A NodeClass that is not ready says why and launches nothing (A-57…A-63, L-153)."""
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


@pytest.mark.parametrize(
    "kubelet",
    [
        {"evictionHard": {"memory.available": 100}},
        {"kubeReserved": {"cpu": "-3"}},
        {"podsPerCore": "x"},
        {"evictionSoft": 3},
        {"nonsense": True},
    ],
)
def test_a_50_a_136_a_malformed_class_harms_itself_alone(world: AwsWorld, kubelet: dict[str, Any]) -> None:
    """The classes before and after it in the alphabet are resolved, and its own condition says what is wrong."""
    (default,) = world.environment.node_classes
    bad = replace(default, name="bad", spec=replace(default.spec, kubelet=kubelet))
    world.environment.node_classes[:] = [replace(default, name="aaa"), bad, default]
    seen = world.restarted().observe()
    classes = {o.payload.name: o.payload for o in seen if isinstance(o.payload, NodeClassSeen)}
    assert {name: node_class.ready for name, node_class in classes.items()} == {
        "aaa": True,
        "bad": False,
        "default": True,
    }
    sold = [o.payload.node_class.rpartition("/")[2] for o in seen if isinstance(o.payload, CatalogueSeen)]
    assert sold == ["aaa", "default"]
    (status,) = [b.status for o in seen for b in o.blobs.values() if isinstance(b, EC2NodeClass) and b.name == "bad"]
    verdict = condition(status, "ValidationSucceeded")
    assert verdict is not None
    assert (verdict.status, verdict.reason) == ("False", "InvalidKubeletConfiguration")
    assert verdict.message.startswith("spec.kubelet.")


def test_a_50_a_class_that_becomes_malformed_keeps_its_catalogue_and_launches_nothing(world: AwsWorld) -> None:
    cloud = world.restarted()
    assert any(isinstance(o.payload, CatalogueSeen) for o in cloud.observe())
    (default,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(default, spec=replace(default.spec, kubelet={"podsPerCore": "x"}))]
    (seen,) = [o.payload for o in cloud.observe()]
    assert isinstance(seen, NodeClassSeen)
    assert not seen.ready
    answer = cloud.launch(order(world, "malformed"), intent="1.0", token="malformed")
    assert answer.kind == "nodeclass-not-ready"


def test_a_136_a_failure_in_the_turn_of_one_class_is_its_own_condition(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (default,) = world.environment.node_classes
    world.environment.node_classes[:] = [replace(default, name="bad"), default]
    cloud = world.restarted()
    resolve = NodeClassResolver.resolve

    def failing(self: NodeClassResolver, node_class: EC2NodeClass, *rest: Any) -> Any:
        if node_class.name == "bad":
            raise ZeroDivisionError("a defect")
        return resolve(self, node_class, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(NodeClassResolver, "resolve", failing)
        seen = cloud.observe()
        assert {o.payload.name: o.payload.ready for o in seen if isinstance(o.payload, NodeClassSeen)} == {
            "bad": False,
            "default": True,
        }
        assert [(o.payload.code, o.payload.object) for o in seen if isinstance(o.payload, InputRefused)] == [
            ("KERF605", "EC2NodeClass/bad")
        ]
        bad = cloud.resolved("bad")
        assert bad is not None
        verdict = condition(bad.status, "ValidationSucceeded")
        assert verdict is not None
        assert (verdict.status, "ZeroDivisionError: a defect" in verdict.message) == ("Unknown", True)
        world.advance(61_000)
        assert [o for o in cloud.observe() if isinstance(o.payload, InputRefused)] == [], "told once"
    world.advance(61_000)
    seen = cloud.observe()
    assert [o.payload.ready for o in seen if isinstance(o.payload, NodeClassSeen) and o.payload.name == "bad"] == [True]


def test_a_136_a_failure_leaves_a_class_that_was_ready_as_it_was(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = world.restarted()
    assert observed(cloud).ready
    world.advance(61_000)
    monkeypatch.setattr(NodeClassResolver, "resolve", lambda *_: 1 / 0)
    assert [o.payload.code for o in cloud.observe() if isinstance(o.payload, InputRefused)] == ["KERF605"]
    assert cloud.launch(order(world, "still-ready"), intent="1.0", token="still-ready").instance


@pytest.mark.parametrize(
    ("part", "step"), [(LaunchTemplates, "sweep"), (InstanceProfiles, "collect"), (LiveMarket, "_on_demand")]
)
def test_a_failure_in_what_classes_share_keeps_none_from_being_resolved(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch, part: type, step: str
) -> None:
    cloud = world.restarted()
    world.advance(COLLECT_EVERY)
    monkeypatch.setattr(part, step, lambda *_: 1 / 0)
    seen = [o.payload for o in cloud.observe()]
    assert [payload.ready for payload in seen if isinstance(payload, NodeClassSeen)] == [True]
    assert [payload.code for payload in seen if isinstance(payload, InputRefused)] == ["KERF605"]


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


def test_a_219_a_459_a_class_that_is_being_deleted_counts_as_none(world: AwsWorld) -> None:
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], deleting=START)
    cloud = world.restarted()
    seen = observed(cloud)
    assert (seen.ready, seen.reason) == (False, "Deleting")
    answer = cloud.launch(order(world, "deleting"), intent="1.0", token="deleting")
    assert (answer.kind, answer.code) == ("insufficient-capacity", "NodeClassNotFound")


def test_a74_a81_a_class_that_is_being_deleted_gets_no_instance_profile_again(world: AwsWorld) -> None:
    cloud = world.restarted()
    assert observed(cloud).ready
    profile = resolved(world.restarted().observe()).status.instance_profile
    calls = Calls(world.environment, "CreateInstanceProfile")
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], deleting=START)
    cloud.release(world.environment.node_classes[0])
    with pytest.raises(ClientError, match="NoSuchEntity"):
        world.environment.operator.shim.iam.get_instance_profile(InstanceProfileName=profile)
    for _ in range(3):
        cloud.observe()
        world.advance(16 * 60_000)
    assert not calls.of("CreateInstanceProfile")
    assert cloud.next_due() > CLOCK.now - 16 * 60_000


def test_a82_a_class_that_was_made_anew_has_a_status_of_its_own(world: AwsWorld) -> None:
    """Between two looks it was deleted, and made again with the same name and spec."""
    cloud = world.restarted()
    before = resolved(cloud.observe()).status.instance_profile
    calls = Calls(world.environment, "DescribeSubnets")
    cloud.observe()
    assert not calls.of("DescribeSubnets")
    known = world.environment.node_classes[0]
    world.environment.node_classes[0] = replace(known, uid="made-anew", status=EC2NodeClassStatus())
    found = resolved(cloud.observe())
    assert found.uid == "made-anew"
    assert found.status.instance_profile != before
    assert calls.of("DescribeSubnets")


def test_l419_a_class_that_somebody_deletes_is_seen_so_at_once(world: AwsWorld) -> None:
    """Not only when a part of it is due: its end may come before."""
    cloud = world.restarted()
    assert observed(cloud).ready
    world.environment.node_classes[0] = replace(world.environment.node_classes[0], deleting=START)
    news = cloud.observe()
    (seen,) = [o.payload for o in news if isinstance(o.payload, NodeClassSeen)]
    assert (seen.ready, seen.reason) == (False, "Deleting")
    assert resolved(news).deleting == START


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
    (told,) = [observation.payload for observation in cloud.observe()]
    assert isinstance(told, InputRefused)
    assert "describe_subnets: UnauthorizedOperation" in told.message


def test_a_136_a_class_that_was_never_resolved_is_not_ready(world: AwsWorld) -> None:
    cloud = world.restarted()
    world.environment.operator.fault("DescribeSubnets", "refused", 1)
    assert not observed(cloud).ready
    answer = cloud.launch(order(world, "unknown"), intent="1.0", token="unknown")
    assert (answer.kind, answer.code) == ("error", "NodeClassReadinessUnknown")
    world.advance(61_000)
    assert observed(cloud).ready


def test_prices_come_from_the_pricing_api_and_the_spot_history(world: AwsWorld) -> None:
    """Prices come from the pricing API and the spot price history (A-203…A-206)."""
    (catalogue,) = [b for o in world.restarted().observe() for b in o.blobs.values() if isinstance(b, Catalogue)]
    (kind,) = [kind for kind in catalogue.types if kind.name == "m5.large"]
    on_demand = {o.price for o in kind.offerings if o.capacity_type == labels.ON_DEMAND and o.tenancy == "default"}
    assert on_demand == {0.096}
    assert len({o.price for o in kind.offerings if o.capacity_type == labels.SPOT}) == 3
    assert len(catalogue.types) > 700


@pytest.mark.parametrize("isolated", [False, True])
def test_a5_in_an_isolated_vpc_nobody_asks_for_prices_or_deletes_profiles(world: AwsWorld, isolated: bool) -> None:
    """The Pricing API and IAM cannot be reached there. Spot prices come from EC2 (A-206)."""
    environment = world.environment
    (default,) = environment.node_classes
    named = replace(default, spec=replace(default.spec, role="", instance_profile="own"))
    settings = replace(environment.settings, isolated_vpc=isolated)
    cloud = AwsCloud(environment.operator.shim, settings, lambda: [named], CLOCK)
    calls = Calls(environment, "DescribeSpotPriceHistory")
    for operation in ("GetProducts", "*InstanceProfile*"):
        environment.operator.fault(operation, "refused", 9)
    assert observed(cloud).ready
    world.advance(COLLECT_EVERY)
    cloud.observe()
    if isolated:
        cloud.release(named)
    else:
        with pytest.raises(AwsError):
            cloud.release(named)
    asked = {hit.partition(" ")[0] for hit in environment.operator.plan.hits}
    assert asked == (set() if isolated else {"GetProducts", "ListInstanceProfiles"})
    assert calls.of("DescribeSpotPriceHistory")


def test_a75_to_a80_how_often_a_quiet_class_is_asked_about(world: AwsWorld) -> None:
    parts = ("DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "DescribeCapacityReservations")
    terms = (CapacityReservationTerm(tags={"team": "*"}),)
    cloud, calls = with_spec(world, capacity_reservation_selector_terms=terms), Calls(world.environment, *parts)
    cloud.observe()
    started = CLOCK.now
    while (due := cloud.next_due()) < started + 3_600_000:
        assert due > CLOCK.now, "what is due is done"
        world.advance(due - CLOCK.now)
        cloud.observe()
    assert [len(calls.of(part)) for part in parts] == [60, 12, 12, 60]


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


def test_a137_a_type_that_cannot_be_read_is_left_out_and_told_and_keeps_no_class_from_its_catalogue(
    world: AwsWorld,
) -> None:
    def spoil(parsed: dict[str, Any], **_: Any) -> None:
        lost = {"c5.large": "VCpuInfo", "m6g.large": "MemoryInfo"}
        parsed["InstanceTypes"] = [
            {key: value for key, value in entry.items() if key != lost.get(entry["InstanceType"])}
            for entry in parsed["InstanceTypes"]
        ]

    def spoil_zones(parsed: dict[str, Any], **_: Any) -> None:
        parsed["InstanceTypeOfferings"].append({"LocationType": "availability-zone"})

    events = world.environment.operator.ec2.meta.events
    events.register("after-call.ec2.DescribeInstanceTypes", spoil)
    events.register("after-call.ec2.DescribeInstanceTypeOfferings", spoil_zones)
    try:
        seen = world.restarted().observe()
    finally:
        events.unregister("after-call.ec2.DescribeInstanceTypes", spoil)
        events.unregister("after-call.ec2.DescribeInstanceTypeOfferings", spoil_zones)
    types = {kind.name for kind in catalogue_of(seen).types}
    assert "m5.large" in types
    assert not types & {"c5.large", "m6g.large"}
    (refused,) = [o.payload for o in seen if isinstance(o.payload, InputRefused)]
    assert (refused.source, refused.object) == ("prices", "types")
    assert "c5.large has no VCpuInfo, m6g.large has no MemoryInfo" in refused.message


def test_a170_a_class_that_is_resolved_later_learns_from_nodes_that_had_registered(world: AwsWorld) -> None:
    """They were forgotten, as when EC2 does not answer at the start."""
    before = world.restarted()
    estimated = {kind.name: kind for kind in catalogue_of(before.observe()).types}
    image = image_of(before.resolved("default").status.amis, estimated["m5.large"])  # type: ignore[union-attr]
    less = estimated["m5.large"].capacity["memory"] - (100 << 20)
    world.environment.operator.fault("DescribeSubnets", "refused", 1)
    cloud = world.restarted()
    assert not [o for o in cloud.observe() if isinstance(o.payload, CatalogueSeen)]
    cloud.learn([JoinedNode("m5.large", image, less)])
    world.advance(61_000)
    *_, last = [b for o in cloud.observe() for b in o.blobs.values() if isinstance(b, Catalogue)]
    now = {kind.name: kind.capacity["memory"] for kind in last.types}
    assert (now["m5.large"], now["c5.large"]) == (less, estimated["c5.large"].capacity["memory"])


def test_a52_with_the_gate_expressions_are_in_the_catalogue_and_in_the_user_data(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    kubelet = {"maxPods": "vcpus * 10", "kubeReserved": {"memory": "11 * max_pods + 255"}}
    world.environment.node_classes[:] = [replace(default, spec=replace(default.spec, kubelet=kubelet))]
    cloud = gated(world)
    (made,) = (b for o in cloud.observe() for b in o.blobs.values() if isinstance(b, Catalogue))
    pods = {kind.name: kind.capacity["pods"] for kind in made.types}
    assert (pods["m5.large"], pods["m5.xlarge"]) == (20, 40)
    calls = Calls(world.environment, "CreateLaunchTemplate")
    assert cloud.launch(order(world, "by-expression"), intent="1.0", token="by-expression").instance
    texts = [b64decode(call["LaunchTemplateData"]["UserData"]).decode() for call in calls.of("CreateLaunchTemplate")]
    assert texts
    assert all("maxPods: 20\n" in text and "memory: 480Mi\n" in text for text in texts), "475 MiB, in steps of 16"


def test_a129_a476_an_expression_without_a_value_on_some_type_makes_the_class_not_ready(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    kubelet = {"maxPods": "100 / (vcpus - 4)"}
    world.environment.node_classes[:] = [replace(default, spec=replace(default.spec, kubelet=kubelet))]
    conditions = {c.type: c for c in resolved(gated(world).observe()).status.conditions}
    assert conditions["ValidationSucceeded"].reason == "KubeletExpressionEvaluationFailed"
    assert conditions["ValidationSucceeded"].message.startswith("on a1.large: 100 / (vcpus - 4) is -50")


def test_a129_a139_a_type_that_the_class_cannot_launch_counts_too(world: AwsWorld) -> None:
    """The class was ready without any catalogue, and its pods waited for nothing."""
    (default,) = world.environment.node_classes
    kubelet = {"maxPods": "instance_type.startsWith('a1.') ? 1 / (vcpus - vcpus) : 50"}
    world.environment.node_classes[:] = [replace(default, spec=replace(default.spec, kubelet=kubelet))]
    seen = gated(world).observe()
    conditions = {c.type: c for c in resolved(seen).status.conditions}
    assert conditions["ValidationSucceeded"].reason == "KubeletExpressionEvaluationFailed"
    assert conditions["ValidationSucceeded"].message == "on a1.2xlarge: division by zero"


def test_a129_expressions_are_evaluated_before_tags_are_judged(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    spec = replace(default.spec, kubelet={"maxPods": "100 / (vcpus - 4)"}, tags={"karpenter.sh/nodepool": "mine"})
    world.environment.node_classes[:] = [replace(default, spec=spec)]
    conditions = {c.type: c for c in resolved(gated(world).observe()).status.conditions}
    assert conditions["ValidationSucceeded"].reason == "KubeletExpressionEvaluationFailed"


def gated(world: AwsWorld) -> AwsCloud:
    """A new process with the gate NodeClassCEL."""
    environment = world.environment
    settings = replace(environment.settings, node_class_cel=True)
    return AwsCloud(environment.operator.shim, settings, lambda: environment.node_classes, CLOCK)


def test_a129_a_tag_that_ec2_refuses_makes_the_class_not_ready(world: AwsWorld) -> None:
    seen = resolved(with_spec(world, tags={"aws:cost": "x"}).observe())
    conditions = {c.type: c for c in seen.status.conditions}
    verdict = conditions["ValidationSucceeded"]
    assert (verdict.status, verdict.reason) == ("False", "TagValidationFailed")
    assert "aws:cost: AWS keeps tags" in verdict.message
