"""A NodeClaim expires at its own age, whatever stands in the way (D-131, D-132, L-240)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.record.decisions import LaunchInstance, TaintNode, TerminateInstance
from kerf.engine.record.observations import Observation
from tests.support.lives import PODS, claim_of, in_service, launched
from tests.support.world import World

MINUTE = 60_000
HOUR = 60 * MINUTE


def at_expiry(world: World) -> list[object]:
    claim = claim_of(world)
    assert claim.expire_after is not None
    due = claim.created + claim.expire_after
    assert world.after(due - 1 - world.now) == []
    assert world.runtime.next_due() == due
    return list(world.after(1))


def test_d132_w86_neither_budget_nor_do_not_disrupt_holds_it_and_nothing_is_replaced_first() -> None:
    world = in_service(expire_after=HOUR, budgets=(Budget("0"),))
    world.see(Observation(replace(world.pods["a"], node="n1", do_not_disrupt="true")))
    (taint,) = at_expiry(world)
    assert isinstance(taint, TaintNode)
    assert (claim_of(world).why, claim_of(world).deadline) == ("expired", None)
    assert sum(entry.type == "claim.requested" for entry in world.store.entries) == 1


def test_d132_the_pods_new_place_comes_from_the_provisioner() -> None:
    world = in_service(expire_after=HOUR)
    at_expiry(world)
    (launch,) = [intent for intent in world.after(1_000) if isinstance(intent, LaunchInstance)]
    assert len(world.runtime.state.facts.claims) == 2
    requested = [entry.payload for entry in world.store.entries if entry.type == "claim.requested"][-1]
    assert (requested.claim, len(requested.pods)) == (launch.claim, len(PODS))


def test_d131_the_claims_own_age_counts_and_not_what_the_pool_says_now() -> None:
    world = in_service(expire_after=HOUR)
    pool = world.runtime.state.facts.pools["default"]
    world.see(Observation(replace(pool, expire_after=None)))
    at_expiry(world)
    assert claim_of(world).why == "expired"


def test_d131_a_node_that_never_registered_expires_too() -> None:
    world = launched(expire_after=10 * MINUTE)
    (end,) = at_expiry(world)
    assert isinstance(end, TerminateInstance)
    assert claim_of(world).why == "expired"


def test_d131_never_disables_it() -> None:
    world = in_service(expire_after=None)
    assert world.after(10_000 * HOUR) == []
    assert claim_of(world).why == ""
