"""One claim's whole life through the runtime, driven by hand."""

from __future__ import annotations

from kerf.engine.record.decisions import (
    DeleteNode,
    LaunchInstance,
    TaintNode,
    TerminateInstance,
)
from kerf.engine.record.errors import StoreFull
from kerf.engine.record.observations import ObjectGone, Observation
from tests.support.lives import DISRUPTED, claim_of, decide, in_service, launched
from tests.support.world import World


def test_five_pods_of_one_gibibyte_get_the_workshops_m5_large() -> None:
    world = launched()
    claim = claim_of(world)
    assert (claim.state, claim.instance_type, claim.price) == ("launched", "m5.large", 0.096)


def test_a_node_registers_initializes_and_is_in_service() -> None:
    world = in_service()
    claim = claim_of(world)
    assert claim.state == "initialized"
    assert world.after(60_000) == []
    assert claim.verdict == "nothing-cheaper"


def test_an_empty_node_is_tainted_drained_and_terminated() -> None:
    world = in_service()
    for name in "abcde":
        assert world.gone(name) == []
    (taint,) = decide(world)
    assert isinstance(taint, TaintNode)
    assert claim_of(world).why == "empty"
    world.answer_all()
    world.node("n1", "aws:///us-west-2a/i-1", registered="true", initialized="true", taints=(DISRUPTED,))
    assert claim_of(world).state == "draining"
    (end,) = world.after(5_000)
    assert isinstance(end, TerminateInstance)
    world.answer_all()
    assert world.runtime.watched_instances() == ["i-1"]
    (delete,) = world.instance("i-1", "gone")
    assert isinstance(delete, DeleteNode)
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    assert world.runtime.state.facts.claims == {}
    assert world.store.entries[-1].type == "claim.terminated"
    assert world.runtime.next_due() is None


def test_no_append_no_act() -> None:
    world = World()
    world.prepare()
    world.pending("a")
    world.store.fail_with = StoreFull("disk full")
    assert world.after(1_000) == []
    assert [world.runtime.ready] == [False]
    assert world.runtime.error is not None
    assert world.runtime.error.code == "KERF105"
    assert world.pending("b") == []
    world.store.fail_with = None
    (intent,) = world.after(10)
    assert isinstance(intent, LaunchInstance)
    assert world.runtime.ready
    assert "uid-b" in world.runtime.state.facts.pods
