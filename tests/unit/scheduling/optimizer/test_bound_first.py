"""Plans for pods that are told their nodes leave to kube-scheduler what it does with the nodes that are there."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import Selector, SpreadConstraint, VolumeRef
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE, total_price
from kerf.engine.scheduling.optimizer.best_plan import _optimized, best_plan
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.optimizer.spread_judge import SpreadJudge
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, problem, shape, spec

EFFORT = 100
NODE = NodeInput("n-1", "", {lbl.HOSTNAME: "n-1", lbl.ZONE: "z1"}, (), {"cpu": 4000, "memory": 16 * GI, "pods": 20})


def queued(nodes: tuple[NodeInput, ...] = (NODE,)) -> Problem:
    """Small pods come to kube-scheduler first; the planner begins with the large one."""
    work = Workloads().add("small", 4, shape(1000, GI), created=1).add("large", 1, shape(3500, GI), created=2)
    return problem(work, ladder(2, 4, 8), nodes=nodes, nominations=True)


def on_existing(planned: Plan) -> list[str]:
    return sorted(uid for placement in planned.placements for uid in placement.pods)


def test_s208_pods_that_are_told_leave_existing_nodes_to_those_that_come_first() -> None:
    asked = queued()
    told = best_plan(asked, EFFORT)
    assert on_existing(told) == ["small-0", "small-1", "small-2", "small-3"]
    assert told.on_new_nodes == {"large-0"}
    assert not faults(asked, told)


def test_the_first_plan_gives_the_existing_node_to_the_large_pod() -> None:
    assert on_existing(best_plan(queued(), 0)) == ["large-0"]


def test_no_pod_waits_that_another_use_of_the_existing_nodes_would_place() -> None:
    """No new node may be as large as the large pod: it needs the existing one."""
    work = Workloads().add("small", 4, shape(1000, GI), created=1).add("large", 1, shape(3500, GI), created=2)
    asked = problem(work, ladder(2), nodes=[NODE], nominations=True)
    planned = best_plan(asked, EFFORT)
    assert on_existing(planned) == ["large-0"]
    assert not planned.unplaced


def test_s138_no_spread_is_worse_than_in_the_first_plan() -> None:
    """kube-scheduler would bind all pods to the only node, as it knows no zone without one."""
    softly = SpreadConstraint(lbl.ZONE, when_unsatisfiable="ScheduleAnyway", selector=Selector({"app": "web"}))
    work = Workloads().add("web", 3, shape(1000, GI, labels={"app": "web"}, spread=(softly,)))
    planned = best_plan(problem(work, ladder(2, 4), nodes=[NODE], nominations=True), EFFORT)
    assert len(on_existing(planned)) < 3


def test_what_is_not_known_stays_as_the_planner_has_it() -> None:
    small = {"cpu": 2000, "memory": 8 * GI, "pods": 20}
    on_its_way = replace(NODE, name="n-2", available=small, requirements=(spec(lbl.ZONE, "In", "z1"),))
    asked = queued()
    told_before = replace(asked, pods=tuple(replace(pod, target="n-1") for pod in asked.pods))
    stateful = Workloads().add("stateful", 1, shape(500, volumes=(VolumeRef("data", "data-0"),)))
    waits_for_volume = replace(asked, pods=(*asked.pods, *stateful.pods), shapes={**asked.shapes, **stateful.shapes})
    for unknown in (queued((NODE, on_its_way)), told_before, waits_for_volume):
        assert "large-0" in on_existing(best_plan(unknown, EFFORT))


def test_the_trace_tells_where_every_pod_goes() -> None:
    asked, tracer = queued(), FunnelTracer()
    planned = best_plan(asked, EFFORT, tracer)
    places = {uid: place for group in tracer.funnel.classes for place, uids in group.placed for uid in uids}
    assert places == {"large-0": 0, **dict.fromkeys(on_existing(planned), "n-1")}
    assert [claim.node_pool for claim in tracer.funnel.claims] == ["default"]
    assert planned == best_plan(asked, EFFORT)


def mixed(seed: int) -> Problem:
    """Workloads of which some are spread, beside nodes with room."""
    dice = random.Random(seed)
    work = Workloads()
    for number in range(dice.randint(2, 6)):
        keys = dice.sample([lbl.ZONE, lbl.HOSTNAME, lbl.CAPACITY_TYPE], dice.randint(0, 2))
        labels = {"app": f"a{number}"}
        spread = tuple(
            SpreadConstraint(
                key, when_unsatisfiable=dice.choice(["DoNotSchedule", "ScheduleAnyway"]), selector=Selector(labels)
            )
            for key in keys
        )
        size = shape(dice.choice((100, 500, 900, 1_500, 3_000)), GI, labels=labels, spread=spread)
        work = work.add(f"w{number}", dice.randint(1, 10), size, created=dice.randint(1, 9))
    nodes = [
        replace(NODE, name=f"n-{n}", labels={lbl.HOSTNAME: f"n-{n}", lbl.ZONE: dice.choice(["z1", "z2"])})
        for n in range(dice.randint(1, 4))
    ]
    return problem(work, ladder(2, 4, 8), nodes=nodes, nominations=True)


@pytest.mark.parametrize("seed", [218, 258, 512, 547, 555, 607, 868, 1078])  # of 1,300 those that once were
def test_s138_no_mix_is_spread_worse_than_at_first_nor_dearer_for_nothing(seed: int) -> None:
    asked, first = first_plan(mixed(seed))
    planned = best_plan(asked, EFFORT)
    assert SpreadJudge(asked, first).keeps(planned)
    assert len(planned.placed) >= len(first.placed)
    dearer = total_price(planned.claims) > total_price(first.claims) + TOLERANCE
    assert not dearer or len(planned.unbound) < len(best_of_all(asked, first).unbound)


def best_of_all(asked: Problem, first: Plan) -> Plan:
    """The plan that leaves nothing to kube-scheduler."""
    return _optimized(asked, first, EFFORT, SpreadJudge(asked, first)).plan
