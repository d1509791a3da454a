"""The worked numbers of the specification (A-188…A-198, A-412…A-427) come out of the formulas, not out of a
table."""

import math

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.instance_types import (
    EFA,
    GI,
    MI,
    POD_ENI,
    Interface,
    Mapping,
    NodeSettings,
    capacity,
    compatible,
    instance_type,
    kube_reserved,
    overhead,
)
from kerf.engine.model import labels
from tests.support.instance_facts import facts, made

AWS = "karpenter.k8s.aws/"


@pytest.mark.parametrize(
    ("name", "memory", "cpu", "allocatable", "pods", "pod_eni", "others"),
    [
        pytest.param("m5.large", 7577, 1930, 6903, 29, 9, {}, id="A-188"),
        pytest.param("m5.xlarge", 15155, 3920, 14162, 58, 18, {}, id="A-189"),
        pytest.param("m6g.large", 7518, 1930, 6844, 29, 9, {}, id="A-190"),
        pytest.param("t3.medium", 3788, 1930, 3246, 17, 0, {}, id="A-191"),
        pytest.param("c5d.large", 3788, 1930, 3114, 29, 9, {}, id="A-192"),
        pytest.param("a1.medium", 1835, 940, 1392, 8, 10, {}, id="A-193"),
        pytest.param("g4dn.xlarge", 15155, 3920, 14481, 29, 39, {"nvidia.com/gpu": 1}, id="A-194"),
        pytest.param(
            "inf2.xlarge",
            15155,
            3920,
            14162,
            58,
            18,
            {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2},
            id="A-195",
        ),
        pytest.param("m5.metal", 363724, 95690, 355262, 737, 120, {}, id="A-196"),
        pytest.param(
            "trn1.32xlarge",
            484966,
            127610,
            481894,
            247,
            82,
            {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32, EFA: 8},
            id="A-197",
        ),
    ],
)
def test_worked_numbers(
    name: str, memory: int, cpu: int, allocatable: int, pods: int, pod_eni: int, others: dict[str, int]
) -> None:
    kind = made(name)
    left = kind.allocatable()
    assert kind.capacity["memory"] == memory * MI
    assert (left["cpu"], left["memory"], left["pods"]) == (cpu, allocatable * MI, pods)
    assert left["ephemeral-storage"] == 17 * GI
    assert left.get(POD_ENI, 0) == pod_eni
    assert {key: value for key, value in left.items() if "/" in key and key != POD_ENI} == others


def test_a_198_windows() -> None:
    left = made("m5.large", NodeSettings(family="Windows2022")).allocatable()
    assert (left["cpu"], left["memory"], left["pods"]) == (1930, 6012 * MI, 110)
    assert left["ephemeral-storage"] == 44 * GI
    assert left["vpc.amazonaws.com/PrivateIPv4Address"] == 9


@pytest.mark.parametrize(
    ("name", "settings", "memory"),
    [
        pytest.param("m5.large", NodeSettings(), 674, id="A-412"),
        pytest.param("m5.xlarge", NodeSettings(family="AL2", overhead=0.0), 993, id="A-413"),
        pytest.param("m5.xlarge", NodeSettings(family="Bottlerocket", max_pods=110), 1565, id="A-414"),
        pytest.param("m5.xlarge", NodeSettings(max_pods=110), 993, id="A-414 on AL2023"),
    ],
)
def test_memory_overhead(name: str, settings: NodeSettings, memory: int) -> None:
    assert overhead(facts(name), settings)["memory"] == memory * MI


@pytest.mark.parametrize(("family", "reserved"), [("AL2023", 574), ("Bottlerocket", 475)])
def test_a_415_a_478_reserved_enis_lower_pods_and_only_bottlerocket_reserves_less(family: str, reserved: int) -> None:
    settings = NodeSettings(family=family, reserved_enis=1)
    assert capacity(facts("m5.large"), settings)["pods"] == 20
    assert kube_reserved(facts("m5.large"), settings)["memory"] == reserved * MI


@pytest.mark.parametrize("enis", [3, 4, 100])
def test_a_416_no_pods_are_left_but_never_fewer_than_none(enis: int) -> None:
    assert capacity(facts("m5.large"), NodeSettings(reserved_enis=enis))["pods"] == 0


