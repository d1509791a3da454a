"""Pods of an interrupted node stay until their next place is up, as long as the notice allows (docs/differences.md)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import DAEMONSET, Owner, PodShape
from kerf.engine.record.decisions import EvictPod, Intent, LaunchInstance
from kerf.engine.record.observations import ClocksDiffer, InterruptionSeen, NodeClaimDeletionSeen, Observation
from tests.support.lives import PODS, in_service, show_taint
from tests.support.world import World

SECOND = "aws:///us-west-2a/i-2"


def interrupted(
    *,
    grace: int | None = 0,
    kind: str = "spot_interrupted",
    late: int = 0,
    keep: bool = True,
    owner: Owner | None = None,
) -> World:
    """Pod `a` is alone on `n1`, whose interruption was announced `late` ms ago; the drain has just begun."""
    world = in_service()
    if not keep:
        world.settings = replace(world.settings, keep_until_replaced=False)
        world.runtime = world.start()
    for name in PODS[1:]:
        world.gone(name)
    shape = PodShape(requests={"memory": 1 << 30}, grace=grace)
    digest, _ = content(shape)
    world.pods["a"] = replace(world.pods["a"], shape=digest, owner=owner)
    world.see(Observation(world.pods["a"], {digest: shape}))
    world.see(Observation(InterruptionSeen("m-1", kind, "i-1", sent=world.now - late)))
    world.answer_all()
    show_taint(world)
    return world


def evicts(intents: list[Intent]) -> list[str]:
    return [intent.name for intent in intents if isinstance(intent, EvictPod)]


def last(world: World) -> list[str]:
    return evicts([intent for _, intent in world.intents])


def replacement(world: World) -> None:
    """The plan's new node is on its way."""
    world.after(1_000)
    ((ref, order),) = [(r, i) for r, i in world.intents if isinstance(i, LaunchInstance)]
    world.answer_launch(ref, order, "i-2")


def test_a_pod_leaves_when_its_next_node_is_in_service() -> None:
    world = interrupted()
    assert last(world) == []
    replacement(world)
    world.node("n2", SECOND)
    world.answer_all()
    world.node("n2", SECOND, registered="true")
    world.answer_all()
    assert world.see(Observation(replace(world.pods["a"], started=world.now))) == [], "it has registered, and no more"
    assert last(world) == []
    world.node("n2", SECOND, registered="true", initialized="true")
    assert last(world) == ["a"]


@pytest.mark.parametrize(("grace", "left"), [(0, 60), (30, 60), (None, 60), (90, 105)])
def test_it_leaves_in_any_case_with_a_minute_left_or_what_it_needs_and_a_margin(grace: int | None, left: int) -> None:
    world = interrupted(grace=grace)
    begun = world.now
    replacement(world)
    assert evicts(world.after((120 - left) * 1_000 - 1 - (world.now - begun))) == []
    assert evicts(world.after(1)) == ["a"]


def test_the_notice_counts_from_when_it_was_sent() -> None:
    assert last(interrupted(late=60_000)) == ["a"]
    world = interrupted(late=59_000)
    assert last(world) == []
    assert evicts(world.after(1_000)) == ["a"]


def test_while_the_clocks_differ_it_leaves_at_once() -> None:
    """The cloud has timed the notice: nothing tells how much of it is left (ADR 9)."""
    world = interrupted()
    assert last(world) == []
    world.see(Observation(ClocksDiffer(jump=-600_000)))
    assert last(world) == ["a"]


def test_without_notice_or_the_setting_it_leaves_at_once() -> None:
    """As in the reference."""
    assert last(interrupted(kind="instance_terminated")) == ["a"]
    assert last(interrupted(keep=False)) == ["a"]
    world = in_service()
    world.see(Observation(NodeClaimDeletionSeen(next(iter(world.runtime.state.facts.claims)), "kubectl")))
    world.answer_all()
    show_taint(world)
    assert last(world) == list(PODS)


def test_room_on_a_node_in_service_lets_it_go_with_the_plan() -> None:
    world = interrupted()
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, name="own", provider_id="", labels={}, taints=())))
    assert last(world) == []
    assert evicts(world.after(1_000)) == ["a"]


def test_pods_that_need_no_other_place_do_not_wait() -> None:
    """Those of a DaemonSet."""
    assert last(interrupted(owner=Owner(DAEMONSET, "d"))) == ["a"]
