"""Problems that are planned again with changes because topology left pods pending (S-134)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint, Taint, Toleration
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.optimizer.first_plan import first_plan as module
from kerf.engine.scheduling.optimizer.first_plan.affinity_partners import in_turn
from kerf.engine.scheduling.optimizer.first_plan.first_plan import MAX_PODS_REPLANNED, MIN_RETRIES, first_plan
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import LARGE_PROBLEM, ProblemChange, single_changes
from kerf.engine.scheduling.optimizer.first_plan.related_pods import problem_of_related_pods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, problem, shape, term

APP = {"app": "x"}


def spread(key: str, skew: int = 1) -> SpreadConstraint:
    return SpreadConstraint(key, skew, "DoNotSchedule", Selector(APP))


def over_two_keys(beside: int, zonal: int) -> Problem:
    """Large pods, one to a node in any zone, and small ones with a spread over zones that counts them."""
    work = Workloads().add("large", beside, shape(1500, labels=APP, spread=(spread(lbl.HOSTNAME, 2),)))
    work.add("small", zonal, shape(100, labels=APP, spread=(spread(lbl.ZONE),)))
    return problem(work, ladder(2, 4))


def uneven_problem() -> Problem:
    asked = [over_two_keys(large, small) for large in range(2, 9) for small in range(1, 6)]
    plans = ((candidate, plan(candidate)) for candidate in asked)
    return next(candidate for candidate, made in plans if made.uneven and not PlanBinding(candidate).binds(made))


def test_s134_pods_that_were_counted_too_late_are_planned_for_again() -> None:
    asked = uneven_problem()
    question, made = first_plan(asked)
    assert question.careful
    assert not made.uneven
    assert faults(asked, made) == []
    assert faults(asked, best_plan(asked, 100)) == []


def test_a_plan_that_can_be_bound_after_all_stays() -> None:
    asked = over_two_keys(1, 2)
    assert PlanBinding(asked).binds(plan(asked))
    question, made = first_plan(asked)
    assert not question.careful
    assert made.claims == plan(asked).claims


def with_an_opened_zone(spread_pods: int, opener: PodShape | None = None) -> Problem:
    """Pods that exclude z1 and count its nodes nevertheless, and one that can only be there: where they are not, or
    where the only large type is."""
    over_all_zones = replace(spread(lbl.ZONE), node_affinity_policy="Ignore")
    elsewhere = term((lbl.ZONE, "NotIn", ("z1",)))
    work = Workloads().add(
        "spread", spread_pods, shape(200, labels=APP, spread=(over_all_zones,), required_terms=(elsewhere,))
    )
    work.add("apart", 1, opener or shape(100, labels=APP, anti_affinity=(AffinityTerm(lbl.ZONE, Selector(APP)),)))
    return problem(work, Catalogue((*ladder(2, 4).types, instance_type("t08", 8, zones=("z1",)))))


@pytest.mark.parametrize("opener", [None, shape(5_000)], ids=["by topology", "by size"])
def test_s138_a_pod_opens_no_zone_that_leaves_placed_pods_over(opener: PodShape | None) -> None:
    """kube-scheduler counts z1 as soon as it has a node: then two pods at most fit into each other zone, and others
    wait. The pod alone waits instead; once the others are bound, its node does them no harm."""
    asked = with_an_opened_zone(7, opener)
    assert plan(asked).uneven
    assert faults(asked, plan(asked)) != []
    made = first_plan(asked)[1]
    assert faults(asked, made) == []
    assert [group.pods for group in made.unplaced] == [("apart-0",)]


def test_s138_a_zone_is_opened_where_that_leaves_no_pod_over() -> None:
    asked = with_an_opened_zone(3)
    made = first_plan(asked)[1]
    assert faults(asked, made) == []
    assert made.unplaced == ()


def test_s134_pods_count_where_the_types_that_are_left_leave_one_domain() -> None:
    """The large ones ask for no capacity type, and what holds them is sold on demand alone."""
    work = Workloads().add("large", 3, shape(8_000, labels=APP, spread=(spread(lbl.HOSTNAME),)))
    work.add("small", 3, shape(100, labels=APP, spread=(spread(lbl.CAPACITY_TYPE),)))
    sold = instance_type("large", 8, capacity_types=(lbl.ON_DEMAND,)), instance_type("small", 2)
    asked = problem(work, Catalogue(sold))
    assert plan(asked).uneven
    made = first_plan(asked)[1]
    assert not made.uneven
    assert not left(made)
    assert faults(asked, made) == []


def test_s33_s134_the_last_required_term_does_not_hide_that_topology_keeps_pods_pending() -> None:
    """By the first term both pods could go on demand or spot. They must be together in one capacity type and spread
    over both, which works where nothing is launched on demand. The second term is met by no node."""
    together = AffinityTerm(lbl.CAPACITY_TYPE, Selector(APP))
    terms = (term(("size", "In", ("large",))), term(("size", "DoesNotExist", ())))
    pod = shape(500, labels=APP, spread=(spread(lbl.CAPACITY_TYPE),), affinity=(together,), required_terms=terms)
    asked = problem(Workloads().add("p", 2, pod), ladder(2), pool("default", labels={"size": "large"}))
    (group,) = plan(asked).unplaced
    assert [reason.code for reason in group.reasons] == [SchedulingCode.TOPOLOGY]
    made = first_plan(asked)[1]
    assert not left(made)
    assert faults(asked, made) == []


def test_s134_no_retry_is_spent_on_a_change_that_changes_nothing() -> None:
    """So many pods have three retries, and the third one helps: nothing is launched on demand."""
    together = AffinityTerm(lbl.CAPACITY_TYPE, Selector(APP))
    pod = shape(500, labels=APP, spread=(spread(lbl.CAPACITY_TYPE),), affinity=(together,))
    asked = problem(Workloads().add("p", 2_100, pod), ladder(2))
    assert left(plan(asked))
    assert not left(first_plan(asked)[1])


def test_pods_that_only_spreads_of_others_count_may_be_bound_after_them() -> None:
    work = Workloads().add("zonal", 2, shape(500, labels=APP, spread=(spread(lbl.ZONE),)))
    work.add("guest", 2, shape(100, labels=APP, spread=(spread(lbl.HOSTNAME),), node_selector=IN_Z1))
    asked = problem(work, ladder(2))
    made = plan(asked)
    assert not left(made)
    assert PlanBinding(asked).binds(made)
    assert faults(asked, made) == []


def test_pods_of_a_large_problem_are_not_settled_at_once() -> None:
    for asked, settled in ((over_two_keys(8, 3), True), (over_two_keys(8, LARGE_PROBLEM), False)):
        uneven = replace(plan(asked), uneven=True)
        assert any(single_change.careful for single_change in single_changes(asked, ProblemChange(), uneven)) is settled


# ── without what made the difference ──────────────────────────────────────


def apart(key: str, app: str) -> tuple[AffinityTerm, ...]:
    return (AffinityTerm(key, Selector({"app": app})),)


def wide() -> Problem:
    """One large pod that keeps three small ones out of its zone, which they have to be in. Only the type `huge`
    holds it."""
    large = shape(30_000, labels={"app": "large"}, anti_affinity=apart(lbl.ZONE, "small"), node_selector=IN_Z1)
    work = Workloads().add("large", 1, large)
    work.add("small", 3, shape(100, labels={"app": "small"}, node_selector=IN_Z1))
    return problem(work, Catalogue((instance_type("small", 4), instance_type("huge", 32))))


IN_Z1 = {lbl.ZONE: "z1"}
WITHOUT_HUGE = Catalogue((instance_type("small", 4),))


def left(made: Plan) -> set[str]:
    return {uid for group in made.unplaced for uid in group.pods}


def test_s134_a_pod_that_keeps_out_several_comes_after_them() -> None:
    """By its size the large pod comes first and keeps out three."""
    asked = wide()
    assert left(plan(asked)) == {"small-0", "small-1", "small-2"}
    question, made = first_plan(asked)
    assert left(made) == {"large-0"}
    assert {pod.uid for pod in question.pods if pod.ahead} == {"small-0", "small-1", "small-2"}
    assert question.pools == asked.pools
    assert question.unavailable == asked.unavailable
    assert faults(asked, made) == []
    assert best_plan(asked, 100).unplaced == made.unplaced
    fewer = replace(asked, catalogues=dict.fromkeys(asked.catalogues, WITHOUT_HUGE))
    assert left(first_plan(fewer)[1]) == left(made), "as if there were no such type"


def test_s134_of_pods_of_unequal_priority_the_higher_one_keeps_its_place() -> None:
    asked = wide()
    first = next(digest for digest, pod_shape in asked.shapes.items() if pod_shape.labels["app"] == "large")
    shapes = {**asked.shapes, first: replace(asked.shapes[first], priority=1_000)}
    assert left(first_plan(replace(asked, shapes=shapes))[1]) == {"small-0", "small-1", "small-2"}


def small_zone(beside: int = 0) -> Problem:
    """Five large pods spread over zones, of which one has only a type that is too small for them; and pods that are
    only there besides."""
    work = Workloads().add("large", 5, shape(3_000, labels=APP, spread=(spread(lbl.ZONE),)))
    work.add("else", beside, shape(100, node_selector={lbl.ZONE: "z1"}))
    tiny = instance_type("tiny", 1, zones=("z3",))
    return problem(work, Catalogue((instance_type("fits", 4, zones=("z1", "z2")), tiny)))


def test_s126_a_zone_that_pods_spread_over_cannot_fill_is_left_out() -> None:
    """It has a domain for them, as nodes for such pods can be launched there, if they were smaller."""
    asked = small_zone()
    assert len(left(plan(asked))) == 3
    question, made = first_plan(asked)
    assert not left(made)
    assert {str(pod.of_new_nodes) for pod in question.pods} == {f"{lbl.ZONE} NotIn [z3]"}
    assert faults(asked, made) == []


def followed(extra: int = 0) -> Problem:
    """One pod that tolerates a taint, and six that do not and have to be on its node: where NodePools weigh the same,
    the last one by name comes first, and that has the taint. And pods that are only there besides."""
    leader = shape(500, labels={"app": "leader"}, tolerations=(Toleration("t", "Exists"),))
    work = Workloads().add("leader", 1, leader)
    work.add("follower", 6, shape(100, labels={"app": "follower"}, affinity=apart(lbl.HOSTNAME, "leader")))
    work.add("else", extra, shape(100, labels={"app": "else"}))
    tainted = pool("z-tainted", taints=(Taint("t", "NoSchedule"),))
    return problem(work, ladder(4), pool("open"), tainted)


def test_s134_a_node_pool_in_which_nobody_can_follow_is_left_out() -> None:
    asked = followed()
    assert len(left(plan(asked))) == 6
    question, made = first_plan(asked)
    assert not left(made)
    left_out = {(pod.uid.split("-")[0], str(pod.of_new_nodes)) for pod in question.pods}
    assert left_out == {("leader", f"{lbl.NODEPOOL} NotIn [z-tainted]"), ("follower", "")}
    assert faults(asked, made) == []


@pytest.mark.parametrize("nominations", [False, True])
@pytest.mark.parametrize("effort", [0, 100])
@pytest.mark.parametrize("related", [False, True])
def test_s63_s88_pods_whom_it_does_not_help_keep_their_node_pool(effort: int, nominations: bool, related: bool) -> None:
    """Six followers cannot go where their leader goes: the NodePool of weight 100 is left out for these seven, and not
    for six others, also if they have something to do with these."""
    tolerations = (Toleration("t", "Exists"),)
    work = Workloads().add("leader", 1, shape(500, labels={"app": "leader"}, tolerations=tolerations))
    work.add("follower", 6, shape(100, labels={"app": "follower"}, affinity=apart(lbl.HOSTNAME, "leader")))
    beside = (SpreadConstraint(lbl.ZONE, 1, "ScheduleAnyway", Selector({"app": "follower"})),) if related else ()
    work.add("other", 6, shape(600, labels={"app": "other"}, tolerations=tolerations, spread=beside))
    heavy = pool("heavy", weight=100, taints=(Taint("t", "NoSchedule"),))
    asked = problem(work, ladder(4), heavy, pool("light", weight=1), nominations=nominations)
    assert len(left(plan(asked))) == 6
    made = best_plan(asked, effort)
    assert not left(made)
    assert faults(asked, made) == []
    pools = {uid.split("-")[0]: claim.node_pool for claim in made.claims for uid in claim.pods}
    assert pools == {"leader": "light", "follower": "light", "other": "heavy"}


def test_s63_s88_what_helps_one_group_is_not_left_out_for_another() -> None:
    """Each group has a NodePool of its own that its followers cannot go to."""
    work, pools = Workloads(), []
    for name in ("a", "b"):
        tolerations = (Toleration(name, "Exists"),)
        work.add(f"{name}-leader", 1, shape(2500, labels={"app": name}, tolerations=tolerations))
        work.add(f"{name}-follower", 3, shape(100, affinity=apart(lbl.HOSTNAME, name)))
        pools.append(pool(name, weight=100, taints=(Taint(name, "NoSchedule"),)))
    asked = problem(work, ladder(4), *pools, pool("light"))
    question, made = first_plan(asked)
    assert not left(made)
    left_out = {(pod.uid[0], str(pod.of_new_nodes)) for pod in question.pods}
    leaders = {(name, f"{lbl.NODEPOOL} NotIn [{name}]") for name in ("a", "b")}
    assert left_out == leaders | {("a", ""), ("b", "")}, "followers could not go there anyhow"


# ── what is told of pods for which something is left out ──────────────────────────────────────


def told(made: Plan, uid: str) -> list[tuple[str, object]]:
    (group,) = (left_group for left_group in made.unplaced if uid in left_group.pods)
    return [(reason.code, reason.params.get("node_pool")) for reason in group.reasons]


def with_one_more(asked: Problem, given: PodShape) -> Problem:
    work = Workloads().add("own", 1, given)
    return replace(asked, pods=(*asked.pods, *work.pods), shapes={**asked.shapes, **work.shapes})


def test_s134_a_pod_is_told_of_the_node_pool_that_is_left_out() -> None:
    """It is the only one that it may go to, and it is one of the group: it follows those that go elsewhere."""
    own = shape(
        100,
        labels={"app": "own"},
        node_selector={lbl.NODEPOOL: "z-tainted"},
        tolerations=(Toleration("t", "Exists"),),
        affinity=apart(lbl.ZONE, "follower"),
    )
    asked = with_one_more(followed(), own)
    question, made = first_plan(asked)
    assert left(made) == {"own-0"}
    assert told(made, "own-0") == [(SchedulingCode.LEFT_OUT, "z-tainted"), (SchedulingCode.REQUIREMENTS, "open")]
    tracer = FunnelTracer()
    assert best_plan(asked, 0, tracer).unplaced == made.unplaced
    (known,) = (pod_class for pod_class in tracer.funnel.classes if pod_class.unplaced)
    looks = {look.funnel.node_pool: look for look in known.pools}
    assert looks["z-tainted"].reason == Reason(SchedulingCode.LEFT_OUT, {"node_pool": "z-tainted"})
    assert [option.instance_type for option in looks["z-tainted"].funnel.left] == ["t04"]
    assert plan(question).placed == made.placed, "what is told decides nothing"


def test_s134_a_pod_is_told_of_types_and_zones_that_are_left_out() -> None:
    asked = with_one_more(small_zone(), shape(100, node_selector={lbl.ZONE: "z3"}))
    made = first_plan(asked)[1]
    assert left(made) == {"own-0"}
    assert told(made, "own-0") == [(SchedulingCode.LEFT_OUT, "default")]
    too_large = with_one_more(small_zone(), shape(2_000, node_selector={lbl.ZONE: "z3"}))
    assert told(first_plan(too_large)[1], "own-0") == [(SchedulingCode.TYPES_RESOURCES, "default")], (
        "it does not fit there anyhow"
    )


def test_s134_two_zones_are_left_out_together_where_one_does_not_help() -> None:
    work = Workloads().add("large", 4, shape(3_000, labels=APP, spread=(spread(lbl.ZONE),)))
    tiny = (instance_type("tiny", 1, zones=("z2",)), instance_type("mini", 1, zones=("z3",)))
    asked = problem(work, Catalogue((instance_type("fits", 4, zones=("z1",)), *tiny)))
    assert len(left(plan(asked))) == 3
    assert not left(first_plan(asked)[1])


def test_s134_in_a_large_problem_what_helps_is_found_without_the_pods_that_have_nothing_to_do_with_it() -> None:
    asked = followed(LARGE_PROBLEM)
    part = problem_of_related_pods(asked, left(plan(asked)))
    assert {pod.uid.split("-")[0] for pod in part.pods} == {"leader", "follower"}
    assert not left(first_plan(asked)[1])
    assert not left(first_plan(small_zone(LARGE_PROBLEM))[1])


def test_s134_retries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods that topology keeps pending whatever is changed: no more than so many plans are made for them."""
    asked: list[int] = []

    def counted(question: Problem) -> Plan:
        asked.append(len(question.pods))
        return plan(question)

    monkeypatch.setattr(module, "plan", counted)
    for pods, most in ((400, MAX_PODS_REPLANNED // 401), (3 * LARGE_PROBLEM, MIN_RETRIES)):
        asked.clear()
        work = Workloads().add("w", pods, shape(100, labels=APP, anti_affinity=apart(lbl.ZONE, "nobody")))
        work.add("x", 1, shape(100, affinity=apart(lbl.HOSTNAME, "x"), anti_affinity=apart(lbl.ZONE, "x")))
        first_plan(problem(work, ladder(1, 2, 4, 8)))
        assert 1 < len([touches for touches in asked if touches > pods]) <= most + 1


def test_s134_pods_go_with_the_one_they_must_be_with_where_there_is_room_for_all() -> None:
    """The database is small: it comes after the large pods, onto a node where there is room for one that follows it."""
    beside = AffinityTerm(lbl.HOSTNAME, Selector({"app": "database"}))
    work = Workloads().add("large", 2, shape(1500)).add("database", 1, shape(500, labels={"app": "database"}))
    work.add("reader", 6, shape(400, affinity=(beside,)))
    asked = problem(work, ladder(4))
    assert len(plan(asked).unplaced[0].pods) == 5
    _, made = first_plan(asked)
    assert not made.unplaced
    assert faults(asked, made) == []


def test_s134_pods_that_must_be_with_one_another_come_before_large_ones_that_leave_too_little_room() -> None:
    together = AffinityTerm(lbl.HOSTNAME, Selector({"app": "together"}))
    work = Workloads().add("large", 6, shape(1500, labels=APP, spread=(spread(lbl.HOSTNAME),)))
    work.add("together", 4, shape(900, labels={"app": "together"}, affinity=(together,)))
    asked = problem(work, ladder(4))
    assert len(plan(asked).unplaced[0].pods) == 2
    _, made = first_plan(asked)
    assert not made.unplaced
    assert faults(asked, made) == []


def led(leaders: int, followers: int, cpu: int, *kinds: int) -> Problem:
    """Large pods, and smaller ones that must be on a node with one of them; two large ones fill a node."""
    beside = (AffinityTerm(lbl.HOSTNAME, Selector({"app": "leader"})),)
    work = Workloads().add("leader", leaders, shape(3000, labels={"app": "leader"}))
    for number, other in enumerate((cpu, *kinds)):
        work.add(f"follower-{number}", followers, shape(other, affinity=beside))
    return problem(work, ladder(8))


@pytest.mark.parametrize(
    ("leaders", "followers", "sizes"), [(4, 8, [1000]), (8, 16, [900]), (6, 12, [1500]), (9, 6, [400, 1900])]
)
def test_s134_each_pod_finds_room_beside_one_that_it_must_be_with(
    leaders: int, followers: int, sizes: list[int]
) -> None:
    """The large pods come first, two to a node: beside them is little room."""
    asked = led(leaders, followers, *sizes)
    assert plan(asked).unplaced
    _, made = first_plan(asked)
    assert not made.unplaced
    assert faults(asked, made) == []


def test_s134_a_small_node_that_is_there_is_not_the_only_one_with_a_partner() -> None:
    """One large pod goes onto it, and leaves room there for none that follows."""
    node = NodeInput("n-1", "", {lbl.HOSTNAME: "n-1", lbl.ZONE: "z1"}, (), {"cpu": 3500, "memory": 64 * GI, "pods": 9})
    asked = replace(led(4, 8, 1000), nodes=(node,))
    _, made = first_plan(asked)
    assert not made.unplaced
    assert faults(asked, made) == []


def test_s134_none_is_tried_beside_partners_that_cannot_have_it() -> None:
    asked = led(2, 3, 7000)
    planned = plan(asked)
    leaders = frozenset(pod.uid for pod in asked.pods if pod.name.startswith("leader"))
    waiting = [frozenset(group.pods) for group in planned.unplaced]
    assert in_turn(asked, planned, waiting, leaders, frozenset()) == ()
    fitting = led(4, 8, 1000)
    planned = plan(fitting)
    waiting = [frozenset(group.pods) for group in planned.unplaced]
    leaders = frozenset(pod.uid for pod in fitting.pods if pod.name.startswith("leader"))
    assert [len(each) for each in in_turn(fitting, planned, waiting, leaders, frozenset())] == [3, 1, 5, 1]
