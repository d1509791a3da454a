"""Whether the nodes of a NodePool register (L-182…L-187, L-493, L-494)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepool_health import PoolHealth, after
from kerf.engine.record.observations import LaunchAnswered, NodeClassSeen, ObjectGone, Observation
from tests.support.lives import asked, in_service, launched
from tests.support.world import NODE_CLASS, World, pool

MINUTE = 60_000


def health(world: World) -> PoolHealth:
    return world.runtime.state.facts.health["default"]


def outcomes(*results: bool) -> list[str]:
    """The status after each outcome."""
    found, known = [], PoolHealth()
    for result in results:
        known = after(known, result, 0, reason="RegistrationFailed")
        found.append(known.status)
    return found


def test_l182_one_lone_failure_says_nothing_and_two_of_four_are_too_many() -> None:
    assert outcomes(False, True) == ["Unknown", "True"]
    assert outcomes(False, False) == ["Unknown", "False"]
    assert outcomes(True, False, True, False) == ["True", "True", "True", "False"]


def test_l493_after_two_failures_the_third_success_is_the_one() -> None:
    assert outcomes(False, False, True, True, True) == ["Unknown", "False", "False", "False", "True"]


def test_l187_the_oldest_outcome_of_a_full_ring_goes() -> None:
    """Not the one at place 0, as the reference's prediction has it."""
    assert outcomes(True, True, True, False, True, True, True, False)[-1] == "True"


def test_l184_a_node_that_registers_is_a_success() -> None:
    world = in_service()
    assert (health(world).status, health(world).ring) == ("True", (True,))


def test_l184_two_nodes_that_never_register_make_the_pool_unhealthy() -> None:
    world = launched()
    world.after(15 * MINUTE)
    assert (health(world).status, health(world).ring) == ("Unknown", (False,))
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order, "i-2")
    world.after(15 * MINUTE)
    found = health(world)
    assert (found.status, found.reason, found.since) == ("False", "RegistrationFailed", world.now)
    assert "i-2" in found.message


def test_l184_a_launch_that_times_out_gives_its_own_reason() -> None:
    world = asked()
    for _ in range(2):
        ((ref, order),) = world.launches()
        world.see(Observation(LaunchAnswered(ref, order.claim, kind="error", code="InternalError", message="no")))
        world.runtime.state.facts.intents.clear()
        world.after(5 * MINUTE)
        world.after(1_000)
    assert health(world).ring.count(False) == 2
    assert (health(world).status, health(world).reason, health(world).message) == ("False", "InternalError", "no")


def test_l183_a_lack_of_capacity_does_not_count() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="insufficient-capacity")))
    assert health(world).ring == ()


def test_l494_an_edited_pool_starts_anew() -> None:
    world = in_service()
    edited = replace(world.runtime.state.facts.pools["default"], weight=5, generation=2)
    world.see(Observation(edited))
    assert (health(world).status, health(world).ring, health(world).since) == ("Unknown", (), world.now)


def test_l185_a_status_that_was_written_is_no_edit() -> None:
    world = in_service()
    world.see(Observation(replace(world.runtime.state.facts.pools["default"], ready=False, hash_version="v3")))
    assert health(world).status == "True"


def test_l185_an_edited_nodeclass_starts_its_pools_anew() -> None:
    world = in_service()
    world.see(Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, "other", ready=True, generation=9)))
    assert health(world).status == "True"
    seen = NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=False, reason="X")
    world.see(Observation(seen))
    assert health(world).status == "True"
    world.see(Observation(replace(seen, generation=2)))
    assert (health(world).status, health(world).ring) == ("Unknown", ())


def test_l183_outcomes_of_claims_of_an_earlier_pool_of_the_name_do_not_count() -> None:
    world = launched()
    world.after(1_000)
    world.see(Observation(replace(pool(), uid="another")))
    world.after(15 * MINUTE)
    assert health(world).ring == ()


def test_a_pool_that_is_gone_has_no_health() -> None:
    world = in_service()
    world.see(Observation(ObjectGone("nodepool", "default")))
    assert world.runtime.state.facts.health == {}
