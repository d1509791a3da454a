"""Nodes whose pods have devices: these are free once the node is thought away (D-90, S-198)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, what_if
from kerf.engine.model.kubernetes.devices import (
    AllocatedDevice,
    Allocation,
    Device,
    DeviceClass,
    DeviceFacts,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from tests.support.scenarios.clusters import cluster, node, pod

DRIVER = "gpu.example.com"


def published(name: str) -> ResourceSlice:
    return ResourceSlice(name, DRIVER, name, node=name, owner=name, devices=(Device("g0"),))


def held(name: str, pool: str) -> ResourceClaim:
    allocation = Allocation((AllocatedDevice(DRIVER, pool, "g0"),))
    return ResourceClaim("default", name, (DeviceRequest("r", "gpu"),), allocation=allocation, pods=(f"uid-{name}",))


def two_nodes(*claims: ResourceClaim) -> Cluster:
    """Pod `a` on the node `old` with a GPU, and the node `new`, which has one, too."""
    made = cluster(node("old", "small", pod("a", resource_claims=("gpu=a",))), node("new", "small"))
    facts = DeviceFacts(
        {claim.key: claim for claim in claims},
        {"gpu": DeviceClass("gpu")},
        {name: published(name) for name in ("old", "new")},
    )
    return replace(made, base=replace(made.base, devices=facts, settings=Settings(ignore_dra_requests=False)))


def without(name: str, given: Cluster) -> Plan:
    return plan(what_if(given, frozenset([name]), respect_settling=False))


def test_d90_a_pod_takes_a_device_of_another_node_and_its_own_is_free() -> None:
    (placement,) = without("old", two_nodes(held("a", "old"))).placements
    assert (placement.node, placement.pods) == ("new", ("uid-a",))


def test_d90_a_pod_stays_where_no_other_device_is_free() -> None:
    planned = without("old", two_nodes(held("a", "old"), held("b", "new")))
    (unplaced,) = planned.unplaced
    assert (unplaced.pods, unplaced.reasons[0].code) == (("uid-a",), "devices")