@pytest.mark.parametrize(
    ("settings", "pods"),
    [
        pytest.param(NodeSettings(pods_per_core=4, max_pods=20), 16, id="A-417"),
        pytest.param(NodeSettings(family="Bottlerocket", pods_per_core=4, max_pods=20), 20, id="A-173"),
        pytest.param(NodeSettings(pods_per_core=0), 58, id="A-418"),
    ],
)
def test_pods_of_m5_xlarge(settings: NodeSettings, pods: int) -> None:
    assert capacity(facts("m5.xlarge"), settings)["pods"] == pods


@pytest.mark.parametrize(
    ("threshold", "kept"),
    [
        pytest.param("5%", math.ceil(7577 * MI / 100 * 5), id="A-419"),
        pytest.param("100%", 0, id="A-420"),
        pytest.param(200 * MI, 200 * MI, id="A-186 quantity"),
    ],
)
def test_eviction_hard(threshold: int | str, kept: int) -> None:
    settings = NodeSettings(eviction_hard={"memory.available": threshold})
    assert overhead(facts("m5.large"), settings)["memory"] == 574 * MI + kept


def test_a186_a_share_of_memory_counts_from_what_nodes_have() -> None:
    """As the kubelet counts it (differs)."""
    settings = NodeSettings(eviction_hard={"memory.available": "5%"}, seen_memory={"m5.large": 7000 * MI})
    assert overhead(facts("m5.large"), settings)["memory"] == 574 * MI + 350 * MI


@pytest.mark.parametrize(
    ("name", "settings", "size"),
    [
        pytest.param("c5d.large", NodeSettings(raid0=True), 50 * 10**9, id="A-422"),
        pytest.param("m5.large", NodeSettings(raid0=True), 20 * GI, id="A-423"),
        pytest.param(
            "m5.large",
            NodeSettings(family="Bottlerocket", mappings=(Mapping("/dev/xvda", 100 * GI),)),
            20 * GI,
            id="A-424",
        ),
        pytest.param(
            "m5.large",
            NodeSettings(family="Custom", mappings=(Mapping("/dev/xvda", 10 * GI), Mapping("/dev/xvdb", 200 * GI))),
            200 * GI,
            id="A-425",
        ),
        pytest.param(
            "m5.large",
            NodeSettings(mappings=(Mapping("/dev/sdx", 30 * GI, root=True), Mapping("/dev/xvda", 5 * GI))),
            30 * GI,
            id="A-171 root volume",
        ),
        pytest.param(
            "m5.large",
            NodeSettings(mappings=(Mapping("/dev/xvda", 99 * GI),)),
            99 * GI,
            id="A-171 data device",
        ),
    ],
)
def test_ephemeral_storage(name: str, settings: NodeSettings, size: int) -> None:
    assert capacity(facts(name), settings)["ephemeral-storage"] == size


def test_a_427_kube_reserved_replaces_key_by_key() -> None:
    reserved = kube_reserved(facts("m5.large"), NodeSettings(kube_reserved={"cpu": 100}))
    assert reserved == {"cpu": 100, "memory": 574 * MI, "ephemeral-storage": GI}


def test_a_430_efa_only_interfaces_take_an_eni_and_are_the_efa_resource() -> None:
    interfaces = (Interface(0, 0), Interface(0, 1), Interface(0, 2, efa_only=True))
    found = capacity(facts("g4dn.8xlarge"), NodeSettings(interfaces=interfaces))
    plain = capacity(facts("g4dn.8xlarge"), NodeSettings())
    assert found[EFA] == 1
    assert plain["pods"] - found["pods"] == facts("g4dn.8xlarge").ipv4_per_interface - 1


