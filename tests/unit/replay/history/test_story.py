"""A story holds what happened to its subject, what brought that about, and what came of it; nothing else."""

from __future__ import annotations

import pytest

from kerf.engine.record.claim_events import LaunchFailed
from kerf.engine.record.decisions import EvictPod
from kerf.engine.record.observations import EffectAnswered, NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.replay.errors import SubjectUnknown
from kerf.replay.history.story import Story, story
from tests.support.lives import claim_of, in_service, show_taint
from tests.support.memory import MemoryStore
from tests.support.records import PROVIDER_ID, position_of, whole_life
from tests.support.simulation.run import Run, scale, workshop
from tests.support.world import World


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """A life, and beside it a pod that has nothing to do with it."""
    world = whole_life()
    world.pending("stranger", memory=10**13)
    world.after(1_000)
    return world.store


def codes(found: Story) -> list[str]:
    return [event.code for event in found.events]


def test_a_pod_from_waiting_to_its_end_with_the_node_that_came_for_it(store: MemoryStore) -> None:
    found = story(store, "default/a")
    assert [code for code in codes(found) if not code.startswith(("node-", "launch-"))] == [
        "pod-waiting", "plan-made", "claim-requested", "claim-launched", "claim-registered", "claim-initialized",
        "pod-bound", "pod-gone",
    ]  # fmt: skip
    assert {event.subject for event in found.events if event.subject.startswith("pod/")} == {"pod/default/a"}


def test_the_events_are_in_order_and_causes_come_first(store: MemoryStore) -> None:
    for name in ("default/a", "n1", "i-1"):
        events = story(store, name).events
        positions = [event.position for event in events]
        assert positions == sorted(positions)
        assert all(event.cause < event.position for event in events)


def test_a_node_its_claim_and_its_instance_have_one_story(store: MemoryStore) -> None:
    claim = store.entries[position_of(store, "claim.requested") - 1].payload.claim
    by_node, by_claim, by_instance = (story(store, name) for name in ("n1", claim, "i-1"))
    assert by_node.events == by_claim.events == by_instance.events
    assert by_claim.others == ("instance/i-1", "node/n1")


def test_a_claims_story_begins_with_the_pods_that_needed_it(store: MemoryStore) -> None:
    found = story(store, "n1")
    assert codes(found)[:6] == ["pod-waiting"] * 5 + ["plan-made"]
    assert codes(found)[-1] == "claim-terminated"
    assert not any("stranger" in event.subject for event in found.events)


def test_a_plan_tells_of_pods_without_a_place_in_their_stories_alone() -> None:
    world = World()
    world.prepare()
    world.pending("fits")
    world.pending("huge", memory=10**13)
    world.after(1_000)
    placed, left = (codes(story(world.store, name)) for name in ("fits", "huge"))
    assert "plan-made" in placed
    assert "pods-without-place" not in placed
    assert "pods-without-place" in left
    claim = next(iter(world.runtime.state.facts.claims))
    assert "pods-without-place" not in codes(story(world.store, claim))


def test_why_a_pod_lost_its_node_is_part_of_its_story() -> None:
    """k#3218: the pod's owner learns why."""
    world = World()
    world.prepare()
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.node("n1", PROVIDER_ID, registered="true", initialized="true")
    world.bind("a", "n1")
    world.after(721 * 3_600_000)
    found = story(world.store, "default/a")
    assert codes(found)[-2:] == ["claim-condemned", "claim-tainted"]


def test_an_eviction_comes_before_the_end_that_it_brought_about() -> None:
    """L-205: even where the watch was faster than the answer; its cause is the answer about that very pod."""
    world = in_service()
    claim = claim_of(world).name
    world.see(Observation(NodeClaimDeletionSeen(claim)))
    world.answer_all()
    show_taint(world)
    for _ in range(3):
        world.answer_all(ok=False, code="429")
        world.after(60_000)
    asked = [(ref, i) for ref, i in world.intents if isinstance(i, EvictPod) and i.name in "ab"]
    gone = [Observation(ObjectGone("pod", order.uid)) for _, order in asked]
    world.see(*gone, *(Observation(EffectAnswered(ref, True, "201")) for ref, _ in asked))
    events = story(world.store, claim).events
    assert [event.params["pod"] for event in events if event.code == "pod-effect-refused"] == [
        f"default/{name}" for name in "abcde"
    ]
    told = {event.position: event for event in events}
    left = [event for event in events if event.code in ("claim-pod-evicted", "pod-gone")]
    assert [event.code for event in left] == ["claim-pod-evicted"] * 2 + ["pod-gone"] * 2
    assert [told[event.cause].params["pod"] for event in left[:2]] == [event.params["pod"] for event in left[:2]]


def test_a_story_up_to_a_position(store: MemoryStore) -> None:
    until = position_of(store, "claim.launched")
    assert all(event.position <= until for event in story(store, "default/a", until).events)
    with pytest.raises(SubjectUnknown):
        story(store, "n1", until)


def test_a_kind_in_front_decides(store: MemoryStore) -> None:
    assert story(store, "node/n1").subject == "node/n1"
    assert story(store, "pod/default/a").subject == "pod/default/a"


@pytest.mark.parametrize("name", ["nobody", "pod/nobody", "node/default/a", ""])
def test_nobodys_story_is_refused(store: MemoryStore, name: str) -> None:
    with pytest.raises(SubjectUnknown, match="KERF203"):
        story(store, name)


def test_an_unmanaged_node_has_a_story() -> None:
    world = World()
    world.prepare()
    world.node("bare", "aws:///x/i-9")
    assert codes(story(world.store, "bare")) == ["node-joined", "node-ready"]


def test_a_replacement_that_could_not_be_launched_is_not_said_to_be_there() -> None:
    lacking = [
        {"at": "2m", "action": "capacity", "instanceType": kind} for kind in ("m5.large", "m5.xlarge", "c5.large")
    ]
    run = Run(workshop(scale("1s", 12), *lacking, scale("3m", 5)), until=900_000)
    failed = next(entry.payload.claim for entry in run.memory.scan() if isinstance(entry.payload, LaunchFailed))
    links = {link.claim: link for link in story(run.memory, failed).chain}
    assert links[failed].why == "launch failed: insufficient-capacity"
    assert links[failed].at
