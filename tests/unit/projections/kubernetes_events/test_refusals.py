"""Events of NodeClasses and spot roles that are missing (A-139, A-218, A-296, L-465)."""

from __future__ import annotations

import pytest

from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.record.observations import LaunchAnswered, LaunchError, NodeClassSeen, ObjectGone, Observation
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import WARNING, KubernetesEvent
from tests.support.events import told
from tests.support.lives import asked
from tests.support.world import NODE_CLASS, World, pool

UNRESOLVED, NO_ROLE = "FailedResolvingNodeClass", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
EC2 = f"{NODE_CLASS.group}/{NODE_CLASS.kind}"


def of_missing_class(name: str = "other", kind: str = NODE_CLASS.kind) -> NodePool:
    return NodePool(name, NodeClassRef(NODE_CLASS.group, kind, "nosuch"))


def unresolved(world: World, since: int = 0) -> list[KubernetesEvent]:
    return [event for event in told(world, since) if event.reason == UNRESOLVED]


def lasting(world: World) -> set[str]:
    found = DecisionEvents(world.runtime.state).lasting(world.now)
    return {event.about.name for event in found if event.reason == UNRESOLVED}


def planned(*pools: NodePool, node_classes: str = "") -> World:
    """Pods are planned for, with these NodePools beside the default one."""
    world = World(node_classes=node_classes)
    world.prepare()
    world.see(*map(Observation, pools))
    world.pending("a")
    world.after(1_000)
    return world


def test_a139_a_nodepool_whose_class_is_missing_is_told_when_pods_are_planned_for() -> None:
    world = planned(of_missing_class())
    (event,) = unresolved(world)
    assert (event.about.kind, event.about.name, event.type) == ("NodePool", "other", WARNING)
    assert event.message == "Failed resolving NodeClass: EC2NodeClass/nosuch is not there"
    assert lasting(world) == {"other"}


def test_a139_it_is_told_where_no_other_nodepool_serves_the_pods() -> None:
    world = World()
    world.see(Observation(of_missing_class()))
    world.pending("a")
    world.after(1_000)
    assert {event.about.name for event in unresolved(world)} == {"other"}


def test_a139_before_anything_is_planned_nobody_is_told() -> None:
    """When kerf starts, NodePools may come before what resolves their NodeClasses."""
    world = World()
    world.see(Observation(of_missing_class()))
    assert unresolved(world) == []
    assert lasting(world) == set()


def test_a139_a_nodepool_is_told_at_once_that_its_class_goes_and_for_as_long_as_it_is_gone() -> None:
    world = planned(pool("second"))
    assert unresolved(world) == []
    since = world.runtime.state.facts.position
    ref = NODE_CLASS
    world.see(Observation(NodeClassSeen(ref.group, ref.kind, ref.name, reason="Deleting")))
    going = unresolved(world, since)
    assert {event.about.name: event.message for event in going} == dict.fromkeys(
        ("default", "second"), "Failed resolving NodeClass: EC2NodeClass/default is being deleted"
    )
    since = world.runtime.state.facts.position
    world.see(Observation(ObjectGone("nodeclass", ref.key)))
    assert {event.about.name for event in unresolved(world, since)} == {"default", "second"}
    assert lasting(world) == {"default", "second"}
    world.see(Observation(NodeClassSeen(ref.group, ref.kind, ref.name, ready=True)))
    assert lasting(world) == set()


@pytest.mark.parametrize(("kind", "names"), [("AKSNodeClass", set()), ("EC2NodeClass", {"other"})])
def test_l48_the_class_of_another_controller_is_not_missed(kind: str, names: set[str]) -> None:
    world = planned(of_missing_class(kind=kind), node_classes=EC2)
    assert {event.about.name for event in unresolved(world)} == names


def test_a218_a_claim_whose_class_is_missing_at_its_launch_is_told() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    message = "EC2NodeClass/default is not there, or is being deleted"
    answer = LaunchAnswered(ref, order.claim, kind="insufficient-capacity", code="NodeClassNotFound", message=message)
    world.see(Observation(answer))
    found = {event.reason: event for event in told(world) if event.about.name == order.claim}
    assert found[UNRESOLVED].message == f"Failed resolving NodeClass: {message}"
    assert (found[UNRESOLVED].about.kind, found[UNRESOLVED].type) == ("NodeClaim", WARNING)
    assert "InsufficientCapacityError" in found, "L-152"


def spot_role_events(kind: str, code: str, *errors: LaunchError, instance: str = "") -> list[KubernetesEvent]:
    """What a claim is told of the spot role after this answer to its launch."""
    world = asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, instance, kind=kind, code=code, errors=errors)))
    return [event for event in told(world) if event.reason == "SpotSLRCreationFailed"]


SPOT = LaunchError(NO_ROLE, "not permitted", "m5.large", "us-west-2a", "spot")


def test_a296_a_claim_is_told_that_spot_has_no_role() -> None:
    (event,) = spot_role_events("insufficient-capacity", "InsufficientCapacity", SPOT, SPOT)
    assert (event.about.kind, event.type) == ("NodeClaim", WARNING)
    assert NO_ROLE in event.message
    assert "create-service-linked-role" in event.message


def test_a296_it_is_told_beside_an_instance_and_where_the_call_itself_is_refused() -> None:
    assert spot_role_events("", "", SPOT, instance="i-1")
    assert spot_role_events("error", "SpotSLRCreationFailed")


def test_a296_other_refusals_and_reserved_offerings_tell_nothing_of_it() -> None:
    lacking = LaunchError("InsufficientInstanceCapacity", "none", "m5.large", "us-west-2a", "spot")
    reserved = LaunchError(NO_ROLE, "", "m5.large", "us-west-2a", "reserved")
    assert spot_role_events("insufficient-capacity", "InsufficientCapacity", lacking) == []
    assert spot_role_events("insufficient-capacity", "InsufficientCapacity", reserved) == []