@pytest.mark.parametrize(
    ("name", "settings", "fits"),
    [
        pytest.param("a1.large", NodeSettings(), False, id="A-141 b"),
        pytest.param("a1.large", NodeSettings(family="AL2"), True, id="A-141 b, AL2"),
        pytest.param("m5.metal", NodeSettings(connection_tracking=True), False, id="A-474"),
        pytest.param("m5.large", NodeSettings(connection_tracking=True), True, id="A-141 e"),
        pytest.param("m5.large", NodeSettings(nested_virtualization=True), False, id="A-141 c"),
        pytest.param("m5.large", NodeSettings(interfaces=(Interface(1, 0),)), False, id="A-141 a, card"),
        pytest.param("m5.large", NodeSettings(interfaces=(Interface(0, 3),)), False, id="A-141 a, device"),
        pytest.param("m5.large", NodeSettings(interfaces=(Interface(0, 2),)), True, id="A-141 a"),
        pytest.param("t2.micro", NodeSettings(placement="cluster"), False, id="A-141 d"),
    ],
)
def test_compatibility(name: str, settings: NodeSettings, fits: bool) -> None:
    assert compatible(facts(name), settings) is fits


@pytest.mark.parametrize(
    ("name", "category", "generation"),
    [
        ("m5d.large", "m", "5"),
        ("u-6tb1.metal", "u", "1"),
        ("u7i-12tb.224xlarge", "u", "7"),
        ("p6-b200.48xlarge", "p", "6"),
        ("m7i-flex.large", "m", "7"),
    ],
)
def test_a_155_category_and_generation(name: str, category: str, generation: str) -> None:
    known = replace(facts("m5.large"), name=name)
    found = instance_type(known, NodeSettings(), (), region="r").requirements
    assert found[AWS + "instance-category"] == (category,)
    assert found[AWS + "instance-generation"] == (generation,)


def test_a_155_a_name_of_another_form_has_neither() -> None:
    found = instance_type(replace(facts("m5.large"), name="mac-m4.metal"), NodeSettings(), (), region="r").requirements
    assert found[AWS + "instance-category"] == found[AWS + "instance-generation"] == ()


def test_labels_of_m5_large() -> None:
    """An m5.large has the labels that EC2's facts give it (A-142…A-165)."""
    found = made("m5.large").requirements
    expected = {
        labels.INSTANCE_TYPE: ("m5.large",),
        labels.ARCH: ("amd64",),
        labels.OS: ("linux",),
        labels.REGION: ("us-west-2",),
        AWS + "instance-cpu": ("2",),
        AWS + "instance-memory": ("8192",),
        AWS + "instance-hypervisor": ("nitro",),
        AWS + "instance-cpu-manufacturer": ("intel",),
        AWS + "instance-cpu-sustained-clock-speed-mhz": ("3100",),
        AWS + "instance-network-bandwidth": ("750",),
        AWS + "instance-ebs-bandwidth": ("4750",),
        AWS + "instance-local-nvme": (),
        AWS + "instance-gpu-count": (),
        AWS + "instance-accelerator-count": (),
        AWS + "instance-tenancy": ("default",),
    }
    assert {key: found[key] for key in expected} == expected


def test_labels_of_accelerated_types() -> None:
    """Types with GPUs and accelerators have their labels (A-163, A-164, A-196, A-473)."""
    gpu = made("g4dn.xlarge").requirements
    assert gpu[AWS + "instance-gpu-name"] == ("t4",)
    assert gpu[AWS + "instance-gpu-memory"] == ("16384",)
    assert gpu[AWS + "instance-local-nvme"] == ("125",)
    neuron = made("inf2.xlarge").requirements
    assert neuron[AWS + "instance-accelerator-name"] == ("inferentia2",)
    assert neuron[AWS + "instance-accelerator-manufacturer"] == ("aws",)
    assert made("g6f.large").requirements[AWS + "instance-gpu-count"] == ("0",)
    assert "nvidia.com/gpu" not in made("g6f.large").capacity
    assert made("m5.metal").requirements[AWS + "instance-hypervisor"] == ("",)


def test_windows_labels() -> None:
    """Types of Windows have its labels (A-144, A-145)."""
    settings = NodeSettings(family="Windows2022")
    assert made("m5.large", settings).requirements[labels.OS] == ("windows",)
    assert made("m5.large", settings).requirements[labels.WINDOWS_BUILD] == ("10.0.20348",)
    assert made("m6g.large", settings).requirements[labels.OS] == ()
