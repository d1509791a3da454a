"""S-57: whatever may change the place of a pod that waits leads to another pass, and nothing else does."""

from __future__ import annotations

import msgspec
import pytest

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Taint
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    InterruptionSeen,
    LaunchAnswered,
    LaunchError,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from tests.support.lives import PODS, PROVIDER, claim_of, in_service, types
from tests.support.world import Mi, World, pool

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
OWN = Node("own", provider_id="own-1", ready=True, allocatable={"cpu": 4_000, "memory": 4_096 * Mi, "pods": 20})


def beside_an_own_node(memory: int) -> World:
    """Pod `p` waits beside the node `own`, which kerf does not manage."""
    world = World()
    world.prepare()
    world.see(Observation(OWN))
    world.pending("p", memory=memory * Mi)
    world.after(1_000)
    return world


def test_a_replacement_that_was_refused_is_planned_again_while_the_pods_still_run() -> None:
    world = in_service(capacity_type="spot")
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", claim_of(world).instance)))
    world.after(1_000)
    ((ref, order),) = world.launches()
    offer = order.offers[0]
    refused = LaunchError("InsufficientInstanceCapacity", "", offer.instance_type, offer.zone, "spot")
    answer = LaunchAnswered(ref, order.claim, kind="insufficient-capacity", errors=(refused,))
    world.see(Observation(answer))
    (again,) = (i for i in world.after(1_000) if isinstance(i, LaunchInstance))
    assert again.offers[0] != offer


def test_pods_that_waited_for_an_empty_node_on_its_way_out_are_planned_again_at_once() -> None:
    world = in_service()
    world.pending("late", memory=64 * Mi)
    world.after(1_000)
    for name in PODS:
        world.gone(name)
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert any(isinstance(intent, LaunchInstance) for intent in world.after(1_000))


def test_pods_that_waited_for_a_node_that_is_cordoned_are_planned_again() -> None:
    world = in_service()
    world.pending("late", memory=64 * Mi)
    assert world.after(1_000) == []
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(CORDONED,))
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]


def test_pods_that_waited_for_a_node_that_is_gone_are_planned_again() -> None:
    world = beside_an_own_node(memory=1_024)
    assert world.intents == []
    world.see(Observation(ObjectGone("node", "own")))
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]


def test_pods_without_a_place_are_planned_again_when_a_daemonset_goes() -> None:
    world = World()
    world.prepare(pool())
    shape = PodShape(requests={"memory": 4_096 * Mi})
    digest, _ = content(shape)
    world.see(Observation(DaemonSet("ds", "default", "logs", digest), {digest: shape}))
    world.pending("p", memory=14_000 * Mi)
    assert world.after(1_000) == []
    world.see(Observation(ObjectGone("daemonset", "ds")))
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]


@pytest.mark.parametrize(("cpus", "again"), [(5, [LaunchInstance]), (3, []), (None, [])])
def test_s70_pods_that_waited_for_limits_are_planned_again_when_a_launch_gives_less_than_it_may(
    cpus: int | None, again: list[type]
) -> None:
    world = World()
    world.prepare(pool(limits={"cpu": cpus * 1_000} if cpus else None))
    world.pending("a", "b", host_ports=(HostPort(80),))
    world.after(1_000)
    (ref, order), *others = world.launches()
    assert len(others) == (0 if cpus else 1), "the first may still become a m5.xlarge, which leaves one cpu of five"
    world.answer_launch(ref, order)
    assert [type(intent) for intent in world.after(1_000)] == again


def test_what_is_seen_again_unchanged_leads_to_nothing() -> None:
    world = beside_an_own_node(memory=90_000)
    before = len(world.store.entries)
    world.see(Observation(msgspec.structs.replace(OWN)), Observation(pool()))
    world.prepare()
    world.after(60_000)
    assert "decision.made" not in types(world)[before:]


def test_s57_a_namespace_with_other_labels_opens_the_window_for_pods_that_wait() -> None:
    world = World()
    world.pending("a")
    world.after(10_000)
    assert not world.runtime.state.facts.batch_opened
    world.see(Observation(Namespace("default", {"team": "blue"})))
    assert world.runtime.state.facts.batch_opened == world.now
    world.after(10_000)
    world.see(Observation(Namespace("default", {"team": "blue"})))
    assert not world.runtime.state.facts.batch_opened
