"""Aliases, image choice, and which image a type boots (A-101…A-115, A-461, A-463), and reading a NodeClass."""

from typing import Any

import pytest

from kerf.adapters.aws.ami_families import VARIANTS, image_queries, unsupported
from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.instance_types import NodeSettings, instance_type
from kerf.adapters.aws.launch.launch_template import block_devices, template_name
from kerf.adapters.aws.nodeclass.images import select
from kerf.adapters.aws.nodeclass.resolved import DEPENDENTS, image_of, node_settings, readiness, ready, with_condition
from kerf.engine.errors import InputError
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    BlockDevice,
    BlockDeviceMapping,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    ResolvedAMI,
)
from kerf.engine.model.karpenter.nodeclaim_objects import Condition

NOW = 1_785_542_400_000


def image(name: str, created: str, arch: str = "x86_64", deprecated: str = "") -> dict[str, str]:
    entry = {"ImageId": f"ami-{name}", "Name": name, "CreationDate": created, "Architecture": arch}
    return entry | ({"DeprecationTime": deprecated} if deprecated else {})


def chosen(*entries: dict[str, str]) -> list[str]:
    return [found.name for found in select([(entry, ()) for entry in entries], NOW)]


def test_a_102_to_a_104_al2() -> None:
    assert [query.parameter for query in image_queries("al2@latest", "1.32")] == [
        "/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id",
    ]
    pinned = image_queries("al2@v20260101", "1.32")[1].parameter
    assert pinned.endswith("/amazon-eks-arm64-node-1.32-v20260101/image_id")


def test_a_105_al2023() -> None:
    found = {
        query.parameter.split("/")[7] + "/" + query.parameter.split("/")[8]
        for query in image_queries("al2023@latest", "1.34")
    }
    assert found == {"x86_64/standard", "x86_64/nvidia", "x86_64/neuron", "arm64/standard", "arm64/nvidia"}
    assert image_queries("al2023@v1", "1.34")[0].parameter.endswith(
        "/amazon-eks-node-al2023-x86_64-standard-1.34-v1/image_id"
    )


def test_a_106_bottlerocket_drops_the_v() -> None:
    assert image_queries("bottlerocket@v1.20.1", "1.34")[0].parameter == (
        "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.20.1/image_id"
    )


@pytest.mark.parametrize(
    ("alias", "version", "refused"),
    [("al2@latest", "1.33", True), ("al2@latest", "1.32", False), ("windows2025@latest", "1.34", True)],
)
def test_a_109_a_463_unsupported_aliases(alias: str, version: str, refused: bool) -> None:
    assert bool(unsupported(alias, version)) is refused


def test_a_461_the_newest_that_is_not_deprecated() -> None:
    old = image("old", "2026-01-01T00:00:00.000Z")
    new = image("new", "2026-06-01T00:00:00.000Z", deprecated="2026-07-01T00:00:00.000Z")
    later = image("later", "2026-05-01T00:00:00.000Z", deprecated="2027-01-01T00:00:00.000Z")
    assert chosen(old, new) == chosen(new, old) == ["old"]
    assert chosen(old, new, later) == ["later"]
    assert chosen(image("a", "2026-01-01T00:00:00.000Z", deprecated="2026-02-01T00:00:00.000Z"), new) == ["new"]


def test_a_112_one_image_for_each_architecture_and_none_for_others() -> None:
    assert chosen(
        image("x", "2026-01-01T00:00:00.000Z"),
        image("arm", "2026-02-01T00:00:00.000Z", "arm64"),
        image("i386", "2026-03-01T00:00:00.000Z", "i386"),
    ) == ["arm", "x"]


