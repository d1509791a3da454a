"""Another node for a pod whose node cannot take it: not before ten seconds after the one before (S-57)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import Decision, LaunchInstance, ProvisionResult
from kerf.engine.record.observations import NodeClassSeen, Observation
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.lives import PODS, PROVIDER, UNREGISTERED, asked, launched
from tests.support.world import NODE_CLASS, Mi, World, pool

SPOILT = Taint("example.com/mine", "NoExecute")


def spoilt(*taints: Taint) -> World:
    """Somebody has put a taint on the node before it was registered. It is initialized, 0.6 s after the launch was
    asked for, and its pods wait."""
    taints = taints or (SPOILT,)
    world = launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED, *taints))
    world.answer_all()
    world.after(600)
    world.node("n1", PROVIDER, registered="true", taints=taints)
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=taints)
    return world


def result(world: World) -> ProvisionResult:
    found = [e.payload.result for e in world.store.entries if isinstance(e.payload, Decision)]
    return [provisioned for provisioned in found if isinstance(provisioned, ProvisionResult)][-1]


def orders(world: World) -> list[LaunchInstance]:
    return [order for _, order in world.launches()]


def test_s57_a_spoilt_node_is_replaced_ten_seconds_after_it_was_asked_for() -> None:
    """Each node with the taint was a reason to plan, each plan one for a node: 35 of them in 48 s (the reference's
    end-to-end suite, "should not produce a runaway scale-up")."""
    world = spoilt()
    world.after(1_000)  # the window closes
    (claim,) = world.runtime.state.facts.claims
    assert not orders(world)
    (left,) = result(world).unplaced
    assert sorted(left.pods) == [f"uid-{name}" for name in PODS]
    assert [(reason.code, reason.params) for reason in left.reasons] == [
        (SchedulingCode.LAUNCHED_TAINTED, {"claim": claim, "taints": ["example.com/mine:NoExecute"]})
    ]
    world.after(8_000)
    assert not orders(world)
    world.after(400)  # ten seconds after it was asked for
    assert len(orders(world)) == 1


def test_s57_other_pods_get_a_node_at_once() -> None:
    world = spoilt()
    world.pending("new", memory=100 * Mi)
    world.after(1_000)
    (order,) = orders(world)
    (planned,) = result(world).claims
    assert (planned.name, planned.pods) == (order.claim, ("uid-new",))


def test_s57_a_node_that_is_gone_is_replaced_at_once() -> None:
    world = spoilt()
    world.instance("i-1", "gone")
    world.node("n1", PROVIDER, ready=False, registered="true", initialized="true", taints=(SPOILT,))
    world.after(1_000)
    assert len(orders(world)) == 1


def spoil(world: World, ref: str, order: LaunchInstance, number: int) -> None:
    """The launch succeeds, and somebody puts the taint on its node."""
    instance, name = f"i-{number}", f"n{number}"
    world.answer_launch(ref, order, instance)
    provider = f"aws:///us-west-2a/{instance}"
    world.node(name, provider, taints=(UNREGISTERED, SPOILT))
    world.answer_all()
    world.node(name, provider, registered="true", taints=(SPOILT,))
    world.answer_all()
    world.node(name, provider, registered="true", initialized="true", taints=(SPOILT,))


def test_s57_each_further_node_in_vain_doubles_the_pause() -> None:
    """A taint that comes onto each new node launched 270 of them in three hours."""
    world = asked()
    pauses, asked_for = [], {order.claim for _, order in world.launches()}
    for number in range(10):
        ((ref, order),) = [found for found in world.launches() if found[1].claim in asked_for]
        spoil(world, ref, order, number)
        seconds = 0
        while not (new := {order.claim for order in orders(world)} - asked_for):
            world.after(1_000)
            seconds += 1
        pauses.append(seconds)
        asked_for = new
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]


def test_s57_a_pod_that_was_bound_begins_anew() -> None:
    world = spoilt()
    assert world.runtime.state.facts.launched_for["uid-a"].times == 1
    world.bind("a", "n1")
    assert "uid-a" not in world.runtime.state.facts.launched_for


@pytest.mark.parametrize("change", ["NodePool", "another NodePool", "NodeClass"])
def test_s57_what_may_end_it_ends_the_pause(change: str) -> None:
    """A taint that somebody takes off again belongs among the startup taints: whoever adds it there waits for no pause
    to end."""
    world = spoilt()
    world.after(1_000)
    assert not orders(world)
    if change == "NodeClass":
        seen: Any = NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True, generation=2)
    else:
        seen = pool("default" if change == "NodePool" else "other", startup_taints=(SPOILT,))
    world.see(Observation(seen))
    world.after(1_000)
    assert len(orders(world)) == 1


def test_s57_soft_taints_are_not_told() -> None:
    """kube-scheduler binds pods in spite of them, so they are no cause."""
    world = spoilt(SPOILT, Taint("example.com/soft", "PreferNoSchedule"))
    world.after(1_000)
    (left,) = result(world).unplaced
    assert [reason.params["taints"] for reason in left.reasons] == [["example.com/mine:NoExecute"]]
