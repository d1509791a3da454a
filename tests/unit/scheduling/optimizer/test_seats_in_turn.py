"""Equal pods are told their nodes in the order in which kube-scheduler tries them (S-117, KEP-5278)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint, VolumeRef
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.seats_in_turn import seats_in_turn
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod, Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, problem, shape

EFFORT = 100
TURNS = (0, 3, 6, 1, 4, 2, 5)
"""In this order pods come whose names would have them come otherwise."""
ZONAL = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"}))


def web(*, volumes: tuple[VolumeRef, ...] = (), nominations: bool = True) -> Problem:
    """Seven pods with a hard spread over zones, and pods of two sizes beside them."""
    spread = shape(900, GI, labels={"app": "web"}, spread=(ZONAL,), volumes=volumes)
    work = Workloads().add("web", 7, spread).add("small", 5, shape(400, GI)).add("large", 2, shape(3500, GI))
    asked = problem(work, ladder(1, 2, 4, 8), nominations=nominations)
    turn = {f"web-{number}": place for place, number in enumerate(TURNS)}
    return replace(asked, pods=tuple(replace(pod, arrival=turn.get(pod.uid, 0)) for pod in asked.pods))


def zones_in_turn(asked: Problem, planned: Plan) -> list[str]:
    zones = {
        uid: next(iter(requirement.values))
        for claim in planned.claims
        for uid in claim.pods
        for requirement in claim.requirements
        if requirement.key == lbl.ZONE
    }
    queue = sorted(
        (pod for pod in asked.pods if pod.name.startswith("web")), key=lambda pod: (pod.created, pod.arrival)
    )
    return [zones[pod.uid] for pod in queue]


def skews(zones: Sequence[str]) -> list[int]:
    """How uneven the zones are after each pod."""
    counts = [Counter(dict.fromkeys(zones, 0)) for _ in range(len(zones))]
    for number, count in enumerate(counts):
        count.update(zones[: number + 1])
    return [max(count.values()) - min(count.values()) for count in counts]


def test_s117_the_own_node_of_each_pod_may_take_it_when_its_turn_comes() -> None:
    asked = web()
    planned = best_plan(asked, EFFORT)
    assert len(set(zones_in_turn(asked, planned))) == 3
    assert max(skews(zones_in_turn(asked, planned))) == 1
    assert not faults(asked, planned)


def test_by_their_names_some_would_be_refused() -> None:
    asked = web()
    by_name = best_plan(replace(asked, pods=tuple(replace(pod, arrival=0) for pod in asked.pods)), EFFORT)
    assert max(skews(zones_in_turn(asked, by_name))) > 1


def test_only_equal_pods_change() -> None:
    asked = web()
    planned = best_plan(asked, EFFORT)
    by_name = best_plan(replace(asked, pods=tuple(replace(pod, arrival=0) for pod in asked.pods)), EFFORT)
    kinds = {pod.uid: pod.shape for pod in asked.pods}
    assert [Counter(kinds[uid] for uid in claim.pods) for claim in planned.claims] == [
        Counter(kinds[uid] for uid in claim.pods) for claim in by_name.claims
    ]
    assert planned.placed == by_name.placed


def test_the_trace_tells_where_every_pod_goes() -> None:
    asked, tracer = web(), FunnelTracer()
    planned = best_plan(asked, EFFORT, tracer)
    told = {uid: place for group in tracer.funnel.classes for place, uids in group.placed for uid in uids}
    assert told == {uid: number for number, claim in enumerate(planned.claims) for uid in claim.pods}
    assert planned == best_plan(asked, EFFORT)


def one_of_each_capacity_type() -> Problem:
    """Five pods, of which one at most may be on a node of each capacity type, and others. The last come first."""
    apart = (AffinityTerm(lbl.CAPACITY_TYPE, Selector({"app": "apart"})),)
    work = Workloads().add("apart", 5, shape(500, GI, labels={"app": "apart"}, anti_affinity=apart))
    asked = problem(work.add("small", 6, shape(400, GI)), ladder(1, 2, 4), nominations=True)
    return replace(asked, pods=tuple(replace(pod, arrival=9 - n) for n, pod in enumerate(asked.pods)))


def test_s117_of_equal_pods_those_that_come_first_have_a_place() -> None:
    """kube-scheduler tries the others before, and they would take the room of whom they are not planned with."""
    asked, tracer = one_of_each_capacity_type(), FunnelTracer()
    planned = best_plan(asked, EFFORT, tracer)
    left = [uid for group in planned.unplaced for uid in group.pods]
    placed = sorted(uid for uid in planned.placed if uid.startswith("apart"))
    assert 0 < len(placed) < 5
    assert placed == [f"apart-{number}" for number in range(5 - len(placed), 5)]
    assert sorted(left + placed) == [f"apart-{number}" for number in range(5)]
    assert not faults(asked, planned)
    assert sorted(uid for group in tracer.funnel.classes for uid in group.unplaced) == sorted(left)


def told_before(pod: PendingPod) -> PendingPod:
    return replace(pod, target=f"claim-of-{pod.uid}")


@pytest.mark.parametrize(
    "asked",
    [web(volumes=(VolumeRef("data", "data-0"),)), replace(web(), pods=tuple(map(told_before, web().pods)))],
    ids=["with volumes of their own", "told another node before"],
)
def test_others_stay_where_they_are(asked: Problem) -> None:
    planned = best_plan(web(nominations=False), EFFORT)
    assert seats_in_turn(web(), planned)
    assert seats_in_turn(asked, planned) == {}


def test_s117_zones_where_equal_pods_are_already_come_later() -> None:
    """Two of them run in zone z1: the first of the others are told nodes of the other zones."""
    asked = web()
    digest = asked.pods[0].shape
    node = NodeInput("n-1", "", {lbl.HOSTNAME: "n-1", lbl.ZONE: "z1"}, (), {"cpu": 0, "memory": 0, "pods": 0})
    there = tuple(BoundPod(f"old-{number}", "default", digest, "n-1") for number in range(2))
    asked = replace(asked, nodes=(node,), bound=there)
    zones = zones_in_turn(asked, best_plan(asked, EFFORT))
    assert "z1" not in zones[:2]
    assert max(skews(["z1", "z1", *zones])[2:]) <= 2


def spread_twice(seed: int) -> Problem:
    """Pods that are spread over zones and capacity types, in an order by dice."""
    dice, keys = random.Random(seed), (lbl.ZONE, lbl.CAPACITY_TYPE)
    spread = tuple(SpreadConstraint(key, selector=Selector({"app": "web"})) for key in keys)
    of_web = shape(dice.choice((400, 900, 1_500)), GI, labels={"app": "web"}, spread=spread)
    work = Workloads().add("web", dice.randint(3, 14), of_web).add("small", dice.randint(1, 6), shape(400, GI))
    asked = problem(work.add("large", 2, shape(3_500, GI)), ladder(1, 2, 4, 8), nominations=True)
    order = dice.sample(range(len(asked.pods)), len(asked.pods))
    return replace(asked, pods=tuple(replace(pod, arrival=at) for pod, at in zip(asked.pods, order, strict=True)))


def refused(asked: Problem, planned: Plan) -> int:
    """How often a spread allows no more pods in the domain of a pod's own node when its turn comes."""
    claim_of = {uid: claim for claim in planned.claims for uid in claim.pods}
    queue = sorted((pod for pod in asked.pods if pod.name.startswith("web")), key=lambda pod: pod.arrival)
    found = 0
    for key in (lbl.ZONE, lbl.CAPACITY_TYPE):
        specs = [next((spec for spec in claim_of[pod.uid].requirements if spec.key == key), None) for pod in queue]
        domains = ["" if spec is None or len(spec.values) > 1 else spec.values[0] for spec in specs]
        found += sum(skew > 1 for skew in skews(domains))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_s117_of_two_spreads_both_let_pods_come_in_turn(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capacity type that is full hides no zone that is still empty."""
    asked = spread_twice(seed)
    in_turn = best_plan(asked, EFFORT)
    assert not faults(asked, in_turn)
    monkeypatch.setattr("kerf.engine.scheduling.optimizer.best_plan.seats_in_turn", lambda *_: {})
    assert refused(asked, in_turn) <= refused(asked, best_plan(asked, EFFORT))
