"""L-202, L-203, D-143, D-151, D-152: pods that are ending already when their node has to go."""

from __future__ import annotations

import msgspec

from kerf.engine.record.decisions import DeletePod, TerminateInstance
from kerf.engine.record.observations import NodeClaimDeletionSeen, Observation
from tests.support.lives import PODS, claim_of, in_service, show_taint
from tests.support.world import World
from tests.support.worlds.drain import drain, evicted, forced, put, serving

GRACE = 300_000


def one_pod_left(ends_in: int) -> World:
    """Pod `a` is the last on the draining node and is deleted `ends_in` ms after the drain began."""
    world = in_service(termination_grace_period=GRACE)
    for name in PODS[1:]:
        world.gone(name)
    world.pods["a"] = msgspec.structs.replace(world.pods["a"], deleting=world.now + ends_in)
    world.see(Observation(world.pods["a"]))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    return world


def test_d151_a_pod_that_would_end_after_the_deadline_is_made_to_end_by_it_at_once() -> None:
    world = one_pod_left(ends_in=3_600_000)
    ((_, forced),) = world.intents
    assert isinstance(forced, DeletePod)
    assert forced.grace == GRACE // 1_000


def test_a_pod_that_ends_in_time_is_left_alone() -> None:
    assert one_pod_left(ends_in=GRACE).intents == []


def test_l202_a_pod_that_does_not_end_is_awaited_for_a_minute_and_no_longer() -> None:
    world = one_pod_left(ends_in=GRACE)
    assert world.after(GRACE + 60_000) == []
    assert world.runtime.next_due() == world.now + 1
    assert [type(intent) for intent in world.after(1)] == [TerminateInstance]


def test_l202_a_forced_pod_that_does_not_end_is_not_awaited_longer() -> None:
    world = one_pod_left(ends_in=GRACE + 1_000)
    world.after(GRACE + 30_000)
    world.answer_all()  # a minute more until this may be asked again
    world.after(31_000)
    assert world.runtime.next_due() == world.now + 1
    assert [type(intent) for intent in world.after(1)] == [TerminateInstance]


def test_d143_a_pod_that_goes_by_force_does_not_hold_back_the_groups_after_it() -> None:
    """`slow` is protected and has 200 s to end in; `critical` comes after it, and has all the time that is left."""
    world = serving(termination_grace_period=GRACE)
    slow = put(world, "slow", grace=200, do_not_disrupt="true")
    put(world, "critical", grace=0, critical=True)
    drain(world)
    world.after(GRACE - 200_000)
    assert (forced(world), evicted(world)) == ({}, []), "until then it waits for its group (D-147)"
    world.after(1)
    assert (forced(world), evicted(world)) == ({"slow": 199}, ["critical"])
    world.answer_all()
    world.see(Observation(msgspec.structs.replace(slow, deleting=world.now + 199_000)))
    put(world, "late", grace=0, critical=True)
    assert evicted(world) == ["late"], "it is ending by force: still nobody waits for it"
