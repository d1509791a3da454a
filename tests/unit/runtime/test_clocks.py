"""Clocks that are wrong: time in the record, and what waits while clocks differ (ADR 9)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Decision, DeletePod, LaunchInstance, TaintNode
from kerf.engine.record.observations import (
    ClocksAgree,
    ClocksDiffer,
    InterruptionSeen,
    NodeClaimDeletionSeen,
    Observation,
    TimeSetBack,
)
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.replay.verify.verify import verify
from tests.support.lives import claim_of, decide, half_empty, in_service, show_taint
from tests.support.world import World, pool

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
DIFFER = Observation(ClocksDiffer(jump=31 * DAY))
AGREE = Observation(ClocksAgree())


def set_backs(world: World) -> list[int]:
    """By how much time was set back (ms)."""
    entries = (entry for entry in world.store.entries if isinstance(entry.payload, TimeSetBack))
    return [entry.payload.was - entry.at for entry in entries]


def sound(world: World) -> bool:
    """Whether the record is decided again to the byte, and the fold is the live state."""
    again = snapshot.digest(load(world.store)) == snapshot.digest(world.runtime.state)
    return again and verify(world.store).exit_code == 0


# ── a record that is ahead of the clock ────────────────────────────────────────────────────────────────────────────


def test_what_was_to_go_by_force_tomorrow_is_not_deleted_today() -> None:
    """A process decides it by a clock that is ahead, and dies. The next one has the right time."""
    world = half_empty(expire_after=60 * MINUTE, termination_grace_period=30 * MINUTE, consolidation_policy="WhenEmpty")
    world.after(60 * MINUTE)
    show_taint(world)
    world.now += DAY
    world.see()
    forced = [ref for ref, intent in world.intents if isinstance(intent, DeletePod)]
    assert forced
    world.now -= DAY
    world.runtime = world.start()
    assert not {*forced}.intersection(ref for ref, _ in world.runtime.unanswered())
    assert not {*forced}.intersection(world.runtime.state.facts.intents)
    assert not [intent for _ in range(30) for intent in world.after(MINUTE) if isinstance(intent, DeletePod)]
    assert [type(intent) for intent in world.after(MINUTE)].count(DeletePod) == len(forced)
    assert sound(world)


def test_a_turn_of_tomorrow_holds_no_pod_back_once_the_clock_is_right() -> None:
    world = World()
    world.prepare()
    world.now += DAY
    world.pending("of-tomorrow")
    world.now -= DAY
    world.pending("a")
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]
    assert set_backs(world) == [DAY]
    assert sound(world)


def test_a_process_that_finds_its_record_ahead_goes_on_from_the_clock() -> None:
    world = World()
    world.prepare()
    world.now += DAY
    world.pending("of-tomorrow")
    world.now -= DAY
    world.runtime = world.start()
    assert set_backs(world) == [DAY]
    assert world.runtime.state.facts.at == world.now
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]
    assert sound(world)


def test_a_record_a_second_ahead_waits_for_the_clock() -> None:
    world = World()
    world.prepare()
    world.now -= 1_000
    world.pending("a")
    assert set_backs(world) == []
    assert world.store.entries[-1].at == world.now + 1_000


def test_ages_are_what_they_were_when_time_is_set_back() -> None:
    """What a clock that was ahead has measured moves back with it; what was measured before stays."""
    world = in_service(expire_after=30 * DAY)
    begun = claim_of(world).created
    world.now += DAY
    world.see(Observation(InterruptionSeen("m", "spot", "i-unknown")))
    world.gone("a")
    world.after(10 * MINUTE)
    ahead = claim_of(world).last_pod_event
    world.now -= DAY
    world.pending("b2")
    claim = claim_of(world)
    assert (claim.created, claim.last_pod_event) == (begun, ahead - DAY)
    assert sound(world)


def test_a_node_is_consolidated_as_soon_as_ever_after_time_was_set_back() -> None:
    """Its NodePool's consolidateAfter, the pause between passes and the second look are measured as before."""
    world = half_empty()
    world.now += DAY
    decide(world)
    world = half_empty()
    world.now += DAY
    world.gone("d")
    world.now -= DAY
    world.see()
    assert decide(world)


# ── clocks in doubt ────────────────────────────────────────────────────────────────────────────────────────────────


def test_d131_nothing_expires_while_the_clocks_differ() -> None:
    world = in_service(expire_after=30 * DAY)
    world.now += 31 * DAY
    assert world.see(DIFFER) == []
    assert claim_of(world).why == ""
    assert world.runtime.next_due() is None or world.runtime.next_due() > world.now  # type: ignore[operator]
    assert [type(intent) for intent in world.see(AGREE)] == [TaintNode]
    assert claim_of(world).why == "expired"
    assert sound(world)


