"""What kerf decided beside what Karpenter did, folded from a record of observe mode."""

from __future__ import annotations

from kerf.engine.record.observations import ObjectGone, Observation
from kerf.projections.karpenter_comparison import Comparison, ComparisonFold
from tests.support.manifests.nodeclaim_objects import claim
from tests.support.world import START, World
from tests.support.worlds.observe_mode import in_use, shown, watching, with_node


def report(world: World) -> Comparison:
    observer = ComparisonFold()
    for entry in world.store.entries:
        observer.apply(entry)
    return observer.report()


def test_a_batch_has_both_sides() -> None:
    world = watching()
    in_use(world)
    (batch,) = report(world).batches
    assert (batch.pods, batch.bound, batch.elsewhere, batch.at) == (2, 2, 0, START)
    assert (batch.kerf.nodes, batch.kerf.price, batch.kerf.took) == (1, 0.085, 1_000)
    assert (batch.karpenter.nodes, batch.karpenter.price) == (1, 0.096)
    assert batch.bound_in == 1_000


def test_pods_that_find_room_on_an_older_node_are_counted_there() -> None:
    world = with_node(watching())
    shown(world, claim(3))
    world.pending("a", memory=64 * 2**30)
    world.pending("b", "c", memory=6 * 2**30)
    world.after(1_000)
    world.bind("b", "n1")
    batches = report(world).batches
    assert [(batch.pods, batch.bound, batch.elsewhere, batch.karpenter.nodes) for batch in batches] == [(1, 0, 0, 0)]
    assert batches[0].bound_in is None


def test_what_kerf_would_remove_is_wanted_until_karpenter_does() -> None:
    world = watching(consolidate_after=0)
    in_use(world)
    world.gone("a")
    world.gone("b")
    for _ in range(6):
        world.after(10_000)
    (wanted,) = report(world).wanted
    assert (wanted.claim, wanted.reason, wanted.price) == ("default-abcde", "empty", 0.096)
    world.see(Observation(claim(3, deleting=world.now)), Observation(ObjectGone("nodeclaim", "default-abcde")))
    found = report(world)
    assert found.wanted == ()
    (removal,) = found.removals
    assert (removal.karpenter, removal.kerf, removal.reason, removal.agreed) == ("deleted", "remove", "empty", True)
    assert removal.since == wanted.since


def test_a_removal_that_kerf_would_not_have_made_has_kerfs_reason_to_keep() -> None:
    world = watching(consolidate_after=None)
    in_use(world)
    for _ in range(6):
        world.after(10_000)
    shown(world, claim(3, deleting=START))
    (removal,) = report(world).removals
    assert (removal.karpenter, removal.kerf) == ("deleted", "keep")
    assert removal.reason
    assert not removal.agreed
