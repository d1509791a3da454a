"""The search for a set of nodes on which kube-scheduler binds every pod (S-208)."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler, new_node_name, unbound_pods
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.larger_sets import larger_sets, spread_out
from kerf.engine.scheduling.optimizer.node_sets.leftover_estimate import LeftoverEstimate
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode
from kerf.engine.scheduling.optimizer.node_sets.node_set_search import (
    LEFTOVER_PRICE_FACTOR,
    NodeSetSearch,
    price_in_the_end,
)
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, problem, shape, spec

EFFORT = 100


def late_and_large(*types: int) -> Problem:
    """Small pods come first in the queue and spread over all nodes; what comes last needs most of one."""
    work = Workloads().add("a-small", 8, shape(900, GI), created=1).add("z-large", 2, shape(3000, GI), created=2)
    return problem(work, ladder(*types))


def anything(_: NodeSet) -> bool:
    """Whatever becomes of spreads."""
    return True


def node_sets_of(asked: Problem, effort: Effort | None = None) -> NodeSets:
    options = InstanceOptions(asked)
    return NodeSets(asked, plan(asked), options, effort or Effort(10**9))


def sized(node_sets: NodeSets, asked: Problem, kind: str, count: int) -> tuple[NewNode, ...]:
    """So many nodes of a type."""
    (first, *_) = node_sets.new_nodes.of_claims(plan(asked).claims)
    return tuple(e for e in first.sizes if e.claim.instance_types[0] == kind) * count


def evaluated(node_sets: NodeSets, asked: Problem, nodes: tuple[NewNode, ...]) -> NodeSet:
    found = node_sets.evaluate(nodes, frozenset(pod.uid for pod in asked.pods))
    assert found is not None
    return found


def begun(asked: Problem, effort: Effort, kind: str, count: int) -> tuple[NodeSetSearch, NodeSet]:
    """A search, and the set of nodes that it begins with: so many of a type."""
    node_sets = node_sets_of(asked, effort)
    start = evaluated(node_sets, asked, sized(node_sets, asked, kind, count))
    return NodeSetSearch(node_sets, effort, anything), start


def test_s208_fewer_larger_nodes_are_expected_to_have_room_for_a_late_large_pod() -> None:
    asked = late_and_large(4, 8, 16)
    node_sets = node_sets_of(asked)
    four = evaluated(node_sets, asked, sized(node_sets, asked, "t04", 4))
    assert four.bindings.unbound
    estimate = LeftoverEstimate(node_sets, four)
    two, one = sized(node_sets, asked, "t08", 2), sized(node_sets, asked, "t16", 1)
    assert estimate.unbound(four.nodes) >= len(four.bindings.unbound)
    assert estimate.unbound(one) == len(evaluated(node_sets, asked, one).bindings.unbound) == 0
    assert estimate.unbound(four.nodes) >= estimate.unbound(two) >= estimate.unbound(one)


def test_s208_pods_that_must_be_apart_are_expected_to_need_a_node_each() -> None:
    apart = AffinityTerm(lbl.HOSTNAME, Selector({"app": "apart"}))
    evenly = SpreadConstraint(lbl.HOSTNAME, selector=Selector({"app": "evenly"}), max_skew=2)
    work = Workloads().add("apart", 4, shape(500, labels={"app": "apart"}, anti_affinity=(apart,)))
    work.add("evenly", 6, shape(500, labels={"app": "evenly"}, spread=(evenly,)))
    asked = problem(work, ladder(2, 16))
    node_sets = node_sets_of(asked)
    whole = evaluated(node_sets, asked, sized(node_sets, asked, "t02", 6))
    estimate = LeftoverEstimate(node_sets, whole)
    large = sized(node_sets, asked, "t16", 1)
    assert estimate.unbound(large * 4) == 0
    assert estimate.unbound(large * 2) == 2 + 2
    assert estimate.unbound(large) == 3 + 4


def test_s208_pods_that_may_go_nowhere_are_expected_to_stay_unbound() -> None:
    work = Workloads().add("here", 3, shape(500, node_selector={lbl.INSTANCE_TYPE: "t04"}))
    asked = problem(work, ladder(4, 8))
    node_sets = node_sets_of(asked)
    (node,) = node_sets.new_nodes.of_claims(plan(asked).claims)
    estimate = LeftoverEstimate(node_sets, evaluated(node_sets, asked, (node,)))
    assert estimate.unbound((node,)) == 0
    assert estimate.unbound(()) == 3


def test_s208_a_late_large_pod_gets_its_place_by_larger_nodes() -> None:
    asked = late_and_large(4, 8, 16)
    best = best_plan(asked, 100)
    assert best.rated
    assert best.unbound == ()
    assert all(unbound_pods(asked, best, habit) == () for habit in SCHEDULER_VARIANTS)
    assert len(best.claims) < len(plan(late_and_large(4)).claims)


def test_s208_nothing_is_tried_twice_and_nothing_without_effort() -> None:
    asked, effort = late_and_large(4), Effort(2_400_000)
    node_sets = node_sets_of(asked, effort)
    start = evaluated(node_sets, asked, sized(node_sets, asked, "t04", 4))
    before = effort.left
    assert evaluated(node_sets, asked, start.nodes) is start
    assert effort.left == before
    search = NodeSetSearch(node_sets, effort, anything)
    whole = search.whole([search.trail(start, math.inf)], math.inf)
    assert whole is not None
    assert not whole.bindings.unbound
    effort.charge(effort.left)
    assert search.whole([search.trail(start, math.inf)], math.inf) is None


def test_s208_a_search_without_success_ends_with_its_effort() -> None:
    """Each of the late pods needs a node of the largest type for itself, and the small ones are on all nodes first."""
    work = Workloads().add("a-small", 40, shape(300, GI), created=1).add("z-large", 6, shape(3800, GI), created=2)
    asked = problem(work, ladder(1, 2, 3, 4))
    effort = Effort(120_000)
    search, start = begun(asked, effort, "t04", 9)
    before = effort.left
    below = 1.3 * start.price
    assert search.whole([search.trail(start, below)], below) is None
    assert effort.left < before // 2


def test_s208_each_next_set_that_binds_whole_is_cheaper_than_the_one_before() -> None:
    work = Workloads().add("a-small", 24, shape(900, GI), created=1).add("z-large", 4, shape(3000, GI), created=2)
    asked = problem(work, ladder(2, 4, 8, 16, 32))
    search, start = begun(asked, Effort(1_200_000), "t08", 3)
    prices = [math.inf]
    trails = [search.trail(start, math.inf)]
    while (found := search.whole(trails, prices[-1])) is not None:
        assert not found.bindings.unbound
        prices.append(found.price)
    assert len(prices) > 2
    assert prices == sorted(prices, reverse=True)


def test_s208_a_node_that_holds_reservations_is_in_every_set_that_is_tried() -> None:
    asked = late_and_large(2, 4, 8, 16)
    node_sets = node_sets_of(asked)
    held = replace(plan(asked).claims[0], reservations=("r",))
    (fixed,) = node_sets.new_nodes.of_claims([held])
    assert fixed.fixed
    start = evaluated(node_sets, asked, (fixed, *sized(node_sets, asked, "t04", 2)))
    tried, _ = larger_sets(node_sets, start, [], math.inf)
    assert len(tried) > 10
    assert all(fixed in node_set for node_set in tried)


def test_s208_a_node_without_pods_is_not_replaced_by_nodes_of_one_type() -> None:
    work = Workloads().add("one", 1, shape(500, node_selector={lbl.ZONE: "z1"}))
    asked = problem(work.add("other", 1, shape(500, node_selector={lbl.ZONE: "z2"})), ladder(2, 4))
    node_sets = node_sets_of(asked)
    start = node_sets.evaluate(node_sets.new_nodes.of_claims(plan(asked).claims), frozenset({"one-0"}))
    assert start is not None
    assert start.bindings.node_of == {"one-0": new_node_name(0)}
    assert node_sets.uniform(start.nodes[0], start, [0], 1)
    assert node_sets.uniform(start.nodes[1], start, [1], 1) == []
    assert larger_sets(node_sets, start, [], math.inf)[0]


def test_s208_unbound_pods_count_in_the_price_of_a_set_in_the_end() -> None:
    asked = late_and_large(4)
    node_sets = node_sets_of(asked)
    four, six = (evaluated(node_sets, asked, sized(node_sets, asked, "t04", count)) for count in (4, 6))
    assert four.bindings.unbound
    assert not six.bindings.unbound
    assert price_in_the_end(six) == pytest.approx(six.price)
    assert price_in_the_end(four) == pytest.approx(
        four.price * (1 + LEFTOVER_PRICE_FACTOR * len(four.bindings.unbound) / 10)
    )


def test_s208_equally_promising_sets_are_tried_spread_out() -> None:
    assert list(spread_out("abcdefgh")) == ["a", "e", "c", "g", "b", "d", "f", "h"]
    assert [sorted(spread_out(range(count))) for count in range(9)] == [list(range(count)) for count in range(9)]


@pytest.mark.parametrize(("types", "chosen"), [((4, 64), ["t04"] * 4), ((4, 28), ["t28"]), ((4, 8), ["t08", "t08"])])
def test_s208_a_plan_that_binds_whole_costs_no_more_than_twice_the_nodes_for_pods_left_over(
    types: tuple[int, ...], chosen: list[str]
) -> None:
    """Four small nodes leave two pods over. One node of 64 costs more than these and two more for each pod that is left
    over. One of 28 costs less than that, though more than with one for each; two of eight cost no more than the four.
    """
    work = Workloads().add("a-small", 8, shape(900, GI), created=1).add("z-large", 2, shape(3500, GI), created=2)
    best = best_plan(problem(work, ladder(*types)), EFFORT)
    assert [claim.instance_types[0] for claim in best.claims] == chosen
    assert len(best.unbound) == (2 if types == (4, 64) else 0)


def test_s208_the_nodes_for_pods_left_over_are_one_for_each_where_the_planner_takes_a_dearer_one() -> None:
    """It fills the largest type first."""
    asked = late_and_large(4, 64)
    effort = Effort(1_000_000)
    node_sets = node_sets_of(asked, effort)
    start = evaluated(node_sets, asked, sized(node_sets, asked, "t04", 4))
    (further,) = node_sets.further(start) or []
    assert further.claim.instance_types == ("t64",)
    assert len(start.bindings.unbound) == 2
    (small,) = sized(node_sets, asked, "t04", 1)
    assert NodeSetSearch(node_sets, effort, anything).later_price(start) == pytest.approx(
        LEFTOVER_PRICE_FACTOR * 2 * small.claim.price
    )


def test_s208_a_cheaper_plan_that_binds_whole_is_looked_for_though_the_first_one_does() -> None:
    work = Workloads().add("a-small", 5, shape(500, GI), created=1).add("z-large", 4, shape(1800, GI), created=2)
    asked = problem(work, ladder(2, 32, 64))
    best = best_plan(asked, EFFORT)
    assert not unbound_pods(asked, plan(asked))
    assert best.unbound == ()
    assert math.fsum(claim.price for claim in best.claims) < 0.6 * best.first_price


@pytest.mark.parametrize(("spare", "known"), [(-1, False), (0, True)])
def test_s208_a_run_ends_once_more_pods_than_allowed_are_certain_to_stay_unbound(spare: int, known: bool) -> None:
    """`spare`: by how many more, or fewer, than are."""
    asked = late_and_large(4)
    effort = Effort(10**9)
    node_sets, anew = node_sets_of(asked), node_sets_of(asked, effort)
    left = len(evaluated(node_sets, asked, sized(node_sets, asked, "t04", 4)).bindings.unbound)
    assert left > 0
    nodes, uids = sized(anew, asked, "t04", 4), frozenset(pod.uid for pod in asked.pods)
    found = anew.evaluate(nodes, uids, (len(SCHEDULER_VARIANTS), left + spare))
    assert (found is not None) == known
    assert effort.left < 10**9


def test_s208_a_pod_that_waits_for_others_is_not_certain_to_stay_unbound() -> None:
    """A pod that must be beside one that comes later finds no place at first."""
    beside = AffinityTerm(lbl.HOSTNAME, Selector({"app": "late"}))
    work = Workloads().add("a", 1, shape(500, labels={"app": "early"}, affinity=(beside,)), created=1)
    work.add("b", 1, shape(500, labels={"app": "late"}), created=2)
    asked = problem(work, ladder(4))
    node_sets = node_sets_of(asked)
    nodes = node_sets.new_nodes.of_claims(plan(asked).claims)
    found = node_sets.evaluate(nodes, frozenset(pod.uid for pod in asked.pods), (len(SCHEDULER_VARIANTS), 0))
    assert found is not None
    assert found.bindings.unbound == ()
    assert len(KubeScheduler(asked).queue(SCHEDULER_VARIANTS[0])) == 2


LARGE, ROOMY = (instance_type(name, 8, price=price) for name, price in (("large", 0.3), ("roomy", 0.6)))
SMALL = instance_type("small", 2, price=0.5)


@pytest.mark.parametrize(("types", "offered"), [((LARGE, SMALL), []), ((LARGE, SMALL, ROOMY), ["large", "small"])])
def test_s107_types_with_less_room_do_not_count_for_min_values(
    types: tuple[InstanceType, ...], offered: list[str]
) -> None:
    """A node that is filled can become none of them, however dear they are."""
    two = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))
    asked = problem(Workloads().add("web", 1, shape(1000)), Catalogue(types), two)
    node_sets = node_sets_of(asked)
    (node,) = node_sets.new_nodes.of_claims(plan(asked).claims)
    assert [size.claim.instance_types[0] for size in node.sizes] == offered
