"""What waiting pods wait for: of equal pods one that takes the place of another leaves it its own."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import HostPort
from tests.support.world import World

ONE_A_NODE = (HostPort(80),)


def launch(world: World, *instances: str) -> None:
    world.after(1_000)
    for (ref, order), instance in zip(world.launches(), instances, strict=True):
        world.answer_launch(ref, order, instance)


def two_coming() -> World:
    """Pods a and b wait for the nodes `n1` and `n2`, of which the first is there."""
    world = World()
    world.prepare()
    world.pending("a", "b", host_ports=ONE_A_NODE)
    launch(world, "i-1", "i-2")
    facts = world.runtime.state.facts
    world.node("n1", facts.claims[facts.targets["uid-a"]].provider_id)
    return world


def test_a_pod_that_takes_the_place_of_a_pod_like_it_leaves_it_its_own() -> None:
    world = two_coming()
    facts, waiting_for = world.runtime.state.facts, world.runtime.state.indexes.waiting_for
    first, second = facts.targets["uid-a"], facts.targets["uid-b"]
    assert first != second
    world.bind("b", "n1")
    assert facts.targets == {"uid-a": second}
    assert {claim: list(pods) for claim, pods in waiting_for.items() if pods} == {second: ["uid-a"]}


def test_a_pod_that_goes_to_its_own_node_changes_no_other() -> None:
    world = two_coming()
    facts = world.runtime.state.facts
    second = facts.targets["uid-b"]
    world.bind("a", "n1")
    assert facts.targets == {"uid-b": second}


def test_a_pod_of_another_kind_leaves_no_place_that_may_not_suit() -> None:
    world = two_coming()
    facts = world.runtime.state.facts
    world.pending("c", cpu=100, host_ports=ONE_A_NODE)
    launch(world, "i-3")
    first, second, third = (facts.targets[f"uid-{name}"] for name in "abc")
    assert third not in (first, second)
    world.bind("c", "n1")
    assert facts.targets == {"uid-a": first, "uid-b": second}


def test_no_place_is_left_where_the_claim_is_going() -> None:
    world = two_coming()
    facts = world.runtime.state.facts
    first, second = facts.targets["uid-a"], facts.targets["uid-b"]
    facts.claims[second].state = "draining"
    world.bind("b", "n1")
    assert facts.targets == {"uid-a": first}
