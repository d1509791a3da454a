"""Pods that no change of the problem can place: nothing is tried for them (S-134), but for similar ones it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.optimizer.first_plan import first_plan as module
from kerf.engine.scheduling.optimizer.first_plan.first_plan import first_plan
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import LARGE_PROBLEM
from kerf.engine.scheduling.optimizer.first_plan.unplaceable_pods import UnplaceablePods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem, ShapeKey
from tests.support.scenarios.problems import GI, ZONES, Workloads, ladder, pool, problem, shape, spec

APP = {"app": "x"}
Asked = Callable[[Problem], int]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """How many plans are made for one problem."""

    def count(given: Problem) -> int:
        made: list[Problem] = []

        def counted(question: Problem) -> Plan:
            made.append(question)
            return plan(question)

        monkeypatch.setattr(module, "plan", counted)
        first_plan(given)
        return len(made)

    return count


def beyond(given: Problem) -> set[str]:
    made = plan(given)
    return set(UnplaceablePods(given, made).of(made))


def term(app: str, key: str = lbl.ZONE) -> tuple[AffinityTerm, ...]:
    return (AffinityTerm(key, Selector({"app": app})),)


def apart(**fields: object) -> PodShape:
    return replace(shape(100, labels=APP, anti_affinity=term("x")), **fields)


def in_zones(*zones: str) -> list[NodeInput]:
    room = {"cpu": 4_000, "memory": 8 * GI, "pods": 20}
    return [NodeInput(f"n-{zone}", "", {lbl.ZONE: zone, lbl.HOSTNAME: f"n-{zone}"}, (), room) for zone in zones]


@pytest.mark.parametrize("others", [0, LARGE_PROBLEM])
def test_s134_of_pods_apart_by_zone_no_more_are_placed_than_there_are_zones(asked: Asked, others: int) -> None:
    work = Workloads().add("apart", 5, apart()).add("else", others, shape(100))
    given = problem(work, ladder(2))
    assert len(beyond(given)) == 5 - len(ZONES)
    assert asked(given) == 1


def test_s134_zones_in_which_one_is_bound_already_are_taken(asked: Asked) -> None:
    work = Workloads().add("apart", 4, apart())
    given = problem(work, ladder(2), nodes=in_zones(*ZONES), bound=[(apart(), f"n-{zone}") for zone in ZONES])
    assert len(beyond(given)) == 4
    assert asked(given) == 1


def test_s134_zones_that_the_pods_or_all_node_pools_exclude_are_none(asked: Asked) -> None:
    own = problem(Workloads().add("apart", 2, apart(node_selector={lbl.ZONE: "z1"})), ladder(2))
    few = problem(Workloads().add("apart", 3, apart()), ladder(2), pool("p", spec(lbl.ZONE, "In", "z1", "z2")))
    for given in (own, few):
        assert len(beyond(given)) == 1
        assert asked(given) == 1


def test_s134_a_pod_of_a_higher_priority_may_still_take_the_place_of_one_that_is_placed() -> None:
    work = Workloads().add("apart", 3, apart(requests={"cpu": 1_000}))
    given = problem(work.add("high", 1, apart(priority=10)), ladder(2))
    assert {uid for group in plan(given).unplaced for uid in group.pods} == {"high-0"}
    assert beyond(given) == set()
    assert {uid for group in first_plan(given)[1].unplaced for uid in group.pods} < {f"apart-{n}" for n in range(3)}


def test_s134_pods_without_a_partner_and_those_whose_partners_have_none(asked: Asked) -> None:
    work = Workloads().add("alone", 2, shape(100, labels={"app": "a"}, affinity=term("nobody")))
    work.add("follower", 2, shape(100, affinity=term("a")))
    given = problem(work, ladder(2))
    assert len(beyond(given)) == 4
    assert asked(given) == 1
    met = shape(100, labels={"app": "nobody"})
    there = replace(problem(work, ladder(2), nodes=in_zones("z1"), bound=[(met, "n-z1")]), pools=given.pools)
    assert beyond(there) == set()


def test_s134_where_there_are_fewer_domains_than_a_spread_wants_none_takes_more_than_the_skew(asked: Asked) -> None:
    evenly = SpreadConstraint(lbl.ZONE, 2, "DoNotSchedule", Selector(APP), min_domains=4)
    given = problem(Workloads().add("spread", 9, shape(100, labels=APP, spread=(evenly,))), ladder(2))
    assert len(beyond(given)) == 9 - 2 * len(ZONES)
    assert asked(given) == 1
    enough = replace(evenly, min_domains=3)
    assert beyond(problem(Workloads().add("spread", 9, shape(100, labels=APP, spread=(enough,))), ladder(2))) == set()


def test_s117_pods_spread_over_a_label_that_nothing_has_are_planned_once(asked: Asked) -> None:
    """As where the constraint's key is misspelt: such pods wait for days beside others, and each pass would try all."""
    over = SpreadConstraint("example.com/rack", 1, "DoNotSchedule", Selector(APP))
    work = Workloads().add("spread", 2, shape(100, labels=APP, spread=(over,))).add("else", 3, shape(100))
    work.add("follower", 1, shape(100, affinity=term("x")))
    assert len(beyond(problem(work, ladder(2)))) == 3
    assert asked(problem(work, ladder(2))) == 1