def test_d131_a_clock_that_comes_back_has_let_nothing_expire() -> None:
    world = in_service(expire_after=30 * DAY)
    world.now += 31 * DAY
    world.see(DIFFER)
    world.now -= 31 * DAY
    world.see(AGREE)
    world.after(MINUTE)
    assert claim_of(world).why == ""
    assert sound(world)


def test_nothing_is_consolidated_while_the_clocks_differ() -> None:
    world = half_empty()
    world.see(DIFFER)
    assert decide(world) == []
    assert world.runtime.state.facts.moves == {}
    world.see(AGREE)
    assert decide(world)
    assert sound(world)


def test_a_proposed_move_waits_while_the_clocks_differ() -> None:
    world = half_empty()
    world.after(10_000)
    world.after(2_000)
    assert [underway.started for underway in world.runtime.state.facts.moves.values()] == [False]
    world.see(DIFFER)
    assert world.after(30_000) == []
    assert [underway.started for underway in world.runtime.state.facts.moves.values()] == [False]
    world.see(AGREE)
    started = [entry for entry in world.store.entries if isinstance(entry.payload, Decision)]
    assert any(entry.payload.decider == "move" for entry in started)


def unready(world: World) -> None:
    node = world.runtime.state.facts.nodes["n1"]
    world.see(Observation(replace(node, ready=False, ready_since=world.now)))


def repairing() -> World:
    world = in_service()
    settings = replace(world.settings, node_repair=True)
    world.settings = settings
    world.runtime = world.start()
    unready(world)
    for number in range(4):  # one of five may be repaired
        world.see(Observation(Node(f"other-{number}", ready=True, labels={"karpenter.sh/nodepool": "default"})))
    return world


@pytest.mark.parametrize("differ", [False, True])
def test_d134_nothing_is_repaired_while_the_clocks_differ(differ: bool) -> None:
    world = repairing()
    if differ:
        world.see(DIFFER)
    world.after(31 * MINUTE)
    assert claim_of(world).why == ("" if differ else "unhealthy")
    if differ:
        world.see(AGREE)
        assert claim_of(world).why == "unhealthy"


def test_pods_get_nodes_while_the_clocks_differ() -> None:
    world = World()
    world.prepare()
    world.see(DIFFER)
    world.pending("a")
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]


@pytest.mark.parametrize("cause", ["interrupted", "deleted"])
def test_what_leaves_no_choice_goes_on_while_the_clocks_differ(cause: str) -> None:
    world = in_service(expire_after=30 * DAY)
    world.see(DIFFER)
    claim = claim_of(world)
    seen = {
        "interrupted": InterruptionSeen("m", "spot-interruption", claim.instance),
        "deleted": NodeClaimDeletionSeen(claim.name, "kubectl"),
    }
    world.see(Observation(seen[cause]))
    assert claim_of(world).why == cause
    world.answer_all()
    assert claim_of(world).state in ("tainted", "draining")


def test_who_asks_is_told_that_it_stays_for_the_clocks() -> None:
    from kerf.engine.disruption.forced.forced_disruption import expired

    world = in_service(expire_after=MINUTE)
    world.see(DIFFER)
    finding = expired(claim_of(world), world.runtime.state, world.now + DAY)
    assert (finding.remove, finding.due, finding.reason.code) == (False, 0, DisruptionCode.CLOCKS_DIFFER)


# ── a process that begins in doubt ─────────────────────────────────────────────────────────────────────────────────


def begin(world: World, *, server: int, wall: int) -> None:
    """Another process takes office, whose wall clock differs from the API server's: both as they are to the record."""
    at = world.runtime.state.facts.at
    world.runtime = Runtime(
        world.store,
        holder="b",
        settings=world.settings,
        record="record-1",
        engine="test",
        now=at + server,
        clocks=ClocksDiffer(skew=wall - server),
    )
    world.now = world.runtime.state.facts.at


@pytest.mark.parametrize(
    ("server", "wall", "goes_on"),
    [
        (MINUTE, 31 * DAY, MINUTE),
        (31 * DAY, MINUTE, MINUTE),
        (MINUTE, -DAY, MINUTE),
        (-DAY, MINUTE, MINUTE),
        (DAY, -MINUTE, 0),
        (-MINUTE, DAY, 0),
        (-DAY, MINUTE - DAY, MINUTE - DAY),
        (MINUTE - DAY, -DAY, MINUTE - DAY),
    ],
)
def test_a_process_that_begins_in_doubt_believes_no_clock_against_two(server: int, wall: int, goes_on: int) -> None:
    """Of the record, the API server and the wall clock it takes the time in the middle, or the one that is a little
    after the record's, if the third is far before it."""
    world = in_service(expire_after=30 * DAY)
    was = world.runtime.state.facts.at
    begin(world, server=server, wall=wall)
    assert world.runtime.state.facts.at == was + goes_on
    assert world.runtime.state.facts.clocks_differ == was + goes_on
    assert set_backs(world) == ([-goes_on] if goes_on < 0 else [])
    assert claim_of(world).why == ""
    assert sound(world)


