"""Watches: order, lateness, repetition, gaps and relists."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import KIND_OF
from kerf.adapters.simulation.cluster.cluster import VirtualCluster
from kerf.adapters.simulation.cluster.watch import Watch
from kerf.adapters.simulation.faults import FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, WatchGap

MakeNode = Callable[..., Node]


def watch(world: Simulation, **faults: float | int) -> Watch:
    plan = FaultPlan(**faults)  # type: ignore[arg-type]
    return Watch(world.cluster, world.clock, world.rng, 20, plan)


def collect(world: Simulation, watch: Watch, after: int) -> list[Struct]:
    watch.next_due()  # as the driver does: what has changed is on its way from now
    world.clock.advance(world.clock.now + after)
    return [observation.payload for observation in watch.collect()]


def test_an_event_arrives_after_its_latency_and_once(world: Simulation, node: MakeNode) -> None:
    world.cluster.drain_observations()
    seen = watch(world)
    assert seen.next_due() is None
    world.cluster.apply(node("n"))
    world.cluster.apply(node("n"))
    assert seen.next_due() == world.clock.now + 20
    assert collect(world, seen, 19) == []
    assert collect(world, seen, 1) == [node("n")]
    assert seen.next_due() is None


def test_a_late_event_holds_up_its_own_kind_only(world: Simulation, node: MakeNode) -> None:
    world.cluster.drain_observations()
    seen = watch(world, watch_late=1.0, watch_late_by=1_000)
    for name in ("n1", "n2", "n3"):
        world.cluster.apply(node(name))
        seen.next_due()
    arrived = collect(world, seen, 1_020)
    assert arrived == [node("n1"), node("n2"), node("n3")]


def test_an_event_may_come_twice(world: Simulation, node: MakeNode) -> None:
    world.cluster.drain_observations()
    seen = watch(world, watch_twice=1.0)
    world.cluster.apply(node("n"))
    assert collect(world, seen, 20) == [node("n"), node("n")]


def test_a_gap_swallows_events_and_its_relist_tells_the_difference(world: Simulation, node: MakeNode) -> None:
    for name in ("stays", "goes", "changes"):
        world.cluster.apply(node(name))
    seen = watch(world)
    world.clock.advance(world.clock.now + 20)
    seen.relist(everything=True)
    broken = watch(world, watch_gap=1.0, watch_gap_for=10_000)
    broken._known = seen._known
    world.cluster.api.remove(node("goes"))
    broken.next_due()
    changed = node("changes", labels={"a": "b"})
    world.cluster.apply(changed)
    world.cluster.apply(node("comes-and-goes"))
    world.cluster.api.remove(node("comes-and-goes"))
    assert broken.next_due() == world.clock.now + 10_000
    assert collect(world, broken, 9_999) == []
    gap, *rest = collect(world, broken, 1)
    assert isinstance(gap, WatchGap)
    assert (gap.kind, gap.changed, gap.gone) == ("node", 1, 1)
    assert rest == [changed, ObjectGone("node", "goes")]


def test_what_is_asked_of_a_claim_passes_through_gaps_and_relists(world: Simulation) -> None:
    """The NodeClaim object still carries its deletion timestamp after a relist."""
    world.cluster.drain_observations()
    seen = watch(world, watch_gap=1.0)
    seen.relist(everything=True)
    world.cluster.ask_claim_deletion("c", "kubectl")
    assert [o.payload for o in seen.relist()] == [NodeClaimDeletionSeen("c", "kubectl")]
    world.cluster.ask_claim_deletion("d", "kubectl")
    assert collect(world, seen, 20) == [NodeClaimDeletionSeen("d", "kubectl")]


def test_a_relist_tells_only_what_is_news(world: Simulation, node: MakeNode) -> None:
    world.cluster.apply(node("n"))
    seen = watch(world)
    assert {KIND_OF[type(o.payload)] for o in seen.relist(everything=True)} == {"namespace", "node"}
    assert seen.relist() == []
    world.cluster.api.remove(node("n"))
    assert [o.payload for o in seen.relist()] == [ObjectGone("node", "n")]


changes = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 3_000)), max_size=25)


@settings(max_examples=60, deadline=None)
@given(changes, st.integers(0, 1_000))
def test_whatever_goes_wrong_a_watcher_ends_with_the_truth(steps: list[tuple[str, int, int]], seed: int) -> None:
    """Law: after the last event or relist, what was told, folded, equals what there is."""
    clock = Clock(1_000)
    cluster = VirtualCluster(clock, SeededRandom(seed))
    plan = FaultPlan(watch_late=0.4, watch_twice=0.4, watch_gap=0.2, watch_gap_for=2_000)
    seen = Watch(cluster, clock, SeededRandom(seed), 20, plan)
    told: dict[str, Struct] = {}

    def follow() -> None:
        for observation in seen.collect():
            payload = observation.payload
            if isinstance(payload, ObjectGone):
                told.pop(payload.key, None)
            elif isinstance(payload, Node):
                told[payload.name] = payload

    for name, version, pause in steps:
        item = Node(name=name, labels={"v": str(version)})
        if version:
            cluster.apply(item)
        else:
            cluster.api.remove(item)
        clock.advance(clock.now + pause)
        follow()
    while (due := seen.next_due()) is not None:
        clock.advance(max(due, clock.now))
        follow()
    assert told == cluster.api.nodes
