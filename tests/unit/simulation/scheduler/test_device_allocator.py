"""How the simulated scheduler allocates devices, by Kubernetes' rules."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.simulation.scheduler.device_allocator import DeviceAllocator
from kerf.engine.model.kubernetes.devices import ALL, AllocatedDevice, Allocation, Device, ResourceClaim, ResourceSlice
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Taint
from kerf.engine.model.labels import ZONE
from tests.support.scenarios.device_problems import CLASS, DRIVER, ask, claim, gpu, published

HERE, THERE = Node("n1", labels={ZONE: "z1"}), Node("n2", labels={ZONE: "z2"})
IN_Z1 = NodeTerm((Expression(ZONE, "In", ("z1",)),))


def allocate(
    wanted: list[ResourceClaim], node: Node, *slices: ResourceSlice, others: tuple[ResourceClaim, ...] = ()
) -> list[Allocation] | None:
    return DeviceAllocator(slices, {"gpu": CLASS}, [*wanted, *others]).allocate(wanted, node)


def given(found: list[Allocation] | None) -> list[list[str]] | None:
    return None if found is None else [[device.device for device in one.devices] for one in found]


def test_a_nodes_devices_are_allocated_with_its_name() -> None:
    own = published("n1", gpu("g0"), gpu("g1"), node="n1")
    found = allocate([claim("c"), claim("d")], HERE, own)
    assert given(found) == [["g0"], ["g1"]]
    assert found is not None
    assert {allocation.terms for allocation in found} == {
        (NodeTerm(fields=(Expression("metadata.name", "In", ("n1",)),)),)
    }
    assert allocate([claim("c")], THERE, own) is None


def test_devices_of_the_network_say_where_they_can_be_used() -> None:
    found = allocate([claim("c")], HERE, published("net", gpu("g0"), terms=(IN_Z1,)))
    assert found is not None
    assert [allocation.terms for allocation in found] == [(IN_Z1,)]
    assert allocate([claim("c")], THERE, published("net", gpu("g0"), terms=(IN_Z1,))) is None
    anywhere = allocate([claim("c")], THERE, published("net", gpu("g0"), all_nodes=True))
    assert anywhere is not None
    assert [allocation.terms for allocation in anywhere] == [()]


def test_what_others_have_is_gone_and_what_a_claim_has_stays() -> None:
    own = published("n1", gpu("g0"), node="n1")
    term = NodeTerm(fields=(Expression("metadata.name", "In", ("n1",)),))
    held = claim("held", allocation=Allocation((AllocatedDevice(DRIVER, "n1", "g0"),), (term,)))
    assert allocate([claim("c")], HERE, own, others=(held,)) is None
    assert given(allocate([held], HERE, own)) == [["g0"]]
    assert allocate([held], THERE, own) is None


def test_all_needs_whole_pools_and_the_latest_generation_counts() -> None:
    old = published("n1", gpu("g0"), node="n1")
    new = replace(old, name="new", generation=2, count=2, devices=(gpu("g1"),))
    assert allocate([claim("c", ask(mode=ALL))], HERE, old, new) is None
    rest = replace(new, name="rest", devices=(gpu("g2"),))
    assert given(allocate([claim("c", ask(mode=ALL))], HERE, old, new, rest)) == [["g1", "g2"]]


def test_tainted_devices_and_those_that_only_are_looked_after() -> None:
    tainted: Device = replace(gpu("g0"), taints=(Taint("worn", "NoExecute"),))
    assert allocate([claim("c")], HERE, published("n1", tainted, node="n1")) is None
    whole = published("n1", gpu("g0"), node="n1")
    assert given(allocate([claim("look", ask(admin=True)), claim("c")], HERE, whole)) == [[], ["g0"]]
