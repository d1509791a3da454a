"""What the pods on one node come to is kept, and never of other pods than those that are there (S-74)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import HostPort, Owner, Pod, PodShape
from kerf.engine.record.observations import ObjectGone, RecordStarted
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state import snapshot
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import beginning
from kerf.engine.state.pods.on_node import PodsOnNode, pods_on_node
from kerf.engine.state.state import Facts, State
from kerf.replay.verify.decide_again import decide_again
from kerf.replay.verify.verifier import turns
from tests.support.records import whole_life
from tests.support.world import START

SMALL = PodShape(requests={"cpu": 100, "memory": 1 << 20}, host_ports=(HostPort(80),))
LARGE = PodShape(requests={"cpu": 900})


def nothing(digest: str) -> bytes:
    raise KeyError(digest)


def pod(name: str, shape: PodShape, node: str = "n1", kind: str = "apps/v1/ReplicaSet") -> Pod:
    return Pod(f"uid-{name}", "default", name, content(shape)[0], node=node, phase="Running", owner=Owner(kind, "x"))


def test_s74_each_change_of_the_pods_on_a_node_is_seen() -> None:
    draft = TurnDraft(State(Facts(), Blobs(nothing)), START)
    draft.add(RecordStarted("r", "e"))
    shapes = {content(shape)[0]: shape for shape in (SMALL, LARGE)}

    def seen(changed: Pod) -> PodsOnNode:
        draft.add(changed, blobs={changed.shape: shapes[changed.shape]})
        return pods_on_node(draft.state, "n1")

    assert pods_on_node(draft.state, "n1").used == {}
    first = seen(pod("b", SMALL))
    assert first.used == {"cpu": 100, "memory": 1 << 20, "pods": 1}
    assert first.ports == (HostPort(80),)
    assert pods_on_node(draft.state, "n1") is first
    assert seen(pod("elsewhere", LARGE, node="n2")) is first
    both = seen(pod("a", LARGE, kind="apps/v1/DaemonSet"))
    assert [bound.name for bound in both.ordered] == ["a", "b"]
    assert (both.used["cpu"], both.used["pods"]) == (1_000, 2)
    assert both.daemons == {"cpu": 900, "pods": 1}
    assert pods_on_node(draft.state, "n2").used == {"cpu": 900, "pods": 1}
    resized = seen(replace(pod("b", SMALL), shape=content(LARGE)[0]))
    assert (resized.used["cpu"], resized.ports) == (1_800, ())
    draft.add(ObjectGone("pod", "uid-a"))
    assert pods_on_node(draft.state, "n1").used == {"cpu": 900, "pods": 1}
    assert not pods_on_node(draft.state, "n1").daemons
    ended = replace(pod("b", LARGE), phase="Succeeded")
    assert seen(ended).used == {}


def test_s74_what_is_kept_through_a_life_is_what_a_state_without_it_finds() -> None:
    store = whole_life().store
    state = beginning(store)
    compared = 0
    for turn in turns(store.scan()):
        decide_again(state, turn)
        anew = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
        for name in state.facts.nodes:
            kept, found = pods_on_node(state, name), pods_on_node(anew, name)
            assert sorted(kept.pods, key=lambda each: each.uid) == sorted(found.pods, key=lambda each: each.uid)
            assert replace(kept, pods=[]) == replace(found, pods=[])
            compared += bool(kept.pods)
    assert compared > 3
