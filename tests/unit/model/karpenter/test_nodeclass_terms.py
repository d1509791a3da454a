"""What an EC2NodeClass asks of its instances, as drift compares it (A-64, A-341)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    BlockDevice,
    BlockDeviceMapping,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    MetadataOptions,
    NetworkInterface,
    ResolvedAMI,
    ResolvedSecurityGroup,
    ResolvedSubnet,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodeclaim_templates import differences
from kerf.engine.model.karpenter.nodeclass_terms import (
    NO_USER_DATA,
    NodeClassTerms,
    ec2_terms,
    known_user_data,
    recorded,
    user_data_digest,
)
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.projections.prose.drift import difference_words

AL2023 = (AMITerm(alias="al2023@latest"),)


def terms(status: EC2NodeClassStatus | None = None, **spec: Any) -> NodeClassTerms:
    known: dict[str, Any] = {"role": "node", "ami_selector_terms": AL2023} | spec
    return ec2_terms(EC2NodeClass("default", EC2NodeClassSpec(**known), status or EC2NodeClassStatus()))


@pytest.mark.parametrize(
    "change",
    [
        {"role": "other"}, {"user_data": "echo"}, {"tags": {"team": "a"}}, {"instance_store_policy": "RAID0"},
        {"detailed_monitoring": True}, {"associate_public_ip_address": True}, {"context": "c"},
        {"metadata_options": MetadataOptions(http_tokens="optional")}, {"kubelet": {"cpuCFSQuota": False}},
        {"block_device_mappings": (BlockDeviceMapping(ebs=BlockDevice(volume_size="20Gi")),)},
        {"network_interfaces": (NetworkInterface(0, 0, "interface"),)}, {"ami_family": "AL2"},
    ],
)  # fmt: skip
def test_a64_these_fields_count(change: dict[str, Any]) -> None:
    assert terms(**change).hash != terms().hash
    assert terms(**change).static != terms().static


@pytest.mark.parametrize(
    "change",
    [
        {"subnet_selector_terms": (SubnetTerm(id="subnet-1"),)}, {"ip_prefix_count": 4}, {"detailed_monitoring": False},
        {"ami_selector_terms": (AMITerm(alias="al2023@v1"),)}, {"ami_family": "AL2023"}, {"user_data": ""},
    ],
)  # fmt: skip
def test_a341_these_do_not(change: dict[str, Any]) -> None:
    assert terms(**change) == terms()


@pytest.mark.parametrize(
    ("absent", "written"),
    [
        ("{}", '{"metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required"}}'),
        ("{}", '{"metadataOptions": {"httpPutResponseHopLimit": 1}}'),
        ('{"metadataOptions": {"httpTokens": "optional"}}',
         '{"metadataOptions": {"httpTokens": "optional", "httpProtocolIPv6": "disabled"}}'),
        ('{"blockDeviceMappings": [{"ebs": {"volumeSize": "20Gi"}}]}',
         '{"blockDeviceMappings": [{"rootVolume": false, "ebs": {"volumeSize": "20Gi", "encrypted": false}}]}'),
        ("{}", '{"associatePublicIPAddress": false, "detailedMonitoring": false}'),
    ],
)  # fmt: skip
def test_a64_what_is_absent_zero_or_the_default_is_the_same(absent: str, written: str) -> None:
    """An API server writes defaults into an object that a file leaves out."""
    one, other = (msgspec.json.decode(text, type=EC2NodeClassSpec) for text in (absent, written))
    assert ec2_terms(EC2NodeClass("default", one)) == ec2_terms(EC2NodeClass("default", other))


def test_a64_the_order_of_lists_does_not_count_and_a_size_is_compared_as_text() -> None:
    first, second = BlockDeviceMapping("/dev/xvda"), BlockDeviceMapping("/dev/xvdb", ebs=BlockDevice(volume_size="1Gi"))
    both = terms(block_device_mappings=(first, second))
    assert both.hash == terms(block_device_mappings=(second, first)).hash
    other = BlockDeviceMapping("/dev/xvdb", ebs=BlockDevice(volume_size="1024Mi"))
    assert both.hash != terms(block_device_mappings=(first, other)).hash


def test_a_long_value_is_cut_and_still_told_from_another() -> None:
    one, two = terms(context="x" * 500 + "1").static["context"], terms(context="x" * 500 + "2").static["context"]
    assert one != two
    assert len(one) < 100
    assert one.startswith("x" * 40 + "… (501 characters, ")


@pytest.mark.parametrize("user_data", ["hunter2", "hunter2" * 100, NO_USER_DATA])
def test_a_digest_stands_for_user_data(user_data: str) -> None:
    """Passwords stand in it."""
    found = terms(user_data=user_data)
    assert found.static["userData"] == known_user_data(found) == user_data_digest(user_data)
    assert "hunter2" not in f"{found}"
    kept = recorded(EC2NodeClass("default", EC2NodeClassSpec(user_data=user_data)))
    assert isinstance(kept, EC2NodeClass)
    assert kept.spec.user_data == user_data_digest(user_data)


def test_what_is_recorded_is_recorded_again_as_it_is() -> None:
    """`kerf replay` puts the class of a record into another one, under the same digest."""
    kept = recorded(EC2NodeClass("default", EC2NodeClassSpec(user_data="echo hush")))
    assert recorded(kept) == kept


def test_user_data_is_unknown_where_an_older_record_has_its_beginning() -> None:
    assert known_user_data(None) == ""
    assert known_user_data(NodeClassTerms(static={"userData": "echo hunter2"})) == ""
    assert known_user_data(terms()) == NO_USER_DATA != user_data_digest(NO_USER_DATA)


def test_what_the_class_selects() -> None:
    status = EC2NodeClassStatus(
        subnets=(ResolvedSubnet("subnet-2"), ResolvedSubnet("subnet-1")),
        security_groups=(ResolvedSecurityGroup("sg-1"),),
        amis=(ResolvedAMI("ami-2", requirements=(RequirementSpec("a", "Exists"),)), ResolvedAMI("ami-1")),
    )
    found = terms(status)
    assert (found.subnets, found.security_groups) == (("subnet-1", "subnet-2"), ("sg-1",))
    assert [image.id for image in found.images] == ["ami-2", "ami-1"]
    assert found.hash == terms().hash


def test_a334_the_part_of_a_structured_field_that_differs_is_named_with_its_values() -> None:
    def disk(size: str) -> tuple[BlockDeviceMapping, ...]:
        key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        return (
            BlockDeviceMapping("/dev/xvda", ebs=BlockDevice(volume_size=size, kms_key_id=key)),
            BlockDeviceMapping("/dev/xvdb", ebs=BlockDevice(volume_size="1Gi")),
        )

    was, now = terms(block_device_mappings=disk("100Gi")), terms(block_device_mappings=disk("200Gi"))
    (found,) = differences(was.static, now.static)
    assert difference_words(found) == "blockDeviceMappings[/dev/xvda].ebs.volumeSize 100Gi → 200Gi"
    assert was.hash != now.hash


def test_a334_of_a_map_in_the_kubelet_the_entry_that_differs_is_named() -> None:
    was = terms(kubelet={"evictionHard": {"memory.available": "5%", "nodefs.available": "10%"}, "maxPods": 110})
    now = terms(kubelet={"evictionHard": {"memory.available": "7%", "nodefs.available": "10%"}, "maxPods": 110})
    (found,) = differences(was.static, now.static)
    assert difference_words(found) == "kubelet[evictionHard].memory.available 5% → 7%"


def test_no_value_is_a_part_of_json() -> None:
    items = tuple(BlockDeviceMapping(f"/dev/xvd{letter}", ebs=BlockDevice(volume_size="1Gi")) for letter in "abcdefgh")
    found = terms(block_device_mappings=items, kubelet={"clusterDNS": [f"10.0.0.{number}" for number in range(30)]})
    assert not [text for text in found.static.values() if text.startswith(("{", "["))]
    assert len([path for path in found.static if path.startswith("blockDeviceMappings ")]) == 8


def test_a64_nodes_that_are_told_the_certificate_authority_drift_by_it() -> None:
    """An image of the user's own is told none."""
    for family, hashed in (("AL2023", True), ("Bottlerocket", True), ("Custom", False)):
        spec = EC2NodeClassSpec(ami_family=family)
        before, after = (ec2_terms(EC2NodeClass("default", spec), bundle) for bundle in ("b2xk", "bmV3"))
        assert (before.hash != after.hash) is hashed