def test_s117_a_label_that_nodes_may_come_to_have_is_no_reason_to_give_up() -> None:
    over = SpreadConstraint("example.com/rack", 1, "DoNotSchedule", Selector(APP))
    work = Workloads().add("spread", 2, shape(100, labels=APP, spread=(over,)))
    left_open = pool("p", spec("example.com/rack", "Exists"))
    full = NodeInput("n", "", {"example.com/rack": "r", lbl.HOSTNAME: "n"}, (), {"cpu": 1, "memory": GI, "pods": 9})
    for given in (problem(work, ladder(2), left_open), problem(work, ladder(2), nodes=[full])):
        assert plan(given).unplaced
        assert beyond(given) == set()


def test_s131_a_pod_that_goes_takes_no_zone_for_good() -> None:
    given = problem(Workloads().add("apart", 3, apart()), ladder(2), nodes=in_zones("z1"), bound=[(apart(), "n-z1")])
    assert len(beyond(given)) == 1
    going = replace(given, bound=tuple(replace(pod, terminating=True) for pod in given.bound))
    assert plan(going).unplaced
    assert beyond(going) == set()


def test_s137_a_node_without_a_zone_may_take_any_number() -> None:
    bare = NodeInput("bare", "", {lbl.HOSTNAME: "bare"}, (), {"cpu": 100, "memory": GI, "pods": 9})
    given = problem(Workloads().add("apart", 5, apart()), ladder(2), nodes=[bare])
    assert plan(given).unplaced
    assert beyond(given) == set()


def test_s134_pods_that_would_rather_be_apart_are_no_limit() -> None:
    rather = AffinityTerm(lbl.ZONE, Selector(APP), weight=5)
    here, near = {lbl.ZONE: "z1"}, term("database", lbl.HOSTNAME)
    reader = shape(400, labels=APP, affinity=near, anti_affinity=(rather,), node_selector=here)
    work = Workloads().add("large", 2, shape(1500)).add("database", 1, shape(500, labels={"app": "database"}))
    given = problem(work.add("reader", 6, reader), ladder(4))
    assert plan(given).unplaced
    assert beyond(given) == set()
    assert not first_plan(given)[1].unplaced


def test_the_search_for_an_order_of_binding_takes_time_in_proportion_to_the_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four times the pods: looked at about four times as often, and not sixteen times."""
    looked = [0]
    real = InterpodCounts.allows

    def counted(counts: InterpodCounts, shape_key: ShapeKey, node: int) -> bool:
        looked[0] += 1
        return real(counts, shape_key, node)

    monkeypatch.setattr(InterpodCounts, "allows", counted)
    costs = []
    for pods in (30, 120):
        large = SpreadConstraint(lbl.HOSTNAME, 2, "DoNotSchedule", Selector(APP))
        small = SpreadConstraint(lbl.ZONE, 1, "DoNotSchedule", Selector(APP))
        work = Workloads().add("large", pods, shape(1_500, labels=APP, spread=(large,)))
        given = problem(work.add("small", pods, shape(100, labels=APP, spread=(small,))), ladder(2, 4))
        looked[0] = 0
        PlanBinding(given).binds(plan(given))
        costs.append(looked[0])
    assert costs[1] <= 6 * costs[0]
