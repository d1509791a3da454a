"""What of a NodeClass reaches the launch template (A-239…A-256)."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.instance_types import EFA, NodeSettings, instance_type
from kerf.adapters.aws.launch.launch_template import ENCLAVES, UNUSED, LaunchTemplates, template_data
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    BlockDevice,
    BlockDeviceMapping,
    ConnectionTracking,
    CPUOptions,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    MetadataOptions,
    NetworkInterface,
    ResolvedSecurityGroup,
)
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.record.decisions import LaunchInstance
from tests.support.aws.service_model import request_problems

FACTS = ClusterFacts(endpoint="https://api", cidr="10.0.0.0/16", dns="10.0.0.10", kubernetes_version="1.34")
SETTINGS = AwsSettings(cluster="shop", region="r", facts=FACTS)
ORDER = LaunchInstance(
    claim="c",
    node_pool="p",
    node_class=NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "n"),
    capacity_type="on-demand",
    offers=(),
    requests={},
)
STATUS = EC2NodeClassStatus(
    security_groups=(ResolvedSecurityGroup("sg-1"), ResolvedSecurityGroup("sg-2")), instance_profile="profile"
)


def data(
    order: LaunchInstance = ORDER, settings: AwsSettings = SETTINGS, kind: str = "m5.large", **spec: Any
) -> dict[str, Any]:
    node_class = EC2NodeClass(
        name="n",
        spec=EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias="al2023@latest"),), **spec),
        status=STATUS,
    )
    made = instance_type(tables().types[kind], NodeSettings(), (), region="r")
    found = template_data(order, node_class, settings, made, "ami-1")
    request = {"LaunchTemplateName": "karpenter.k8s.aws/1", "LaunchTemplateData": found}
    assert request_problems("create_launch_template", request) == []
    return found


def test_the_plain_template() -> None:
    """A class that says nothing more gets volumes, metadata options and interfaces by default (A-239…A-243, A-255)."""
    found = data()
    assert found["ImageId"] == "ami-1"
    assert found["IamInstanceProfile"] == {"Name": "profile"}
    assert found["NetworkInterfaces"] == [{"DeviceIndex": 0, "Groups": ["sg-1", "sg-2"]}]
    assert found["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "HttpPutResponseHopLimit": 1,
        "HttpTokens": "required",
        "InstanceMetadataTags": "disabled",
    }
    assert [s["ResourceType"] for s in found["TagSpecifications"]] == ["network-interface"]
    assert "CpuOptions" not in found


def test_a_239_a_251_monitoring_and_what_spot_requests_are_tagged_with() -> None:
    assert data()["Monitoring"] == {"Enabled": False}
    assert data(detailed_monitoring=True)["Monitoring"] == {"Enabled": True}
    kinds = [tagged["ResourceType"] for tagged in data(replace(ORDER, capacity_type="spot"))["TagSpecifications"]]
    assert kinds == ["network-interface", "spot-instances-request"], "EC2 refuses the second in a launch on demand"


def test_a_242_what_is_zero_or_unset_is_left_out() -> None:
    volume = BlockDevice(volume_size="4Gi", iops=0, throughput=0)
    found = data(block_device_mappings=(BlockDeviceMapping("/dev/xvda", ebs=volume),))
    assert found["BlockDeviceMappings"] == [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 4}}]


def test_a_242_a_mapping_without_a_volume_is_left_out() -> None:
    empty, full = BlockDeviceMapping("/dev/xvdb"), BlockDeviceMapping("/dev/xvda", ebs=BlockDevice(volume_size="20G"))
    found = data(block_device_mappings=(empty, full))
    assert found["BlockDeviceMappings"] == [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 19}}]
    assert "BlockDeviceMappings" not in data(block_device_mappings=(empty,))


def test_a_243_a_244_options() -> None:
    found = data(
        metadata_options=MetadataOptions(http_tokens="optional", http_put_response_hop_limit=2),
        cpu_options=CPUOptions("enabled"),
    )
    assert found["MetadataOptions"]["HttpTokens"] == "optional"
    assert found["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
    assert found["CpuOptions"] == {"NestedVirtualization": "enabled"}


@pytest.mark.parametrize(
    ("region", "told"), [("us-iso-east-1", False), ("us-isof-south-1", False), ("us-west-2", True)]
)
def test_a_243_isolated_regions_have_no_ipv6_for_the_metadata_service(region: str, told: bool) -> None:
    assert ("HttpProtocolIpv6" in data(settings=replace(SETTINGS, region=region))["MetadataOptions"]) == told


@pytest.mark.parametrize(("asked", "options"), [({ENCLAVES: 1}, {"Enabled": True}), ({"cpu": 1}, None)])
def test_a_245_an_enclave_only_for_a_claim_that_asks(asked: dict[str, int], options: dict[str, bool] | None) -> None:
    assert data(replace(ORDER, requests=asked)).get("EnclaveOptions") == options


@pytest.mark.parametrize("capacity_type", ["on-demand", "spot"])
def test_a_247_a_441_other_launches_use_up_no_open_reservation(capacity_type: str) -> None:
    found = data(replace(ORDER, capacity_type=capacity_type))
    assert found["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}


def test_a_247_a_reserved_launch_targets_its_reservation() -> None:
    found = data(replace(ORDER, capacity_type="reserved", reservation="cr-1"))
    assert found["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }


def test_a_253_own_interfaces() -> None:
    own = (NetworkInterface(0, 0, "interface"), NetworkInterface(1, 1, "efa-only"))
    found = data(network_interfaces=own, associate_public_ip_address=False, ip_prefix_count=2)["NetworkInterfaces"]
    groups = ["sg-1", "sg-2"]
    assert found == [
        {
            "NetworkCardIndex": 0,
            "DeviceIndex": 0,
            "InterfaceType": "interface",
            "Groups": groups,
            "AssociatePublicIpAddress": False,
            "Ipv4PrefixCount": 2,
        },
        {"NetworkCardIndex": 1, "DeviceIndex": 1, "InterfaceType": "efa-only", "Groups": groups},
    ]


@pytest.mark.parametrize(("asked", "count"), [({EFA: 1}, 8), ({}, 1)])
def test_a_254_a_431_efa_interfaces_only_for_a_claim_that_asks(asked: dict[str, int], count: int) -> None:
    found = data(replace(ORDER, requests=asked), kind="trn1.32xlarge")["NetworkInterfaces"]
    assert len(found) == count
    assert [i.get("InterfaceType") for i in found] == (["efa"] * 8 if asked else [None])
    assert [i["DeviceIndex"] for i in found] == ([0, *[1] * 7] if asked else [0])


def test_a_256_ipv6_and_connection_tracking() -> None:
    (found,) = data(
        settings=replace(SETTINGS, facts=replace(FACTS, dns="fd00::a")),
        ip_prefix_count=1,
        connection_tracking=ConnectionTracking(udp_timeout=30),
    )["NetworkInterfaces"]
    assert (found["PrimaryIpv6"], found["Ipv6AddressCount"], found["Ipv6PrefixCount"]) == (True, 1, 1)
    assert found["ConnectionTrackingSpecification"] == {"UdpTimeout": 30}


class Forgetful:
    """An EC2 in which, while one template is deleted, a launch finds that another is not there."""

    def __init__(self) -> None:
        self.ec2 = self
        self.deleted: list[str] = []
        self.templates: LaunchTemplates

    def describe_launch_templates(self, **_: Any) -> dict[str, Any]:
        return {
            "LaunchTemplates": [{"LaunchTemplateName": name} for name in ("karpenter.k8s.aws/1", "karpenter.k8s.aws/2")]
        }

    def delete_launch_template(self, LaunchTemplateName: str) -> dict[str, Any]:  # noqa: N803
        self.deleted.append(LaunchTemplateName)
        self.templates.forget()
        return {}


def test_a284_templates_that_are_forgotten_meanwhile_do_not_end_a_sweep() -> None:
    """A-237. The sweep and launches are in threads of their own."""
    now, ec2 = [1_000], Forgetful()
    ec2.templates = templates = LaunchTemplates(ec2, SETTINGS, lambda: now[0])  # type: ignore[arg-type]
    templates.sweep()
    now[0] += UNUSED + 1
    templates.sweep()
    assert ec2.deleted == ["karpenter.k8s.aws/1"]


class Account:
    """An EC2 that keeps some templates, whoever wants to delete them."""

    def __init__(self, *names: str, kept: str = "") -> None:
        self.ec2, self.there, self.kept = self, list(names), kept
        self.asked: list[str] = []

    def describe_launch_templates(self, **_: Any) -> dict[str, Any]:
        return {"LaunchTemplates": [{"LaunchTemplateName": name} for name in self.there]}

    def delete_launch_template(self, LaunchTemplateName: str) -> dict[str, Any]:  # noqa: N803
        self.asked.append(LaunchTemplateName)
        if LaunchTemplateName == self.kept:
            error = {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}
            raise ClientError(error, "DeleteLaunchTemplate")
        self.there.remove(LaunchTemplateName)
        return {}


def test_a237_a_template_that_ec2_does_not_let_go_keeps_no_other() -> None:
    """A policy may forbid to delete what an older release of Karpenter tagged otherwise."""
    now, ec2 = [1_000], Account("kerf/a", "kerf/b", "kerf/c", kept="kerf/b")
    templates = LaunchTemplates(ec2, SETTINGS, lambda: now[0])  # type: ignore[arg-type]
    templates.sweep()
    now[0] += UNUSED + 1
    with pytest.raises(AwsError, match="UnauthorizedOperation"):
        templates.sweep()
    assert ec2.there == ["kerf/b"]
    templates.sweep()
    assert ec2.asked == ["kerf/a", "kerf/b", "kerf/c"], "it is not asked for again at once"


def test_a238_a_class_that_goes_takes_all_templates_that_ec2_lets_go() -> None:
    ec2 = Account("kerf/a", "kerf/b", "kerf/c", kept="kerf/a")
    with pytest.raises(AwsError, match="UnauthorizedOperation"):
        LaunchTemplates(ec2, SETTINGS, lambda: 1_000).release("n")  # type: ignore[arg-type]
    assert ec2.there == ["kerf/a"]


def test_a237_what_was_forgotten_is_swept_all_the_same() -> None:
    now, ec2 = [1_000], Account("kerf/a", "kerf/b")
    templates = LaunchTemplates(ec2, SETTINGS, lambda: now[0])  # type: ignore[arg-type]
    templates.sweep()
    templates.forget()
    templates.sweep()
    now[0] += UNUSED + 1
    templates.sweep()
    assert ec2.there == []
