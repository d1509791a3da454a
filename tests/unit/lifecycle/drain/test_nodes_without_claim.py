"""W-80, L-239: a Node that somebody deletes and that belongs to no NodeClaim is drained, and let go."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.volumes import VolumeAttachment
from kerf.engine.model.labels import EC2NODECLASS
from kerf.engine.record.decisions import DeleteNode, EvictPod, TaintNode
from kerf.engine.record.observations import EffectAnswered, ObjectGone, Observation
from kerf.engine.state import snapshot
from kerf.projections.timeline.timeline import Timeline
from tests.support.lives import DISRUPTED
from tests.support.records import re_derived
from tests.support.world import START, World

LONE = Node("n9", uid="u9", provider_id="aws:///z/i-9", labels={EC2NODECLASS: "default"}, ready=True, created=START)


def world(*pods: str, node: Node = LONE) -> World:
    made = World()
    made.prepare()
    made.see(Observation(node))
    if pods:
        made.pending(*pods)
        for pod in pods:
            made.bind(pod, node.name)
    return made


def deleted(made: World, **changes: object) -> list[object]:
    node = made.runtime.state.facts.nodes["n9"]
    return list(made.see(Observation(replace(node, deleting=made.now, **changes))))


def test_w80_the_taint_its_pods_its_finalizer() -> None:
    made = world("a", "b")
    assert deleted(made) == [TaintNode("", "n9")]
    made.answer_all()
    evictions = deleted(made, taints=(DISRUPTED,))
    assert [eviction.name for eviction in evictions if isinstance(eviction, EvictPod)] == ["a", "b"]
    made.answer_all()
    made.gone("a")
    assert made.gone("b") == [DeleteNode("", "n9")], "no minimum, and no instance to end"
    made.answer_all()
    made.see(Observation(ObjectGone("node", "n9")))
    assert made.runtime.state.facts.lone == {}
    assert made.after(3_600_000) == []
    assert re_derived(made.store) == made.store.entries
    told = Timeline()
    shown = [event for entry in made.store.entries for event in told.apply(entry)]
    assert {event.code for event in shown if event.subject == "node/n9"} >= {"effect-asked", "effect-done"}
    assert not any(event.subject == "nodeclaim/" for event in shown)


def test_an_eviction_that_is_refused_is_tried_again() -> None:
    made = world("a")
    deleted(made)
    made.answer_all()
    deleted(made, taints=(DISRUPTED,))
    ((ref, _),) = made.intents
    assert made.see(Observation(EffectAnswered(ref, False, "429"))) == []
    due = made.runtime.next_due()
    assert due is not None
    again = made.after(due - made.now)
    assert [intent.name for intent in again if isinstance(intent, EvictPod)] == ["a"]


def test_l199_its_volumes_are_waited_for() -> None:
    made = world()
    made.see(Observation(VolumeAttachment("va", "n9", "pv-1")))
    deleted(made)
    made.answer_all()
    assert deleted(made, taints=(DISRUPTED,)) == []
    assert made.see(Observation(ObjectGone("volumeattachment", "va"))) == [DeleteNode("", "n9")]


def test_d3_a_node_of_another_kind_of_class_is_left_alone() -> None:
    made = world(node=replace(LONE, labels={"other.example.com/class": "default"}))
    assert deleted(made) == []


def test_it_is_known_after_a_snapshot() -> None:
    made = world("a")
    deleted(made)
    state = made.runtime.state
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    assert twin.indexes.deleted_nodes == state.indexes.deleted_nodes == {"n9": None}
    assert twin.facts.lone["n9"].effects.keys() == {"taint"}


def test_another_node_of_its_name_is_not_drained() -> None:
    """Its end was missed: the watch was broken off, and a list shows the next Node of that name."""
    made = world("a")
    deleted(made)
    made.answer_all()
    assert made.see(Observation(replace(LONE, uid="u10", provider_id="aws:///z/i-10"))) == []
    assert made.after(60_000) == []
    state = made.runtime.state
    assert state.facts.lone == state.indexes.deleted_nodes == {}
    assert re_derived(made.store) == made.store.entries
