"""When a claim is looked at again: at the moment at which its verdict changes, whatever else happens."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Taint
from tests.support.lives import PODS, PROVIDER, claim_of, decide, in_service, types

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


def test_d131_an_empty_claim_on_its_way_out_is_due_when_it_expires() -> None:
    world = in_service(expire_after=3_600_000)
    for name in PODS:
        world.gone(name)
    decide(world)
    assert claim_of(world).why == "empty"
    world.answer_all(ok=False, code="500")
    while claim_of(world).why == "empty" and world.now < claim_of(world).created + 3_600_000:
        due = world.runtime.next_due()
        assert due is not None
        world.after(due - world.now)
        world.answer_all(ok=False, code="500")
    assert claim_of(world).why == "expired"
    assert world.now == claim_of(world).created + 3_600_000
    assert types(world).count("claim.reason-raised") == 1


def test_a_node_is_empty_once_the_pods_that_it_awaited_are_planned_elsewhere() -> None:
    world = in_service(consolidate_after=0)
    world.pending("late", memory=64 * 2**20)
    world.after(1_000)
    for name in PODS:
        world.gone(name)
    world.after(10_000)
    assert claim_of(world).verdict == "awaiting-pods"
    world.after(30_000)  # the nomination is over (L-282)
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(CORDONED,))
    world.pending("other", memory=64 * 2**20)
    world.after(1_000)
    decide(world)
    assert [claim.why for claim in world.runtime.state.facts.claims.values() if claim.node == "n1"] == ["empty"]