def draining(world: World) -> World:
    """The node of a world with a grace period of ten minutes is drained. Pods cannot be evicted."""
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    assert claim_of(world).drain_started
    return world


def leaving(world: World) -> NodeClaim:
    (claim,) = (claim for claim in world.runtime.state.facts.claims.values() if claim.why)
    return claim


def test_l189_a_deadline_stays_when_time_is_set_back_to_after_the_taint() -> None:
    """It was counted from a time that was right: moved back, it would leave the pods less than their grace period."""
    world = draining(in_service(termination_grace_period=10 * MINUTE))
    deadline = world.now + 10 * MINUTE
    assert leaving(world).deadline == deadline
    world.now += 5 * MINUTE
    world.pending("b2")
    world.now -= 4 * MINUTE
    world.pending("c2")
    assert set_backs(world) == [4 * MINUTE]
    assert leaving(world).deadline == deadline
    assert sound(world)


def test_l189_a_deadline_goes_back_with_the_time_that_it_was_counted_from() -> None:
    world = in_service(termination_grace_period=10 * MINUTE)
    world.now += DAY
    draining(world)
    world.now -= DAY
    world.pending("b2")
    assert leaving(world).deadline == world.now + 10 * MINUTE
    assert sound(world)


def test_l189_pods_keep_their_grace_period_when_a_process_began_behind_the_clock() -> None:
    """It went on from the record, and was an hour late when the clocks agreed."""
    world = in_service(termination_grace_period=10 * MINUTE)
    world.after(MINUTE)
    world.see(Observation(InterruptionSeen("m", "spot", "i-unknown")))
    begin(world, server=60 * MINUTE, wall=-DAY)
    began = world.now
    draining(world)
    world.now += MINUTE + 60 * MINUTE
    world.see(Observation(ClocksAgree(moved=60 * MINUTE, since=began)))
    assert leaving(world).deadline == world.now + 9 * MINUTE
    assert leaving(world).tainted == world.now - MINUTE
    assert leaving(world).created < began
    assert sound(world)


def noted_behind(world: World) -> None:
    """A machine wakes up whose clock is 90 s behind, and a node is to go before the clocks agree. A minute passes."""
    world.after(MINUTE)
    world.see(Observation(ClocksDiffer(jump=90_000)))
    draining(world)
    world.after(MINUTE)


def test_l189_pods_keep_their_grace_period_when_a_right_clock_takes_over_a_record_that_is_behind() -> None:
    world = in_service(termination_grace_period=10 * MINUTE)
    noted_behind(world)
    world.now += 90_000
    world.runtime = world.start()
    assert leaving(world).deadline == world.now + 9 * MINUTE
    assert not world.runtime.state.facts.clocks_differ
    assert sound(world)


def test_l189_pods_keep_their_grace_period_when_another_process_in_doubt_takes_over() -> None:
    """Its time is 90 s after the record's, and yet ten seconds behind."""
    world = in_service(termination_grace_period=10 * MINUTE)
    noted_behind(world)
    begin(world, server=90_000, wall=DAY)
    assert leaving(world).deadline == world.now + 9 * MINUTE
    since = world.runtime.state.facts.clocks_differ
    assert since == leaving(world).tainted
    world.now += 10_000
    world.see(Observation(ClocksAgree(moved=10_000, since=since)))
    assert leaving(world).deadline == world.now + 9 * MINUTE
    assert sound(world)


def test_a_right_clock_that_takes_over_a_record_in_doubt_says_so_at_once() -> None:
    world = half_empty()
    world.see(DIFFER)
    world.runtime = world.start()
    assert not world.runtime.state.facts.clocks_differ
    assert decide(world)
    assert sound(world)


def test_a_new_record_whose_clocks_differ_begins_at_the_given_time() -> None:
    world = World()
    world.store.entries.clear()
    world.store.versions.clear()
    world.runtime = Runtime(
        world.store,
        holder="b",
        settings=world.settings,
        record="r",
        engine="test",
        now=7,
        clocks=ClocksDiffer(skew=1),
    )
    assert [entry.at for entry in world.store.entries] == [7] * len(world.store.entries)
    world.prepare(pool())
    assert world.runtime.state.facts.clocks_differ == 7
