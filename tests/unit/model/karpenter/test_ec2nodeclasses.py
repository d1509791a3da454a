"""EC2NodeClasses: their fields and defaults (A-25…A-54), and what admission refuses."""

from typing import Any

import pytest

from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    BlockDevice,
    BlockDeviceMapping,
    EC2NodeClass,
    MetadataOptions,
    ResolvedAMI,
    ResolvedReservation,
    ResolvedSecurityGroup,
    ResolvedSubnet,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from tests.support.manifests.small import EC2_NODE_CLASS, changed, decode, refusals


def node_class(document: dict[str, Any]) -> EC2NodeClass:
    found = decode(document).object
    assert isinstance(found, EC2NodeClass)
    return found


def test_defaults() -> None:
    """What is left out has its default (A-42, A-48, L-64)."""
    found = node_class(EC2_NODE_CLASS)
    assert found.spec.metadata_options == MetadataOptions("enabled", "disabled", 1, "required")
    assert found.spec.subnet_selector_terms == (SubnetTerm({"karpenter.sh/discovery": "kerf"}),)
    assert (found.ami_family, found.ready, found.spec.kubelet) == ("AL2023", False, {})


def test_names_with_capitals_are_read() -> None:
    spec = {
        "associatePublicIPAddress": True,
        "ipPrefixCount": 2,
        "metadataOptions": {"httpProtocolIPv6": "enabled"},
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1", "kmsKeyID": "k"}}],
        "capacityReservationSelectorTerms": [{"ownerID": "123456789012", "tags": {"a": "b"}}],
        "placementGroupSelector": {"id": "pg-1"},
        "kubelet": {"maxPods": "max_pods - 2", "clusterDNS": ["10.0.0.10"]},
        "cpuOptions": {"nestedVirtualization": "enabled"},
        "connectionTracking": {"udpTimeout": 30},
        "networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}],
        "instanceStorePolicy": "RAID0",
    }
    found = node_class(EC2_NODE_CLASS | {"spec": EC2_NODE_CLASS["spec"] | spec}).spec
    assert (found.associate_public_ip_address, found.metadata_options.http_protocol_ipv6) == (True, "enabled")
    device = BlockDeviceMapping("/dev/xvda", ebs=BlockDevice(snapshot_id="snap-1", kms_key_id="k"))
    assert found.block_device_mappings == (device,)
    assert found.capacity_reservation_selector_terms[0].owner_id == "123456789012"
    assert found.kubelet == {"maxPods": "max_pods - 2", "clusterDNS": ["10.0.0.10"]}


def test_a50_numbers_without_a_fraction_are_integers_in_a_kubelet_as_the_api_server_gives_them_back() -> None:
    """A float for maxPods would stand in resources, which a record cannot hold, and in user data."""
    written = {
        "maxPods": 20.0,
        "podsPerCore": -0.0,
        "memoryThrottlingFactor": 0.8,
        "reservedMemory": [{"numaNode": 1.0, "limits": {"memory": 1e9}}],
        "registryPullQPS": 1e300,
    }
    found = node_class(EC2_NODE_CLASS | {"spec": EC2_NODE_CLASS["spec"] | {"kubelet": written}}).spec.kubelet
    assert repr(found) == repr(
        {
            "maxPods": 20,
            "podsPerCore": 0,
            "memoryThrottlingFactor": 0.8,
            "reservedMemory": [{"numaNode": 1, "limits": {"memory": 1_000_000_000}}],
            "registryPullQPS": 1e300,
        }
    )


