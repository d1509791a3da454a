"""The order and the rounds of a pass (S-31, S-35, S-87 to S-89)."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import HostPort
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.scenarios.planned import codes
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, preferred, problem, shape


def test_s87_hopeless_pods_are_tried_once_each() -> None:
    """As many steps as pods are enough to know it, and one fewer is not."""
    work = Workloads().add("a", 5, shape(99_000))
    assert plan(problem(work, ladder(2), max_steps=5)).truncated == ()
    assert plan(problem(work, ladder(2), max_steps=4)).truncated == ("a-4",)


def test_s88_nodes_that_exist_come_before_claims_and_these_before_new_ones() -> None:
    work = Workloads().add("large", 1, shape(3_500)).add("small", 3, shape(400))
    there = NodeInput("n", "", {}, (), {"cpu": 400, "memory": GI, "pods": 9})
    planned = plan(problem(work, ladder(4), nodes=[there]))
    assert [(placement.node, placement.pods) for placement in planned.placements] == [("n", ("small-0",))]
    assert sorted(claim.pods for claim in planned.claims) == [("large-0", "small-1"), ("small-2",)]


def test_s88_why_a_pod_has_no_place_is_what_the_nodepools_say() -> None:
    """Not what nodes and open claims do, and of every NodePool in their order."""
    work = Workloads().add("a", 1, shape(100)).add("b", 1, shape(99_000))
    there = NodeInput("n", "", {}, (), {"cpu": 0, "memory": 0, "pods": 0})
    planned = plan(problem(work, ladder(2), pool("x", weight=1), pool("y", weight=9), nodes=[there]))
    (left,) = planned.unplaced
    assert [(reason.code, reason.params["node_pool"]) for reason in left.reasons] == [
        (SchedulingCode.TYPES_RESOURCES, "y"),
        (SchedulingCode.TYPES_RESOURCES, "x"),
    ]


def test_s31_s35_a_pod_gives_up_what_it_has_to_and_one_that_fails_nothing() -> None:
    """Two preferences, one of which can be met: it is kept. The last error counts, of a pod that keeps both."""
    both = (preferred(9, (lbl.ZONE, "In", ("nowhere",))), preferred(1, (lbl.ZONE, "In", ("z2",))))
    work = Workloads().add("a", 1, shape(preferred_terms=both)).add("b", 1, shape(99_000, preferred_terms=both))
    tracer = FunnelTracer()
    planned = plan(problem(work, ladder(2)), tracer)
    (claim,) = planned.claims
    assert next(requirement.values for requirement in claim.requirements if requirement.key == lbl.ZONE) == ("z2",)
    assert codes(planned) == {"b-0": [SchedulingCode.TYPES_RESOURCES]}
    (failed,) = [pod_class for pod_class in tracer.funnel.classes if pod_class.unplaced]
    assert failed.requirements == (f"{lbl.ZONE} In [nowhere]",), "as it was queued"


def test_s89_of_claims_with_as_many_pods_the_one_that_grew_last_comes_first() -> None:
    """A stable sort of the list in which a claim that has grown stands before those of its new size."""
    apart = shape(900, host_ports=(HostPort(80),))
    work = Workloads().add("a", 3, apart).add("b", 3, shape(100)).add("c", 1, shape(50))
    planned = plan(problem(work, ladder(2)))
    assert [claim.pods for claim in planned.claims] == [("a-0", "b-0"), ("a-1", "b-1"), ("a-2", "b-2", "c-0")]
