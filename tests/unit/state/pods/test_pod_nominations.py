"""Who nominated a pod decides whether it still waits: kerf itself (KEP-5278), or the scheduler by preemption (S-40)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from tests.support import lives
from tests.support.lives import PROVIDER, UNREGISTERED, claim_of
from tests.support.world import World


def nominate(world: World, node: str, *names: str) -> None:
    world.see(*(Observation(replace(world.pods[name], nominated=node)) for name in names))


def waiting(world: World) -> set[str]:
    """The names of the pods that kerf plans for: live, folded again, and from a snapshot."""
    state = world.runtime.state
    again = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    pending = [set(known.indexes.pending) for known in (state, load(world.store), again)]
    assert pending[0] == pending[1] == pending[2]
    return {uid.removeprefix("uid-") for uid in pending[0]}


def joined() -> World:
    world = lives.launched()
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    return world


def test_a_pod_that_kerf_nominated_goes_on_waiting_for_its_claim() -> None:
    world = joined()
    nominate(world, "n1", "a", "b")
    assert waiting(world) == {"a", "b", "c", "d", "e"}
    assert world.runtime.state.facts.targets["uid-a"] == claim_of(world).name


def test_a_pod_that_the_scheduler_nominated_has_its_place() -> None:
    world = joined()
    world.node("n2", "aws:///us-west-2a/i-2")
    nominate(world, "n2", "a")
    assert waiting(world) == {"b", "c", "d", "e"}


def test_the_name_of_the_instance_will_do_before_the_node_is_there() -> None:
    """KWOK names the Node after the instance."""
    world = lives.launched()
    nominate(world, "i-1", "a")
    assert waiting(world) == {"a", "b", "c", "d", "e"}


def test_what_kerf_wrote_may_be_seen_after_another_plan() -> None:
    """Its controller dies after it has nominated a pod, and the next one plans otherwise before it has seen that. As a
    nomination by preemption the pod had its place for ever."""
    world = joined()
    world.runtime.state.facts.targets.pop("uid-a")
    nominate(world, "n1", "a")
    assert waiting(world) == {"a", "b", "c", "d", "e"}


def test_a_pod_whose_claim_failed_after_it_was_nominated_is_planned_for_again() -> None:
    """A nomination never holds a pod back: not even one that nobody has taken back."""
    world = joined()
    nominate(world, "n1", *lives.PODS)
    first = claim_of(world).name
    world.instance("i-1", "terminated")
    world.see(Observation(ObjectGone("node", "n1")))
    assert waiting(world) == set(lives.PODS)
    world.after(1_000)
    ((_, order),) = world.launches()
    assert order.claim != first
    assert set(claim_of(world).pods) == {f"uid-{name}" for name in lives.PODS}


def test_a_bound_pod_and_one_that_is_gone_leave_nothing_behind() -> None:
    world = joined()
    nominate(world, "n1", "a", "b", "c")
    world.bind("a", "n1")
    world.gone("b")
    world.see(Observation(world.pods["c"]))
    assert world.runtime.state.facts.nominations == {}
