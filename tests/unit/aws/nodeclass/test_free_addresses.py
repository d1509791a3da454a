"""Which subnet a launch uses, by addresses that are free and that launches under way will use (A-232, A-233)."""

from __future__ import annotations

from kerf.adapters.aws.launch.fleet import Group, least_pods
from kerf.adapters.aws.nodeclass.free_addresses import FreeAddresses, Taken
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import ResolvedSubnet
from kerf.engine.record.decisions import Offer

SUBNETS = (ResolvedSubnet("a-1", "a"), ResolvedSubnet("a-2", "a"), ResolvedSubnet("b-1", "b"))


def take(addresses: FreeAddresses, *zones: str) -> Taken:
    return addresses.take(SUBNETS, dict.fromkeys(zones, 10))


def told(**free: int) -> FreeAddresses:
    addresses = FreeAddresses()
    addresses.told({name.replace("_", "-"): count for name, count in free.items()})
    return addresses


def test_a_232_the_subnet_with_most_addresses_in_each_zone_and_the_first_of_equals() -> None:
    assert take(told(a_1=5, a_2=5, b_1=0), "a", "b").subnets == {"a": "a-1", "b": "b-1"}
    assert take(told(a_1=5, a_2=6), "a").subnets == {"a": "a-2"}
    assert take(FreeAddresses(), "a", "b").subnets == {"a": "a-1", "b": "b-1"}


def test_a_232_of_equals_the_one_that_comes_first_in_the_status() -> None:
    addresses = told(a_1=10, a_2=20)
    assert take(addresses, "a").subnets == {"a": "a-2"}
    assert take(addresses, "a").subnets == {"a": "a-2"}, "ten are left of both, and A-96 names it first"


def test_a_233_what_launches_take_counts_until_ec2_tells_of_the_subnet() -> None:
    addresses = told(a_1=15, a_2=14, b_1=9)
    assert [take(addresses, "a").subnets["a"] for _ in range(2)] == ["a-1", "a-2"]
    assert addresses.known() == {"a-1": 15, "a-2": 14, "b-1": 9}
    addresses.told({"b-1": 9})
    assert take(addresses, "a").subnets == {"a": "a-1"}, "of equal -> the first: both still count"
    addresses.told({"a-2": 6})
    assert take(addresses, "a").subnets == {"a": "a-2"}


def test_a_233_the_zones_that_were_not_used_get_their_addresses_back() -> None:
    addresses = told(a_1=15, a_2=14, b_1=9)
    addresses.give_back(take(addresses, "a", "b"), "b")
    assert take(addresses, "a").subnets == {"a": "a-1"}
    assert take(addresses, "a").subnets == {"a": "a-2"}


def test_a_233_a_subnet_that_ec2_told_of_meanwhile_gets_nothing_back() -> None:
    addresses = told(a_1=15, a_2=14)
    before = take(addresses, "a")
    addresses.told({"a-1": 15})
    assert take(addresses, "a").subnets == {"a": "a-1"}
    addresses.give_back(before, "")
    assert take(addresses, "a").subnets == {"a": "a-2"}


def test_a_293_a_subnet_without_addresses_comes_last() -> None:
    addresses = told(a_1=15, a_2=1)
    addresses.used_up("a-1")
    assert take(addresses, "a").subnets == {"a": "a-2"}


def test_a_233_a_zone_counts_by_the_types_that_are_offered_in_it() -> None:
    """Also where a smaller type is offered in another zone."""
    groups = [
        Group(InstanceType("large", {"pods": 58}), "ami", (Offer("large", "a", 1.0), Offer("large", "b", 1.0))),
        Group(InstanceType("small", {"pods": 8}), "ami", (Offer("small", "b", 0.1), Offer("small", "c", 0.1))),
    ]
    assert least_pods(groups) == {"a": 58, "b": 8, "c": 8}
    addresses = told(a_1=100, a_2=50, b_1=9)
    taken = addresses.take(SUBNETS, least_pods(groups))
    assert take(addresses, "a").subnets == {"a": "a-2"}, "42 are left of a-1"
    addresses.give_back(taken, "b")
    assert take(addresses, "a").subnets == {"a": "a-1"}