@pytest.mark.parametrize(
    ("kind", "variant"),
    [("m5.large", "standard"), ("g4dn.xlarge", "nvidia"), ("inf2.xlarge", "neuron"), ("g6f.large", "nvidia")],
)
def test_a_115_a_473_which_image_a_type_boots(kind: str, variant: str) -> None:
    made = instance_type(tables().types[kind], NodeSettings(), (), region="r")
    images = [ResolvedAMI(id=name, requirements=needs) for name, needs in sorted(VARIANTS.items())]
    assert image_of(images, made) == variant
    assert image_of([ami for ami in images if ami.id != variant], made) == ""


def node_class(**spec: object) -> EC2NodeClass:
    return EC2NodeClass(name="c", spec=EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias="al2023@latest"),), **spec))  # type: ignore[arg-type]


def test_a_426_volumes_are_whole_gibibytes_rounded_up_and_unset_fields_left_out() -> None:
    mappings = (
        BlockDeviceMapping("/dev/xvda", ebs=BlockDevice(volume_size="20G", encrypted=False, iops=0)),
        BlockDeviceMapping("/dev/xvdb"),
    )
    assert block_devices(node_class(block_device_mappings=mappings).spec, "AL2023") == [
        {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": False, "VolumeSize": 19}}
    ]


def test_a_235_equal_content_has_an_equal_name_whatever_the_order_of_keys() -> None:
    assert template_name({"a": 1, "b": 2}) == template_name({"b": 2, "a": 1})
    assert template_name({"a": 1}) != template_name({"a": 2})
    assert template_name({}).startswith("karpenter.k8s.aws/")


def test_kubelet_settings_reach_the_formulas() -> None:
    kubelet = {
        "maxPods": 0,
        "podsPerCore": 4,
        "kubeReserved": {"cpu": "100m", "memory": "1Gi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "2Gi"},
    }
    found = node_settings(node_class(kubelet=kubelet, instance_store_policy="RAID0"), reserved_enis=1)
    assert (found.max_pods, found.pods_per_core, found.raid0, found.reserved_enis) == (0, 4, True, 1)
    assert found.kube_reserved == {"cpu": 100, "memory": 1 << 30}
    assert found.eviction_hard == {"memory.available": "5%", "nodefs.available": 2 << 30}


@pytest.mark.parametrize(
    ("kubelet", "code"),
    [
        ({"maxPods": "vcpus * 10"}, "KERF522"),
        ({"kubeReserved": {"memory": "11 * max_pods + 255"}}, "KERF522"),
        ({"systemReserved": {"cpu": "vcpus"}}, "KERF522"),
        ({"kubeReserved": {"memory": "-1 * max_pods"}}, "KERF306"),
    ],
)
def test_a_52_a_429_an_expression_is_refused(kubelet: dict[str, Any], code: str) -> None:
    """A-50: what begins with a minus sign is none."""
    with pytest.raises(InputError, match=code):
        node_settings(node_class(kubelet=kubelet))


def test_a_56_readiness() -> None:
    status = EC2NodeClassStatus()
    assert readiness(status).status == "Unknown"
    for kind in DEPENDENTS:
        status = with_condition(status, ready(kind), 5)
    assert readiness(status).status == "True"
    unknown = with_condition(status, Condition("AMIsReady", "Unknown", "AwaitingReconciliation"), 7)
    assert (readiness(unknown).status, readiness(unknown).reason) == ("Unknown", "ReconcilingDependents")
    worse = with_condition(unknown, Condition("SubnetsReady", "False", "SubnetsNotFound", "none"), 8)
    assert readiness(worse).reason == "UnhealthyDependents"
    assert "SubnetsReady=False (SubnetsNotFound: none)" in readiness(worse).message


def test_a_56_the_transition_time_moves_only_with_the_status() -> None:
    status = with_condition(EC2NodeClassStatus(), Condition("SubnetsReady", "False", "SubnetsNotFound"), 5)
    status = with_condition(status, Condition("SubnetsReady", "False", "SubnetsNotFound", "still"), 6)
    assert [(c.since, c.message) for c in status.conditions] == [(5, "still")]
    status = with_condition(status, ready("SubnetsReady"), 7)
    assert [c.since for c in status.conditions] == [7]