def test_status() -> None:
    """A status is read whole (A-54)."""
    status = {
        "subnets": [{"id": "subnet-1", "zone": "us-west-2a", "zoneID": "usw2-az1"}],
        "securityGroups": [{"id": "sg-1", "name": "x"}],
        "amis": [
            {"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}
        ],
        "instanceProfile": "profile",
        "capacityReservations": [{"id": "cr-1", "ownerID": "1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    found = node_class(EC2_NODE_CLASS | {"status": status})
    assert found.status.subnets == (ResolvedSubnet("subnet-1", "us-west-2a", "usw2-az1"),)
    assert found.status.security_groups == (ResolvedSecurityGroup("sg-1", "x"),)
    arch = RequirementSpec("kubernetes.io/arch", "In", ("arm64",))
    assert found.status.amis == (ResolvedAMI("ami-1", requirements=(arch,)),)
    assert found.status.capacity_reservations == (ResolvedReservation(id="cr-1", owner_id="1"),)
    assert found.status.conditions == (Condition("Ready", "True"),)
    assert (found.ready, found.status.instance_profile) == (True, "profile")


@pytest.mark.parametrize(
    ("family", "term", "effective"),
    [
        ("", {"alias": "al2@latest"}, "AL2"),
        ("Custom", {"alias": "al2023@v20240807"}, "Custom"),
        ("Bottlerocket", {"id": "ami-1"}, "Bottlerocket"),
        ("", {"alias": "windows2025@latest"}, "Windows2025"),
    ],
)
def test_the_effective_family(family: str, term: dict[str, str], effective: str) -> None:
    """The effective family is the one given, else that of the alias, else Custom (A-31, A-48)."""
    document = changed(EC2_NODE_CLASS, "spec.amiSelectorTerms", [term])
    assert node_class(changed(document, "spec.amiFamily", family) if family else document).ami_family == effective


def test_an_alias_has_a_family_and_a_version() -> None:
    term = AMITerm(alias="AL2023@v20240807")
    assert (term.alias_family, term.alias_version) == ("al2023", "v20240807")


SUBNETS, GROUPS, AMIS = "spec.subnetSelectorTerms", "spec.securityGroupSelectorTerms", "spec.amiSelectorTerms"
RESERVATIONS = "spec.capacityReservationSelectorTerms"
DEVICES, INTERFACES = "spec.blockDeviceMappings", "spec.networkInterfaces"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (SUBNETS, [], {SUBNETS: "KERF304"}),
        (SUBNETS, [{}], {f"{SUBNETS}[0]": "KERF316"}),
        (SUBNETS, [{"id": "subnet-1"}] * 31, {SUBNETS: "KERF309"}),
        (SUBNETS, [{"id": "vpc-1"}], {f"{SUBNETS}[0].id": "KERF312"}),
        (SUBNETS, [{"id": "subnet-1", "tags": {"a": "b"}}], {f"{SUBNETS}[0].id": "KERF316"}),
        (SUBNETS, [{"tags": {"a": ""}}], {f"{SUBNETS}[0].tags[a]": "KERF312"}),
        (SUBNETS, [{"tags": {str(n): "x" for n in range(21)}}], {f"{SUBNETS}[0].tags": "KERF309"}),
        (GROUPS, [{"id": "sg-1", "name": "n"}], {f"{GROUPS}[0].id": "KERF316", f"{GROUPS}[0].name": "KERF316"}),
        (RESERVATIONS, [{"ownerID": "123456789012"}], {f"{RESERVATIONS}[0]": "KERF316"}),
        (RESERVATIONS, [{"id": "x-cr-1"}], {f"{RESERVATIONS}[0].id": "KERF312"}),
        (RESERVATIONS, [{"instanceMatchCriteria": "any"}], {f"{RESERVATIONS}[0].instanceMatchCriteria": "KERF305"}),
        (RESERVATIONS, [{"tags": {"a": "b"}, "ownerID": "me"}], {f"{RESERVATIONS}[0].ownerID": "KERF312"}),
        ("spec.placementGroupSelector", {}, {"spec.placementGroupSelector": "KERF316"}),
        ("spec.placementGroupSelector", {"id": "x"}, {"spec.placementGroupSelector.id": "KERF312"}),
        (AMIS, ..., {AMIS: "KERF304"}),
        (AMIS, [{"owner": "self"}], {f"{AMIS}[0]": "KERF316", "spec.amiFamily": "KERF304"}),
        (AMIS, [{"id": "ami-1"}], {"spec.amiFamily": "KERF304"}),
        (
            AMIS,
            [{"alias": "al2@latest"}, {"alias": "al2@latest"}],
            {f"{AMIS}[0].alias": "KERF316", f"{AMIS}[1].alias": "KERF316"},
        ),
        (AMIS, [{"alias": "al2"}], {f"{AMIS}[0].alias": "KERF312"}),
        (AMIS, [{"alias": "AL2@latest"}], {f"{AMIS}[0].alias": "KERF305"}),
        (AMIS, [{"alias": "ubuntu@latest"}], {f"{AMIS}[0].alias": "KERF305"}),
        (AMIS, [{"alias": "windows2022@v1"}], {f"{AMIS}[0].alias": "KERF305"}),
        (AMIS, [{"alias": "al2@latest", "id": "ami-1"}], {f"{AMIS}[0].id": "KERF316"}),
        ("spec.amiFamily", "Ubuntu", {"spec.amiFamily": "KERF305"}),
        ("spec.amiFamily", "AL2", {"spec.amiFamily": "KERF317"}),
        ("spec.instanceProfile", "p", {"spec.instanceProfile": "KERF317"}),
        ("spec.role", ..., {"spec.role": "KERF304"}),
        ("spec.tags", {"karpenter.sh/nodepool": "x", "a": "b"}, {"spec.tags[karpenter.sh/nodepool]": "KERF318"}),
        ("spec.tags", {"kubernetes.io/cluster/x": "owned"}, {"spec.tags[kubernetes.io/cluster/x]": "KERF318"}),
        ("spec.tags", {"": "x"}, {"spec.tags[]": "KERF312"}),
        (DEVICES, [{"rootVolume": True}, {"rootVolume": True}], {f"{DEVICES}[1].rootVolume": "KERF316"}),
        (DEVICES, [{"ebs": {}}], {f"{DEVICES}[0].ebs": "KERF316"}),
        (DEVICES, [{"ebs": {"volumeSize": "1Gi", "volumeType": "gp4"}}], {f"{DEVICES}[0].ebs.volumeType": "KERF305"}),
        (DEVICES, [{"ebs": {"volumeSize": 100}}], {f"{DEVICES}[0].ebs.volumeSize": "KERF303"}),
        (
            DEVICES,
            [{"ebs": {"volumeSize": "1Gi", "volumeInitializationRate": 200}}],
            {f"{DEVICES}[0].ebs.volumeInitializationRate": "KERF316"},
        ),
        (
            DEVICES,
            [{"ebs": {"snapshotID": "s", "volumeInitializationRate": 99}}],
            {f"{DEVICES}[0].ebs.volumeInitializationRate": "KERF309"},
        ),
        ("spec.instanceStorePolicy", "RAID5", {"spec.instanceStorePolicy": "KERF305"}),
        (
            INTERFACES,
            [{"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "interface"}],
            {INTERFACES: "KERF316"},
        ),
        (
            INTERFACES,
            [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}] * 2,
            {f"{INTERFACES}[1]": "KERF316"},
        ),
        ("spec.ipPrefixCount", -1, {"spec.ipPrefixCount": "KERF309"}),
        ("spec.metadataOptions", {"httpTokens": "never"}, {"spec.metadataOptions.httpTokens": "KERF305"}),
        (
            "spec.metadataOptions",
            {"httpPutResponseHopLimit": 65},
            {"spec.metadataOptions.httpPutResponseHopLimit": "KERF309"},
        ),
        ("spec.connectionTracking", {}, {"spec.connectionTracking": "KERF304"}),
        ("spec.connectionTracking", {"udpTimeout": 61}, {"spec.connectionTracking.udpTimeout": "KERF309"}),
        ("spec.cpuOptions", {"nestedVirtualization": "on"}, {"spec.cpuOptions.nestedVirtualization": "KERF305"}),
        ("spec.kubelet", [], {"spec.kubelet": "KERF303"}),
        ("spec.kubelet", {"evictionHard": [{"x": 2**64}]}, {"spec.kubelet": "KERF309"}),
        ("spec.userData", ["#!"], {"spec.userData": "KERF303"}),
    ],
)
def test_refusals(path: str, value: Any, expected: dict[str, str]) -> None:
    """A-25…A-45, each by its path and code, and nothing else."""
    assert refusals(changed(EC2_NODE_CLASS, path, value)) == expected


@pytest.mark.parametrize(
    "term", [{"name": "nodes", "tags": {"a": "b"}}, {"tags": {"a": ""}}, {"tags": {"": "b"}}], ids=str
)
def test_a477_what_a_page_of_karpenter_shows_of_security_groups_is_refused(term: dict[str, Any]) -> None:
    assert refusals(changed(EC2_NODE_CLASS, GROUPS, [term])) != {}
    assert refusals(changed(EC2_NODE_CLASS, GROUPS, [{"tags": {"a": "*"}}])) == {}


def test_a_contradictory_subnet_term_is_let_through_beside_a_sound_one() -> None:
    """A-46: the API server accepts such a list, so a cluster may hold it."""
    terms = [{"id": "subnet-1", "tags": {"a": "b"}}, {"id": "subnet-2"}]
    assert refusals(changed(EC2_NODE_CLASS, SUBNETS, terms)) == {}


@pytest.mark.parametrize("size", ["1Gi", "59000Gi", "64000G", "1G", "57Ti", "58Ti", "64T", "20Gi"])
def test_volume_sizes(size: str) -> None:
    """A volume size is read as the definition admits it (A-37)."""
    assert refusals(changed(EC2_NODE_CLASS, DEVICES, [{"ebs": {"volumeSize": size}}])) == {}


@pytest.mark.parametrize("size", ["0Gi", "59001Gi", "64001G", "18Ti", "59Ti", "65T", "Ti", "20", "20Mi", "1.5Gi"])
def test_refused_volume_sizes(size: str) -> None:
    """A volume size of another form is refused (A-37)."""
    document = changed(EC2_NODE_CLASS, DEVICES, [{"ebs": {"volumeSize": size}}])
    assert refusals(document) == {f"{DEVICES}[0].ebs.volumeSize": "KERF306"}


def test_a_reservation_whose_end_is_no_time_is_refused() -> None:
    """It would fail wherever ends are asked for, for all classes (A-126, A-375)."""
    status = {
        "capacityReservations": [{"id": "cr-1", "endTime": "2026-03-01T00:00:00Z"}, {"id": "cr-2", "endTime": "soon"}]
    }
    assert refusals(EC2_NODE_CLASS | {"status": status}) == {"status.capacityReservations[1].endTime": "KERF308"}
