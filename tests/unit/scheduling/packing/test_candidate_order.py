"""In what order nodes and types are taken."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput
from tests.support.scenarios.problems import Workloads, instance_type, ladder, pool, problem, shape, spec


def node(name: str, initialized: bool = True) -> NodeInput:
    return NodeInput(name, "", {}, (), {"cpu": 1000, "pods": 10}, initialized)


def test_s76_nodes_that_are_initialized_come_first_and_then_go_by_name() -> None:
    work = Workloads().add("web", 3, shape(1000))
    nodes = [node("a", initialized=False), node("c"), node("b")]
    placed = {placement.node: placement.pods for placement in plan(problem(work, ladder(2), nodes=nodes)).placements}
    assert placed == {"b": ("web-0",), "c": ("web-1",), "a": ("web-2",)}


def test_s67_without_a_template_pods_still_go_to_existing_nodes() -> None:
    nothing = pool("p", spec(lbl.INSTANCE_TYPE, "In", "no-such-type"))
    planned = plan(problem(Workloads().add("web", 2, shape(1000)), ladder(2), nothing, nodes=[node("a")]))
    assert [placement.pods for placement in planned.placements] == [("web-0",)]
    assert [(group.pods, group.reasons[0].code) for group in planned.unplaced] == [(("web-1",), "no-instance-types")]


def test_s204_s162_types_go_by_their_cheapest_offering_then_by_name_and_are_cut() -> None:
    types = [instance_type(name, 4, price=price) for name, price in (("c", 0.2), ("b", 0.1), ("a", 0.2), ("d", 0.05))]
    gone = Catalogue((*types[:3], instance_type("d", 4, price=0.05, available=False)))
    work = Workloads().add("web", 1, shape(1000))
    assert plan(problem(work, Catalogue(tuple(types)))).claims[0].instance_types == ("d", "b", "a", "c")
    assert plan(problem(work, gone)).claims[0].instance_types[0] == "b"
    assert plan(problem(work, Catalogue(tuple(types)), max_instance_types=2)).claims[0].instance_types == ("d", "b")


def test_s204_what_counts_is_what_the_claim_may_buy() -> None:
    """By spot prices `a` is the cheaper one, by on-demand prices `b`."""

    def offered(name: str, on_demand: float, spot: float) -> InstanceType:
        offers = (Offering("z1", lbl.ON_DEMAND, on_demand), Offering("z1", lbl.SPOT, spot))
        return instance_type(name, 4, offerings=offers, zones=("z1",))

    types = Catalogue((offered("a", 0.2, 0.01), offered("b", 0.1, 0.05)))
    work = Workloads().add("web", 1, shape(1000))
    on_demand = pool("p", spec(lbl.CAPACITY_TYPE, "In", lbl.ON_DEMAND))
    assert plan(problem(work, types)).claims[0].instance_types == ("a", "b")
    assert plan(problem(work, types, on_demand)).claims[0].instance_types == ("b", "a")
