"""Nodes that go round in circles are found, ranked and named."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.cli.render.figures.loops import loop_words
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.kubernetes.pods import Owner, Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import (
    Initialized,
    Launched,
    LaunchFailed,
    PodEvicted,
    Registered,
    Requested,
    Tainted,
    Terminated,
)
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    EvictPod,
    LifecycleResult,
    Move,
    MoveStepResult,
    PlannedClaim,
    ProvisionResult,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.engine.record.observations import ObjectGone
from kerf.projections.figures.evictions import EvictionsFold
from kerf.projections.figures.lives import LivesFold
from kerf.projections.figures.loops import Loop, find_loops
from tests.support.world import NODE_CLASS

MINUTE = 60_000
OF_DEPLOYMENT = "apps/v1/ReplicaSet"
OWNER = Owner(OF_DEPLOYMENT, "web-6d4f8b7c95")
NOTHING = LifecycleResult("", Reason(""))
START = 1_767_225_600_000
Happened = tuple[int, Struct]


def decided(result: object) -> Decision:
    return Decision("move", 0, 0, 1, "", result)  # type: ignore[arg-type]


def planned(name: str) -> PlannedClaim:
    return PlannedClaim(name, "p", ("pod-1",), ("m5.large",), (), {}, 0.1, ("spot",))


def came(claim: str, at: int, *, serves: bool = True, kind: str = "m5.large") -> list[Happened]:
    """A node is asked for, launched, and initialized a minute later."""
    events: list[Happened] = [
        (at, Requested(claim, "p", NODE_CLASS, (), (), {}, (), 0.1, 1)),
        (at, Launched(claim, f"i-{claim}", "", kind, "a", "spot", 0.1, {}, {})),
        (at + MINUTE, Registered(claim, f"n-{claim}")),
        (at + MINUTE, Initialized(claim, f"n-{claim}")),
    ]
    owner = Owner("apps/v1/ReplicaSet", "web-6d4f8b7c95")
    pod = Pod(f"u-{claim}", "shop", f"web-{claim}", "", node=f"n-{claim}", owner=owner)
    return [*events, *([(at + MINUTE, pod)] if serves else [])]


def went(claim: str, at: int, why: str) -> list[Happened]:
    return [(at, Tainted(claim, why)), (at + MINUTE, Terminated(claim, why))]


def replaced(old: str, new: str, at: int, why: str = "underutilized") -> list[Happened]:
    begun = Move(why, (old,), (planned(new),))
    step: Happened = (at, decided(MoveStepResult("1.0", "started", Reason(why), begun)))
    return [step, *came(new, at), *went(old, at + 2 * MINUTE, why)]


def loops(*happened: Iterable[Happened]) -> list[Loop]:
    fold = LivesFold()
    evictions = EvictionsFold(fold)
    ordered = sorted((item for items in happened for item in items), key=lambda item: item[0])
    for position, (at, payload) in enumerate(ordered, start=1):
        name = NAME_OF[type(payload)]
        entry = Entry(position, position, "s", position, name, 1, START + at, 0, 1, payload)
        fold.apply(entry)
        evictions.apply(entry)
    return find_loops(fold, 0, fold.at, evictions.again)


def test_a_node_that_is_replaced_again_and_again_is_one_chain() -> None:
    names = ["a", "b", "c", "d"]
    steps = [replaced(old, new, number * 10 * MINUTE) for number, (old, new) in enumerate(pairwise(names), 1)]
    (loop,) = loops(came("a", 0), *steps)
    assert (loop.kind, loop.about, loop.claims) == ("replacement-chain", "shop/web", ("a", "b", "c", "d"))
    assert (loop.nodes, loop.same_type, loop.reasons) == (3, 3, ("underutilized",))
    assert loop.cost > 0


def test_one_replacement_is_no_loop() -> None:
    assert loops(came("a", 0), replaced("a", "b", 10 * MINUTE)) == []


@pytest.mark.parametrize(("values", "circles"), [("bcd", False), ("bbb", True), ("bcb", True)])
def test_replacements_by_drift_are_a_loop_only_if_a_difference_repeats(values: str, circles: bool) -> None:
    """One change after the other is wanted; the same difference again and again is not."""

    def drifted(old: str, new: str, value: str, at: int) -> list[Happened]:
        differences = (Difference("labels", "team", "a", value),)
        verdict = Verdict(old, "drifted", "drifted", Reason("nodepool-drifted"), differences)
        return [(at, decided(DisruptResult((verdict,)))), *replaced(old, new, at, "drifted")]

    steps = [drifted(f"n{n}", f"n{n + 1}", value, (n + 1) * 60 * MINUTE) for n, value in enumerate(values)]
    assert [loop.kind for loop in loops(came("n0", 0), *steps)] == ["replacement-chain"] * circles


def test_nodes_that_ran_no_pod_are_told_by_nodepool() -> None:
    (loop,) = loops(
        came("a", 0, serves=False), went("a", 5 * MINUTE, "empty"),
        came("b", 0, serves=False), went("b", 5 * MINUTE, "empty"),
        came("c", 0), went("c", 5 * MINUTE, "empty"),
    )  # fmt: skip
    assert (loop.kind, loop.about, loop.claims, loop.reasons) == ("launched-for-nobody", "p", ("a", "b"), ("empty",))


def test_nodes_that_drift_at_once_are_told() -> None:
    def drifts(claim: str, at: int) -> Happened:
        differences = (Difference("labels", "team", "a", "b"),)
        verdict = Verdict(claim, "drifted", "drifted", Reason("nodepool-drifted"), differences)
        return at, decided(DisruptResult((verdict,)))

    (loop,) = loops(
        came("a", 0), [drifts("a", 2 * MINUTE)], came("b", 0), [drifts("b", 3 * MINUTE)],
        came("late", 0), [drifts("late", 60 * MINUTE)],
    )  # fmt: skip
    assert (loop.kind, loop.about, loop.claims) == ("drifts-at-once", "p", ("a", "b"))
    assert "labels[team] a → b" in loop_words(loop)


def test_launches_that_fail_for_the_same_pods_are_told_by_workload() -> None:
    waiting = Pod("pod-1", "shop", "web-1", "", owner=OWNER)
    tries = [
        [
            (number * MINUTE, decided(ProvisionResult((planned(f"t{number}"),)))),
            (number * MINUTE, Requested(f"t{number}", "p", NODE_CLASS, (), (), {}, (), 0.1, 1)),
            (number * MINUTE + 1, LaunchFailed(f"t{number}", "insufficient-capacity")),
        ]
        for number in range(1, 5)
    ]
    gone = [(5 * MINUTE, ObjectGone("pod", "pod-1"))]
    (loop,) = loops([(0, waiting)], *tries, gone)
    assert (loop.kind, loop.about, loop.nodes) == ("launch-failures", "shop/web", 4)
    assert (loop.reasons, loop.cost) == (("insufficient-capacity",), 0.0)


def evicted(uid: str, claim: str, at: int, *, created: int) -> list[Happened]:
    pod = Pod(
        uid,
        "shop",
        f"web-{uid}",
        "",
        created=START + created,
        node=f"n-{claim}",
        owner=OWNER,
    )
    order = EvictPod(claim, "", uid, "shop", pod.name)
    return [
        (created, pod),
        (at, Decision("drain", 0, 0, 1, "", NOTHING, (order,))),
        (at + 1, PodEvicted(claim, uid, pod.key)),
    ]


def test_pods_that_go_from_node_to_node_are_told_by_workload() -> None:
    """The first two come for nobody; the next two come for these, and the last one long after."""
    (loop,) = loops(
        came("a", 0, serves=False), came("b", 0, serves=False), came("c", 0, serves=False),
        evicted("1", "a", 5 * MINUTE, created=MINUTE), evicted("2", "a", 5 * MINUTE, created=MINUTE),
        evicted("3", "b", 15 * MINUTE, created=5 * MINUTE + 2), evicted("4", "b", 15 * MINUTE, created=5 * MINUTE + 3),
        evicted("5", "c", 70 * MINUTE, created=15 * MINUTE + 2),
    )  # fmt: skip
    assert (loop.kind, loop.about, loop.claims, loop.evicted) == ("evicted-again", "shop/web", ("b",), 2)


def test_a_pod_that_was_there_before_came_for_no_evicted_one() -> None:
    """It came 45 s before the first eviction of its workload, and is seen again after it. Of a scale-in of 500 new pods
    82 evictions were told as second ones; 22 were."""
    first = evicted("1", "a", 5 * MINUTE, created=MINUTE)
    others = [evicted(name, "b", 6 * MINUTE, created=5 * MINUTE - 45_000) for name in "23"]
    again = [(5 * MINUTE + 2_000, seen) for (_, seen), *_ in others]
    found = loops(came("a", 0, serves=False), came("b", 0, serves=False), first, *others, again)
    assert found == []


def test_the_worst_loop_comes_first() -> None:
    unused = [item for name in "xyz" for item in (*came(name, 0, serves=False), *went(name, 5 * MINUTE, "empty"))]
    chain = [*came("a", 0), *replaced("a", "b", 10 * MINUTE), *replaced("b", "c", 20 * MINUTE)]
    assert [loop.kind for loop in loops(unused, chain)] == ["launched-for-nobody", "replacement-chain"]


def wave(number: int, every: int = 12, *, kind: str = "empty", lasts: int = 6) -> list[Happened]:
    """Two nodes that come for pods every so many minutes, and go after some."""
    at = number * every * MINUTE
    return [
        item
        for name in "xy"
        for item in (*came(f"{name}{number}", at), *went(f"{name}{number}", at + lasts * MINUTE, kind))
    ]


def test_nodes_that_are_launched_again_as_soon_as_they_are_gone_are_told_by_workload() -> None:
    (loop,) = loops(*(wave(number) for number in range(4)))
    assert (loop.kind, loop.about, loop.nodes, loop.rounds) == ("launched-again", "shop/web", 8, 4)
    assert (loop.lasted, loop.reasons) == (6 * MINUTE, ("empty",))
    said = "8 nodes came for its pods and went with them 6m later, only to be launched again, in 4 rounds (empty)"
    assert loop_words(loop) == f"shop/web: {said}"


@pytest.mark.parametrize(
    "waves",
    [
        [wave(0), wave(1)],  # twice is no loop
        [wave(number, 60) for number in range(4)],  # nobody would keep a node for so long
        [wave(number, 60, lasts=40) for number in range(4)],  # it was there for long
        [wave(number, kind="interrupted") for number in range(4)],
    ],
)
def test_nodes_that_come_and_go_as_they_should_are_no_loop(waves: list[list[Happened]]) -> None:
    assert loops(*waves) == []


def test_a_wave_that_comes_again_after_hours_is_another_loop() -> None:
    found = loops(*(wave(number) for number in (0, 1, 2, 20, 21, 22, 40)))
    assert [(loop.kind, loop.rounds) for loop in found] == [("launched-again", 3), ("launched-again", 3)]


def test_an_expiration_that_comes_soon_is_told_by_nodepool() -> None:
    (loop,) = loops(*(wave(number, 60, kind="expired", lasts=60) for number in range(3)))
    assert (loop.kind, loop.about, loop.nodes, loop.rounds) == ("expires-soon", "p", 6, 3)
    assert loop_words(loop).startswith("NodePool p: 6 nodes expired 1h after they were asked for, in 3 rounds")
    assert loops(*(wave(number, 720, kind="expired", lasts=720) for number in range(3))) == []


def test_pods_of_daemonsets_come_for_their_node() -> None:
    agents = Owner("apps/v1/DaemonSet", "agent")
    happened = [
        (at, replace(payload, owner=agents) if isinstance(payload, Pod) else payload)
        for uid, claim, at, created in (("1", "a", 5, 1), ("2", "a", 5, 1), ("3", "b", 15, 5), ("4", "b", 15, 5))
        for at, payload in evicted(uid, claim, at * MINUTE, created=created * MINUTE)
    ]
    assert loops(came("a", 0, serves=False), came("b", 0, serves=False), happened) == []
