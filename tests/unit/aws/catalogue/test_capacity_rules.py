"""Capacity and overhead of a type, rule by rule (A-168 to A-187); the worked numbers are in test_instance_types.py."""

from __future__ import annotations

import math

import msgspec
import pytest
from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import Device
from kerf.adapters.aws.catalogue.instance_types import (
    EFA,
    GI,
    MI,
    Interface,
    NodeSettings,
    capacity,
    kube_reserved,
    overhead,
)
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.quantities import LARGEST_AMOUNT
from tests.support.instance_facts import facts, made

PLAIN = NodeSettings()


@pytest.mark.parametrize("nested", [False, True])
def test_a168_cpu_is_that_of_the_type(nested: bool) -> None:
    assert capacity(facts("m5.large"), NodeSettings(nested_virtualization=nested))["cpu"] == 2_000


@pytest.mark.parametrize(
    ("name", "share", "mebibytes"),
    [
        ("m5.large", 0.0, 8_192),
        ("m5.large", 0.075, 8_192 - math.ceil(8_192 * 0.075)),
        ("m6g.large", 0.0, 8_192 - 64),
        ("m6g.large", 0.1, 8_128 - math.ceil(8_128 * 0.1)),
    ],
)
def test_a169_the_hypervisors_share_of_memory_is_rounded_up_and_arm_loses_64_first(
    name: str, share: float, mebibytes: int
) -> None:
    assert capacity(facts(name), NodeSettings(overhead=share))["memory"] == mebibytes * MI


@pytest.mark.parametrize(
    ("settings", "pods"),
    [
        (NodeSettings(), 29),
        (NodeSettings(max_pods=5), 5),
        (NodeSettings(max_pods=500), 500),
        (NodeSettings(pods_per_core=10), 20),
        (NodeSettings(max_pods=15, pods_per_core=10), 15),
        (NodeSettings(family="Windows2022"), 110),
        (NodeSettings(family="Bottlerocket", pods_per_core=1), 29),
    ],
)
def test_a176_pods_by_setting_family_and_core(settings: NodeSettings, pods: int) -> None:
    assert capacity(facts("m5.large"), settings)["pods"] == pods


def test_a177_addresses_of_the_interfaces_that_are_left() -> None:
    """m5.large has three interfaces of ten addresses; one of EFA alone takes one, no more than there are can go."""
    kind = facts("m5.large")
    assert (kind.cards, kind.ipv4_per_interface) == ((3,), 10)
    counted = [
        capacity(kind, NodeSettings(reserved_enis=reserved, interfaces=interfaces))["pods"]
        for reserved, interfaces in [
            (0, ()), (1, ()), (0, (Interface(0, 1, efa_only=True),)), (1, (Interface(0, 1, efa_only=True),)),
            (2, (Interface(0, 1, efa_only=True),)), (9, ()),
        ]
    ]  # fmt: skip
    assert counted == [3 * 9 + 2, 2 * 9 + 2, 2 * 9 + 2, 1 * 9 + 2, 0, 0]


def test_a177_nothing_caps_it() -> None:
    assert capacity(facts("m5.metal"), PLAIN)["pods"] == 737


def test_a178_a478_reserved_interfaces_leave_what_is_reserved_for_the_kubelet() -> None:
    few = NodeSettings(reserved_enis=2)
    assert capacity(facts("m5.large"), few)["pods"] < capacity(facts("m5.large"), PLAIN)["pods"]
    assert kube_reserved(facts("m5.large"), few) == kube_reserved(facts("m5.large"), PLAIN)


@pytest.mark.parametrize(("branch", "told"), [(9, {"vpc.amazonaws.com/pod-eni": 9}), (0, {})])
def test_a179_branch_interfaces_where_the_table_has_some(branch: int, told: dict[str, int]) -> None:
    found = capacity(facts("m5.large"), PLAIN, branch)
    assert {key: amount for key, amount in found.items() if key.endswith("pod-eni")} == told


