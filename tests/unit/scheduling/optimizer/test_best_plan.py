"""Plans optimized within an effort: what the search gains, and what it must not change."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint, Taint
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.optimizer.alternative_plans import may_replace
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.effort import (
    Effort,
    planning_touches,
    touches_for_binding,
    touches_for_cheaper,
    touches_for_rating,
)
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import (
    GI,
    Workloads,
    dear_giant,
    instance_type,
    ladder,
    pool,
    preferred,
    problem,
    shape,
    spec,
)

EFFORT = 100
ZONE_SPREAD = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"}))


def price(planned: Plan) -> float:
    return math.fsum(claim.price for claim in planned.claims)


def test_s208_many_small_nodes_are_taken_where_the_largest_is_dear() -> None:
    asked = problem(Workloads().add("web", 30, shape(1900, 3 * GI)), dear_giant())
    first, best = plan(asked), best_plan(asked, EFFORT)
    assert first.claims[0].instance_types == ("t64",)
    assert price(best) < price(first) / 5
    assert math.isclose(best.first_price, price(first))
    assert 0 < best.lower_bound <= price(best)
    assert best.rated
    assert best.unbound == ()


def test_effort_0_is_the_first_plan_unrated() -> None:
    asked = problem(Workloads().add("web", 30, shape(1900)), dear_giant())
    assert best_plan(asked, 0) == plan(asked)
    assert not best_plan(asked, 0).rated


def test_claims_keep_every_type_that_they_may_become() -> None:
    """Types are left out only to find groups: launches need alternatives."""
    asked = problem(Workloads().add("web", 30, shape(1900, 3 * GI)), dear_giant())
    for claim in best_plan(asked, EFFORT).claims:
        assert claim.instance_types[-1] == "t64"
        assert claim.price == min(0.03 * cores for cores in (2, 4, 8, 16) if f"t{cores:02d}" in claim.instance_types)


def test_pods_are_matched_to_what_is_left_of_a_node() -> None:
    """Pods with much memory and pods with much CPU share nodes that are cheaper than two kinds of nodes."""
    work = Workloads().add("cpu", 6, shape(3000, GI)).add("memory", 6, shape(500, 6 * GI))
    types = Catalogue(tuple(instance_type(f"t{cores:02d}", cores, memory=2 * cores * GI) for cores in (4, 8, 64)))
    best = best_plan(problem(work, types), EFFORT)
    assert price(best) <= price(plan(problem(work, types)))
    assert best.unbound == ()


def test_s33_s208_a_soft_taint_that_every_pod_must_put_up_with_makes_no_node_dearer() -> None:
    sizes = (("c", 2, 0.17), ("m", 4, 0.2), ("r", 8, 0.25))
    types = Catalogue(tuple(instance_type(name, 4, memory=4 * by * GI, price=usd) for name, by, usd in sizes))
    work = Workloads().add("cpu", 3, shape(1900, GI)).add("memory", 3, shape(100, 7 * GI))
    soft = pool("p", taints=(Taint("old", "PreferNoSchedule"),))
    plans = [best_plan(problem(work, types, node_pool, nominations=True), EFFORT) for node_pool in (pool("p"), soft)]
    assert price(plans[1]) == price(plans[0])


def test_s142_s208_pods_that_must_be_together_are_no_reason_to_take_a_dear_giant() -> None:
    """On small nodes a large pod would take the room beside the first of the pair."""
    together = (AffinityTerm(lbl.HOSTNAME, Selector({"app": "pair"})),)
    apart = (SpreadConstraint(lbl.HOSTNAME, 3, selector=Selector({"app": "big"})),)
    work = Workloads().add("pair", 2, shape(700, labels={"app": "pair"}, affinity=together))
    work.add("big", 1, shape(3000, labels={"app": "big"}, spread=apart))
    best = best_plan(problem(work, Catalogue((instance_type("t04", 4), instance_type("t32", 32, price=10)))), EFFORT)
    assert [claim.instance_types[0] for claim in best.claims] == ["t04", "t04"]


@pytest.mark.parametrize("key", [lbl.ZONE, lbl.CAPACITY_TYPE])
def test_s143_s208_a_pod_stays_with_others_when_its_node_gets_back_types_that_are_sold_elsewhere(key: str) -> None:
    """Without the large type all small nodes are where the first pod is, so nothing else kept the second one there."""
    zone, kind = ("z2", lbl.SPOT) if key == lbl.ZONE else ("z1", lbl.ON_DEMAND)
    small = instance_type("small", 2, price=0.1, zones=["z1"], capacity_types=[lbl.SPOT])
    large = instance_type("large", 4, price=0.5, zones=[zone], capacity_types=[kind])
    near = AffinityTerm(key, Selector({"app": "web"}))
    work = Workloads().add("web", 2, shape(labels={"app": "web"}, affinity=(near,))).add("plain", 2, shape(1200))
    asked = problem(work, Catalogue((small, large)))
    best = best_plan(asked, EFFORT)
    assert [claim.instance_types for claim in best.claims] == [("small",), ("small",)]
    assert faults(asked, best) == []


def test_a_spread_holds_when_types_are_left_out() -> None:
    work = Workloads().add("web", 12, shape(1900, labels={"app": "web"}, spread=(ZONE_SPREAD,)))
    asked = problem(work, dear_giant())
    best = best_plan(asked, EFFORT)
    zones = [
        value for c in best.claims for r in c.requirements if r.key == lbl.ZONE for value in r.values * len(c.pods)
    ]
    assert sorted(zones.count(zone) for zone in ("z1", "z2", "z3")) == [4, 4, 4]
    assert price(best) <= price(plan(asked))


def test_s208_pods_that_are_spread_are_regrouped_where_they_are() -> None:
    """No type can be left out, for the sake of one pod; what is spread fills one giant a zone all the same."""
    web = shape(1900, labels={"app": "web"}, spread=(ZONE_SPREAD,))
    asked = problem(Workloads().add("web", 30, web).add("whole", 1, shape(60_000)), dear_giant())
    first, best = plan(asked), best_plan(asked, EFFORT)
    assert sum(claim.instance_types == ("t64",) for claim in first.claims) == 3
    assert sum(claim.instance_types == ("t64",) for claim in best.claims) == 1
    zones = [
        value
        for c in best.claims
        for r in c.requirements
        if r.key == lbl.ZONE
        for value in r.values * sum(uid.startswith("web") for uid in c.pods)
    ]
    assert sorted(zones.count(zone) for zone in ("z1", "z2", "z3")) == [10, 10, 10]
    assert faults(asked, best) == []


def test_pods_share_a_node_of_less_weight_with_one_that_the_first_plan_puts_there() -> None:
    """S-63: which of the pods that are alike goes with it is all the same; a node for others alone is not."""
    asked = problem(
        Workloads().add("low", 1, shape(900)).add("any", 2, shape(800)),
        ladder(2),
        pool("high", weight=10),
        pool("low", weight=1),
    )
    first = plan_of(asked, ("low", ["low-0", "any-0"]), ("high", ["any-1"]))
    own = {"low-0": asked.pool_of["low"].pool, **dict.fromkeys(["any-0", "any-1"], asked.pool_of["high"].pool)}
    assert may_replace(asked, first, plan_of(asked, ("low", ["low-0", "any-1"]), ("high", ["any-0"])), own)
    assert not may_replace(asked, first, plan_of(asked, ("low", ["any-1"]), ("high", ["low-0", "any-0"])), own)


def test_s63_pods_of_a_kind_change_nodes_with_one_another() -> None:
    """Of two equal pods one has room beside the pod that needs the NodePool of less weight. Either may be that one, but
    they are no reason for a second node there."""
    low = shape(900, node_selector={lbl.NODEPOOL: "low"})
    work = Workloads().add("low", 1, low).add("any", 2, shape(900))
    asked = problem(work, ladder(1, 2), pool("high", weight=10), pool("low", weight=1))
    own = {"low-0": "low", "any-0": "low", "any-1": "high"}
    pools = {uid: asked.pool_of[name].pool for uid, name in own.items()}
    first = plan_of(asked, ("low", ["low-0", "any-0"]), ("high", ["any-1"]))
    changed = plan_of(asked, ("low", ["any-1"]), ("low", ["low-0"]), ("high", ["any-0"]))
    assert may_replace(asked, first, changed, pools)
    assert not may_replace(asked, first, plan_of(asked, ("low", ["any-0"]), ("low", ["any-1"]), ("high", ["low-0"])))


@pytest.mark.parametrize("nominations", [False, True])
def test_s63_no_node_of_less_weight_is_opened_for_pods_that_kube_scheduler_would_put_there(nominations: bool) -> None:
    """On the nodes of "high" there is room for as much as the first plan puts there, but not for both large pods."""
    spot = {lbl.CAPACITY_TYPE: "spot"}
    work = Workloads().add("w1", 2, shape(3000, 3 * GI, labels={"app": "w1"}))
    for name, cpu, memory in (("w0", 1900, 3), ("w2", 900, 2)):
        apart = (AffinityTerm(lbl.HOSTNAME, Selector({"app": name})),)
        work.add(name, 1, shape(cpu, memory * GI, labels={"app": name}, anti_affinity=apart, node_selector=spot))
    high = pool("a", spec(lbl.CAPACITY_TYPE, "In", "on-demand"), weight=100)
    low = pool("b", spec(lbl.CAPACITY_TYPE, "In", "spot"), weight=50)
    asked = problem(work, ladder(2, 4, 8, 16), high, low, nominations=nominations)
    best = best_plan(asked, EFFORT)
    assert {c.node_pool for c in best.claims if all(uid.startswith("w1") for uid in c.pods)} == {"a"}


def test_s63_pods_that_only_share_a_node_of_less_weight_open_none_there() -> None:
    """The first plan fills up the giant that one pod needs. In smaller nodes not all find room beside that pod."""
    dear = pool("dear", spec(lbl.CAPACITY_TYPE, "In", "on-demand"), weight=10)
    cheap = pool("cheap", spec(lbl.CAPACITY_TYPE, "In", "spot"))
    spot = shape(1900, node_selector={lbl.CAPACITY_TYPE: "spot"})
    asked = problem(Workloads().add("spot", 1, spot).add("any", 12, shape(1400)), dear_giant(), dear, cheap)
    first, best = plan(asked), best_plan(asked, EFFORT)
    assert [claim.node_pool for claim in first.claims] == ["cheap"]
    assert faults(asked, best) == []
    for claim in best.claims:
        assert claim.node_pool == "dear" or "spot-0" in claim.pods


def plan_of(asked: Problem, *nodes: tuple[str, list[str]]) -> Plan:
    (claim, *_) = plan(asked).claims
    return Plan(tuple(replace(claim, node_pool=name, pods=tuple(pods)) for name, pods in nodes))


def test_pods_stay_off_node_pools_of_less_weight() -> None:
    dear = pool("dear", spec(lbl.CAPACITY_TYPE, "In", "on-demand"), weight=10)
    cheap = pool("cheap", spec(lbl.CAPACITY_TYPE, "In", "spot"))
    best = best_plan(problem(Workloads().add("web", 5, shape(1900)), dear_giant(), dear, cheap), EFFORT)
    assert {claim.node_pool for claim in best.claims} == {"dear"}


def test_the_cheaper_of_two_node_pools_of_one_weight_is_taken() -> None:
    """S-63 takes the first by name, whatever it costs."""
    dear = pool("z-dear", spec(lbl.CAPACITY_TYPE, "In", "on-demand"))
    cheap = pool("a-cheap", spec(lbl.CAPACITY_TYPE, "In", "spot"))
    asked = problem(Workloads().add("web", 5, shape(1900)), dear_giant(), dear, cheap)
    assert {claim.node_pool for claim in plan(asked).claims} == {"z-dear"}
    assert {claim.node_pool for claim in best_plan(asked, EFFORT).claims} == {"a-cheap"}


def test_s69_the_limit_on_nodes_is_kept() -> None:
    asked = problem(Workloads().add("web", 30, shape(1900, 3 * GI)), dear_giant(), pool(limits={"nodes": 2}))
    assert len(best_plan(asked, EFFORT).claims) <= max(2, len(plan(asked).claims))


def test_s70_limits_on_resources_are_kept() -> None:
    asked = problem(Workloads().add("web", 30, shape(1900, 3 * GI)), dear_giant(), pool(limits={"cpu": 80_000}))
    best = best_plan(asked, EFFORT)
    assert not best.unplaced
    cores = {offered_type.name: offered_type.capacity["cpu"] for offered_type in dear_giant().types}
    assert sum(max(cores[name] for name in claim.instance_types) for claim in best.claims) <= 80_000


@pytest.mark.parametrize("weight", [0, 10])
def test_s70_the_limits_of_one_node_pool_make_no_other_dearer(weight: int) -> None:
    """Small nodes would be cheaper for all pods, but more of them than the limit allows."""
    types = Catalogue((instance_type("t01", 1, price=0.01), instance_type("t08", 8, price=1)))
    work = Workloads().add("first", 10, shape(700, node_selector={lbl.NODEPOOL: "limited"}))
    work.add("other", 4, shape(700, node_selector={lbl.NODEPOOL: "other"}))
    pools = pool("limited", weight=weight, limits={"cpu": 8000}), pool("other")
    best = best_plan(problem(work, types, *pools), EFFORT)
    assert [claim.instance_types[0] for claim in best.claims if claim.node_pool == "other"] == ["t01"] * 4
    assert [claim.instance_types for claim in best.claims if claim.node_pool == "limited"] == [("t08",)]


def test_no_preference_is_given_up_to_save_money() -> None:
    """S-36: only the giant has what the pods prefer."""
    giant = instance_type("t64", 64, price=64.0, labels={"example.com/disk": ("fast",)})
    small = instance_type("t04", 4, labels={"example.com/disk": ("slow",)})
    wants = shape(1900, preferred_terms=(preferred(1, ("example.com/disk", "In", ("fast",))),))
    asked = problem(
        Workloads().add("web", 5, wants), Catalogue((small, giant)), pool("p", spec("example.com/disk", "Exists"))
    )
    assert [claim.instance_types for claim in best_plan(asked, EFFORT).claims] == [("t64",)]


def test_pods_that_others_keep_away_from_stay_where_they_are() -> None:
    """The victim asks for nothing itself, but a required anti-affinity term selects it."""
    away = AffinityTerm(lbl.HOSTNAME, Selector({"app": "victim"}))
    work = Workloads().add("lonely", 2, shape(500, labels={"app": "lonely"}, anti_affinity=(away,)))
    work.add("victim", 4, shape(500, labels={"app": "victim"}))
    best = best_plan(problem(work, dear_giant()), EFFORT)
    for claim in best.claims:
        assert len({uid.partition("-")[0] for uid in claim.pods}) == 1


def test_the_tracer_hears_of_the_plan_that_is_returned() -> None:
    asked = problem(Workloads().add("web", 30, shape(1900, 3 * GI)), dear_giant())
    tracer = FunnelTracer()
    best = best_plan(asked, EFFORT, tracer)
    told = tracer.funnel.claims
    assert [tuple(c.instance_type for c in funnel.left) for funnel in told] == [c.instance_types for c in best.claims]


def test_a_step_of_effort_is_a_bound_on_work_and_little_more_where_the_problem_is_large() -> None:
    steps = [touches_for_cheaper(1, pods) + touches_for_rating(1) for pods in (0, 500, 6_000, 100_000)]
    assert steps == sorted(steps)
    assert steps[-1] == steps[-2] < 1.5 * steps[0]
    assert touches_for_binding(1) < touches_for_rating(1)
    effort = Effort(steps[0])
    assert effort.take(steps[0] - 1)
    assert not effort.take(2)
    effort.charge(2)
    assert effort.left == 0


def test_planning_costs_by_what_must_be_looked_at() -> None:
    spread = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "x"}))
    alike, unlike, spreading = Workloads().add("a", 20, shape(100)), Workloads(), Workloads()
    for number in range(20):
        unlike.add(f"app-{number}", 1, shape(100 + number))
    spreading.add("x", 20, shape(100, labels={"app": "x"}, spread=(spread,)))
    asked = [problem(work, dear_giant()) for work in (alike, unlike, spreading)]
    costs = [planning_touches(asked_problem) for asked_problem in asked]
    assert costs[0] < costs[1] == costs[2]
    assert planning_touches(replace(asked[0], nodes=(NodeInput("n", "", {}, (), {}),) * 50)) == costs[0] + 50


def test_a_pass_that_cannot_afford_a_rating_does_not_begin_one() -> None:
    """Each of so many classes would have to be asked of each node."""
    work = Workloads()
    for number in range(900):
        work.add(f"app-{number}", 1, shape(1000 + number, GI))
    assert not best_plan(problem(work, dear_giant()), 1).rated


def test_a_cheap_plan_that_there_is_no_effort_to_rate_is_not_given_up_for_a_dear_one() -> None:
    work = Workloads()
    for number in range(250):
        work.add(f"app-{number}", 10, shape(1700 + number, 3 * GI))
    best = best_plan(problem(work, dear_giant()), 16)
    assert not best.rated
    assert price(best) < best.first_price / 5


@pytest.mark.parametrize("key", [lbl.HOSTNAME, lbl.CAPACITY_TYPE, lbl.NODEPOOL])
@pytest.mark.parametrize("weight", [0, 5])
@pytest.mark.parametrize("nominations", [False, True])
def test_s63_pods_that_must_be_together_are_on_the_cheaper_of_equal_node_pools(
    key: str, weight: int, nominations: bool
) -> None:
    """The first plan takes the last one by name, and they may not move one by one."""
    together = AffinityTerm(key, Selector({"app": "a"}), weight=weight)
    work = Workloads().add("a", 4, shape(900, labels={"app": "a"}, affinity=(together,)))
    pools = [pool(name, spec(lbl.CAPACITY_TYPE, "In", kind)) for name, kind in (("a", "spot"), ("b", "on-demand"))]
    asked = problem(work, ladder(2, 4, 8), *pools, nominations=nominations)
    first, best = best_plan(asked, 0), best_plan(asked, 100)
    assert {claim.node_pool for claim in first.claims} == {"b"}
    assert {claim.node_pool for claim in best.claims} == {"a"}
    assert faults(asked, best) == []
    heavier = replace(asked.pools[1], pool=replace(pools[1], weight=1))
    kept = best_plan(replace(asked, pools=(asked.pools[0], heavier)), 100)
    assert {claim.node_pool for claim in kept.claims} == {"b"}


@pytest.mark.parametrize("skew", [1, 4])
def test_of_pods_that_are_told_their_nodes_those_are_unbound_of_which_not_all_can_be(skew: int) -> None:
    """KEP-5278: as many at a time are told a node as their spread allows. Of two large ones on a node the second one
    goes where more is free, and takes the room of small ones that are not told it either."""

    def spread(name: str, cpu: int) -> PodShape:
        constraint = SpreadConstraint(lbl.ZONE, skew, selector=Selector({"app": name}))
        return shape(cpu, GI, labels={"app": name}, spread=(constraint,), node_selector={lbl.ZONE: "z1"})

    work = Workloads().add("large", 4, spread("large", 1850), created=1)
    work.add("small", 6, spread("small", 1200), created=2)
    asked = problem(work, ladder(4), nominations=True)
    elsewhere = replace(asked, nodes=(NodeInput("full", "", {lbl.ZONE: "z2", lbl.HOSTNAME: "full"}, (), {}),))
    told = best_plan(elsewhere, EFFORT)
    assert told.rated
    assert len(told.claims) == 4
    assert bool(told.unbound) is (skew == 1)
    assert not best_plan(asked, EFFORT).unbound  # in one zone a spread over zones refuses nobody


def test_s138_other_domains_are_tried_with_all_types_where_fewer_were_cheaper() -> None:
    """Small nodes are the cheapest for most pods. One large node for all costs less, in the one zone where it is cheap,
    and the first plan takes another."""
    sold = tuple(Offering(zone, lbl.ON_DEMAND, price) for zone, price in (("z1", 2.0), ("z2", 0.59), ("z3", 2.0)))
    types = (
        instance_type("t02", 2, price=0.03, capacity_types=(lbl.ON_DEMAND,)),
        instance_type("t04", 4, price=0.06, memory=16 * GI, capacity_types=(lbl.ON_DEMAND,)),
        instance_type("t32", 32, offerings=sold),
    )
    web = shape(1600, 8 * GI, labels={"app": "web"}, spread=(ZONE_SPREAD,))
    asked = problem(Workloads().add("web", 1, web).add("job", 19, shape(1500)), Catalogue(types))
    assert price(plan(asked)) == 2
    assert price(best_plan(asked, EFFORT)) == 0.59
