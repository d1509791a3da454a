"""Larger sets of nodes: which pods a node admits, and what it costs to look for such sets."""

from __future__ import annotations

import math

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.larger_sets import larger_sets
from kerf.engine.scheduling.optimizer.node_sets.leftover_estimate import NodeAdmission
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, problem, shape


def started(asked: Problem) -> tuple[NodeSets, NodeSet]:
    """The nodes of the first plan."""
    made = plan(asked)
    options = InstanceOptions(asked)
    node_sets = NodeSets(asked, made, options, Effort(10**9))
    found = node_sets.evaluate(node_sets.new_nodes.of_claims(made.claims), made.placed)
    assert found is not None
    return node_sets, found


def test_a_node_admits_the_pods_that_it_has_room_for_and_that_may_go_there() -> None:
    work = Workloads().add("small", 1, shape(500)).add("large", 1, shape(3_000)).add("wide", 1, shape(500, 6 * GI))
    work.add("elsewhere", 1, shape(500, node_selector={lbl.ZONE: "z2"}))
    work.add("tolerant", 1, shape(500, tolerations=(Toleration("t", "Exists"),), node_selector={"tainted": "yes"}))
    tainted = pool("tainted", taints=(Taint("t", "NoSchedule"),), labels={"tainted": "yes"})
    asked = problem(work, ladder(2, 8), pool("open", labels={"tainted": "no"}), tainted)
    node_sets, node_set = started(asked)
    admission = NodeAdmission(node_sets, asked.pods)
    kinds = {size.kind: size for node in node_set.nodes for size in node.sizes}
    assert len(kinds) > 2
    for node in kinds.values():
        names = {pod.name.split("-")[0] for n, pod in enumerate(asked.pods) if admission.admitted(node) >> n & 1}
        roomy = node.claim.instance_types[0] == "t08"
        if node.claim.node_pool == "tainted":
            assert names == {"tolerant"}
        else:
            here = {"small", "large", "wide"} if roomy else {"small"}
            assert names == here | ({"elsewhere"} if node.info.labels[lbl.ZONE] == "z2" else set())


def test_estimating_a_larger_set_is_charged_even_if_it_is_too_dear_to_be_tried() -> None:
    work = Workloads().add("a-small", 8, shape(900, GI), created=1).add("z-large", 2, shape(3000, GI), created=2)
    asked = problem(work, ladder(4, 8, 16))
    found, touches = larger_sets(*started(asked), [], math.inf)
    none, still = larger_sets(*started(asked), [], 0.0)
    assert found
    assert none == []
    assert 0 < still < touches
    node_sets, node_set = started(problem(work, ladder(*range(4, 64))))
    assert larger_sets(node_sets, node_set, [], 0.0)[1] > still, "more types are more to think of"
    assert (
        larger_sets(node_sets, node_set, [], 0.0)[1]
        < larger_sets(*started(problem(work, ladder(*range(4, 64)))), [], 0.0)[1]
    ), "what is known already is not paid for twice"