@pytest.mark.parametrize(
    ("manufacturer", "resource"),
    [("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi"), ("nvidia", "")],
)
def test_a180_gpus_are_summed_by_their_manufacturers_exact_name(manufacturer: str, resource: str) -> None:
    devices = tuple(Device(name=name, manufacturer=manufacturer, count=count) for name, count in (("a", 2), ("b", 3)))
    found = capacity(replace(facts("m5.large"), gpus=devices), PLAIN)
    kinds = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")
    assert {key: found[key] for key in kinds if key in found} == ({resource: 5} if resource else {})


def test_a181_neurons_are_summed_and_cores_are_those_of_the_first_device() -> None:
    devices = (Device(name="a", manufacturer="", count=2, cores=4), Device(name="b", manufacturer="", count=3, cores=8))
    found = capacity(replace(facts("m5.large"), neurons=devices), PLAIN)
    assert (found["aws.amazon.com/neuron"], found["aws.amazon.com/neuroncore"]) == (5, 8)


@pytest.mark.parametrize(
    ("interfaces", "count"),
    [
        ((), 4),
        ((Interface(0, 0),), 0),
        ((Interface(0, 0), Interface(0, 1, efa_only=True), Interface(1, 1, efa_only=True)), 2),
    ],
)
def test_a182_efa_interfaces_are_those_of_the_class_where_it_names_any(
    interfaces: tuple[Interface, ...], count: int
) -> None:
    found = capacity(replace(facts("m5.large"), efa=4), NodeSettings(interfaces=interfaces))
    assert found.get(EFA, 0) == count


def test_a183_addresses_are_a_resource_on_windows_alone() -> None:
    resource = "vpc.amazonaws.com/PrivateIPv4Address"
    assert capacity(facts("m5.large"), NodeSettings(family="Windows2019"))[resource] == 9
    assert resource not in capacity(facts("m5.large"), PLAIN)
    assert resource not in capacity(facts("m6g.large"), NodeSettings(family="Windows2019"))


@pytest.mark.parametrize(
    ("cores", "milli"),
    [(1, 60), (2, 70), (3, 75), (4, 80), (5, 82), (6, 85), (8, 90), (96, 310)],
)
def test_a184_cpu_for_the_kubelet_by_tiers_in_whole_milli(cores: int, milli: int) -> None:
    """6 %, 1 %, twice 0.5 %, then 0.25 % of a core."""
    assert kube_reserved(replace(facts("m5.large"), vcpus=cores), PLAIN)["cpu"] == milli


def test_a184_memory_for_the_kubelet_by_pods_and_a_gibibyte_of_disk() -> None:
    reserved = kube_reserved(facts("m5.large"), PLAIN)
    assert (reserved["memory"], reserved["ephemeral-storage"]) == ((11 * 29 + 255) * MI, GI)


def test_a185_nothing_is_reserved_for_the_system_but_what_the_class_says() -> None:
    given = {"cpu": 100, "memory": 300 * MI, "pid": 10}
    plain, more = overhead(facts("m5.large"), PLAIN), overhead(facts("m5.large"), NodeSettings(system_reserved=given))
    assert {key: more[key] - plain.get(key, 0) for key in more if more[key] != plain.get(key, 0)} == given


def test_a187_allocatable_is_what_is_left() -> None:
    settings = NodeSettings(system_reserved={"cpu": 100}, eviction_hard={"memory.available": 500 * MI})
    kind = made("m5.large", settings)
    left = kind.allocatable()
    assert left["cpu"] == 2_000 - 70 - 100
    assert left["memory"] == kind.capacity["memory"] - 574 * MI - 500 * MI
    assert left["pods"] == kind.capacity["pods"]


def test_a187_reservations_beyond_all_bounds_can_be_recorded_and_leave_no_room() -> None:
    """Each of them is accepted (A-50), and 2^63 - 1 by itself."""
    whole = {"memory": LARGEST_AMOUNT}
    settings = NodeSettings(kube_reserved=whole, system_reserved=whole, eviction_hard={"memory.available": 1 << 60})
    found = made("m5.large", settings)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=InstanceType) == found
    assert -(1 << 63) <= found.allocatable()["memory"] < 0
