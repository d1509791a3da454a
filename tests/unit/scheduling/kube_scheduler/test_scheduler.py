"""What kube-scheduler would do with the pods of a plan, by the engine's model."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint, Taint, Toleration
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsage, PodLoad
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler, unbound_pods
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS, SchedulerVariant
from kerf.engine.scheduling.kube_scheduler.scores import scored_requests
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.kube_scheduler import bind, counts_on, node
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, problem, shape, spec, term


def test_a_plan_whose_pods_can_go_anywhere_binds_whole() -> None:
    asked = problem(Workloads().add("web", 5, shape(900)), ladder(2, 4))
    assert unbound_pods(asked, plan(asked)) == ()


def test_a_pod_that_can_go_anywhere_takes_the_place_of_one_that_cannot() -> None:
    """Least allocated comes first: the empty node in z1 is larger, though the plan means it for the second pod."""
    work = Workloads().add("a", 1, shape(1000), created=1)
    work.add("b", 1, shape(1500, node_selector={lbl.ZONE: "z1"}), created=2)
    asked = problem(work, ladder(2), nodes=[node("one", 2000, zone="z1"), node("two", 1200, zone="z2")])
    placed = Plan(placements=(Placement("one", "", ("b-0",)), Placement("two", "", ("a-0",))))
    assert unbound_pods(asked, placed) == ("b-0",)


def test_a_pod_that_is_told_its_node_holds_its_place_there() -> None:
    """KEP-5278: the one that came before it and knows of no node finds what is left."""
    work = Workloads().add("a", 2, shape(1000), created=1)
    work.add("b", 1, shape(1500, node_selector={lbl.ZONE: "z1"}), created=2)
    asked = problem(work, ladder(2), nodes=[node("one", 2000, zone="z1"), node("two", 1200, zone="z2")])
    every_pod = frozenset(pod.uid for pod in asked.pods)
    bindings, _ = KubeScheduler(asked).bind((), every_pod, told={"b-0": "one"})
    assert bindings is not None
    assert bindings.node_of == {"b-0": "one", "a-0": "two"}
    assert bindings.unbound == ("a-1",)


def test_s77_pods_go_onto_a_node_on_its_way_only_if_whatever_it_becomes_will_do() -> None:
    """Its labels are narrowed so far, not known."""
    work = Workloads()
    work.add("not-z3", 1, shape(100, required_terms=(term((lbl.ZONE, "NotIn", ("z3",))),)))
    work.add("z1-or-z2", 1, shape(100, required_terms=(term((lbl.ZONE, "In", ("z1", "z2"))),)))
    work.add("of-arm", 1, shape(100, node_selector={lbl.ARCH: "arm64"}))
    everybody = Plan(placements=(Placement("coming", "coming", ("not-z3-0", "z1-or-z2-0", "of-arm-0")),))

    def left(*zones: str) -> tuple[str, ...]:
        narrowed = spec(lbl.ZONE, "In", *zones), spec(lbl.ARCH, "In", "arm64")
        coming = replace(node("coming", 1000), claim="coming", initialized=False, requirements=narrowed)
        return unbound_pods(problem(work, ladder(2), nodes=[coming]), everybody)

    assert left("z1", "z2") == left("z1") == ()
    assert left("z1", "z2", "z3") == ("not-z3-0", "z1-or-z2-0")
    assert left("z3") == ("not-z3-0", "z1-or-z2-0")


def test_the_queue_goes_by_priority_and_then_by_age() -> None:
    nodes = [node("only", 1000)]
    old = Workloads().add("old", 1, shape(1000), created=1).add("young", 1, shape(1000), created=2)
    both = Plan(placements=(Placement("only", "", ("old-0", "young-0")),))
    assert unbound_pods(problem(old, ladder(2), nodes=nodes), both) == ("young-0",)
    ranked = Workloads().add("old", 1, shape(1000), created=1).add("young", 1, shape(1000, priority=5), created=2)
    assert unbound_pods(problem(ranked, ladder(2), nodes=nodes), both) == ("old-0",)


def test_a_variant_takes_pods_in_the_order_of_their_names() -> None:
    work = Workloads().add("web", 11, shape(1000), created=1)
    nodes = [node("only", 2000)]
    asked = problem(work, ladder(2), nodes=nodes)
    planned = ("web-9", "web-10", "web-2")
    asked = replace(asked, pods=tuple(pod for pod in asked.pods if pod.uid in planned))
    both = Plan(placements=(Placement("only", "", planned),))
    assert unbound_pods(asked, both, SchedulerVariant(by_age=False, natural_names=False)) == ("web-9",)
    assert unbound_pods(asked, both, SchedulerVariant(by_age=False, natural_names=True)) == ("web-10",)
    aged = Workloads().add("a", 1, shape(1000), created=2).add("b", 1, shape(1000), created=1)
    asked = problem(aged, ladder(2), nodes=[node("only", 1000)])
    both = Plan(placements=(Placement("only", "", ("a-0", "b-0")),))
    assert unbound_pods(asked, both, SchedulerVariant(by_age=True)) == ("a-0",)
    assert unbound_pods(asked, both, SchedulerVariant(by_age=False)) == ("b-0",)


def test_a_variant_takes_pods_of_one_second_as_they_arrived() -> None:
    """As those of a scenario are listed in its file; where nobody knows their turns, by name."""
    work = Workloads().add("a", 1, shape(1000), created=2).add("b", 1, shape(1000), created=2)
    work.add("c", 1, shape(1000), created=1)
    asked = problem(work, ladder(2), nodes=[node("only", 1000)])
    turns = {"a-0": 1, "b-0": 3, "c-0": 2}
    turned = replace(asked, pods=tuple(replace(pod, arrival=4 - turns[pod.uid]) for pod in asked.pods))
    planned = Plan(placements=(Placement("only", "", ("a-0", "b-0", "c-0")),))
    aged, given = SchedulerVariant(by_arrival=True), SchedulerVariant(by_age=False, by_arrival=True)
    assert [queued.uid for queued in KubeScheduler(turned).queue(aged)] == ["c-0", "b-0", "a-0"]
    assert unbound_pods(turned, planned, given) == ("a-0", "c-0")
    assert unbound_pods(turned, planned, SchedulerVariant(by_age=False)) == ("b-0", "c-0")
    assert unbound_pods(asked, planned, given) == ("b-0", "c-0")


def test_pods_that_have_no_place_in_a_plan_may_take_that_of_another() -> None:
    """The scheduler comes to them, too. Of pods that are alike it does not matter which one has the place."""
    work = Workloads().add("early", 2, shape(900), created=1).add("late", 1, shape(1000), created=2)
    asked = problem(work, ladder(2), nodes=[node("only", 2000)])
    assert unbound_pods(asked, Plan(placements=(Placement("only", "", ("late-0", "early-1")),))) == ("late-0",)
    assert unbound_pods(asked, Plan(placements=(Placement("only", "", ("early-1",)),))) == ()
    buffered = replace(asked, pods=tuple(replace(pod, virtual=pod.uid == "early-0") for pod in asked.pods))
    assert unbound_pods(buffered, Plan(placements=(Placement("only", "", ("late-0", "early-1")),))) == ()


def test_a_variant_takes_another_of_equally_good_nodes() -> None:
    work = Workloads().add("a", 1, shape(1000), created=1)
    work.add("b", 1, shape(1500, node_selector={"only": "one"}), created=2)
    nodes = [node("one", 2000, only="one"), node("two", 2000, only="two")]
    asked = problem(work, ladder(2), nodes=nodes)
    placed = Plan(placements=(Placement("one", "", ("b-0",)), Placement("two", "", ("a-0",))))
    assert {bool(unbound_pods(asked, placed, SchedulerVariant(seed=seed))) for seed in range(4)} == {True, False}


def test_a_newer_scheduler_scores_what_a_pod_improves() -> None:
    """Kubernetes 1.36 (kubernetes/kubernetes#135573): the pod wants memory; on the node short of CPU it evens the use
    out, which counts more than that the other one is even already."""
    uneven = NodeInfo("uneven", {}, (), {"cpu": 1000, "memory": 4 * GI}, {"cpu": 4000, "memory": 4 * GI})
    even = NodeInfo("even", {}, (), {"cpu": 2400, "memory": 24 * GI // 10}, {"cpu": 4000, "memory": 4 * GI})
    wants = {"cpu": 100, "memory": GI}
    for newer, better in ((False, even), (True, uneven)):
        load = PodLoad(wants, scored_requests(wants), newer=newer)
        scores = {node_info.name: NodeUsage(node_info, {}).score(load) for node_info in (uneven, even)}
        assert max(scores, key=lambda name: scores[name]) == better.name


def test_a_run_leaves_nothing_behind_for_the_next_one_on_the_same_nodes() -> None:
    term = AffinityTerm(lbl.HOSTNAME, Selector({"app": "x"}))
    lonely = shape(500, labels={"app": "x"}, anti_affinity=(term,))
    asked = problem(Workloads().add("x", 3, lonely), ladder(2), nodes=[node("old", 2000, zone="z1")])
    room = {"cpu": 2000, "memory": 8 * GI, "pods": 10}
    seats = [NodeInfo(name, {}, (), room, room, kind=1) for name in ("new-0", "new-1")]
    scheduler, uids = KubeScheduler(asked), frozenset(pod.uid for pod in asked.pods)
    first, second = (scheduler.bind(seats, uids, variant=SCHEDULER_VARIANTS[0]) for _ in range(2))
    assert first == second
    assert first[0] is not None
    assert first[0].unbound == ()
    fewer, _ = scheduler.bind(seats[:1], uids, variant=SCHEDULER_VARIANTS[0])
    assert fewer is not None
    assert len(fewer.unbound) == 1


def test_a_newer_scheduler_scores_no_balance_for_a_pod_without_requests() -> None:
    half = NodeInfo("half", {}, (), {"cpu": 2000, "memory": 2 * GI}, {"cpu": 4000, "memory": 4 * GI})
    assert NodeUsage(half, {}).score(PodLoad({}, (0, 0), newer=True)) == 50


def test_a_plan_binds_whole_only_if_every_variant_binds_all_pods() -> None:
    """By age the small pods come first and take the large node; by name the large one does."""
    work = Workloads().add("big", 1, shape(3500), created=2).add("small", 4, shape(500, memory=GI), created=1)
    asked = problem(work, ladder(2, 4))
    made = best_plan(asked, 100)
    assert made.rated
    assert made.unbound == ()
    assert all(unbound_pods(asked, made, habit) == () for habit in SCHEDULER_VARIANTS)


def test_with_nominations_no_dearer_plan_is_taken_because_it_binds_whole() -> None:
    work = Workloads().add("a", 8, shape(700), created=1)
    work.add("b", 2, shape(1900, node_selector={lbl.ZONE: "z1"}), created=2)
    asked = problem(work, ladder(2, 4, 8))
    alone, told = (
        best_plan(replace(asked, settings=replace(asked.settings, nominations=nominations)), 100)
        for nominations in (False, True)
    )
    assert sum(claim.price for claim in told.claims) < sum(claim.price for claim in alone.claims)
    assert told.unbound == ()  # each pod goes where it is told
    assert not alone.unbound


def test_hard_taints_filter_and_soft_ones_only_cost_score() -> None:
    hard = pool("p", taints=(Taint("t", "NoSchedule"),))
    tolerant = shape(500, tolerations=(Toleration("t", "Exists"),))
    asked = problem(Workloads().add("web", 2, tolerant), ladder(2), hard)
    assert unbound_pods(asked, plan(asked)) == ()


def test_a258_a_planned_node_has_the_labels_that_its_claim_is_narrowed_to() -> None:
    """No type says in which region it is, and the pod asks for one."""
    region = "topology.kubernetes.io/region"
    here = shape(500, node_selector={region: "eu"})
    asked = problem(Workloads().add("here", 2, here), ladder(4), pool("p", spec(region, "In", "eu", "us")))
    made = plan(asked)
    assert made.placed
    assert unbound_pods(asked, made) == ()


def test_daemon_sets_take_their_part_of_a_planned_node() -> None:
    asked = problem(Workloads().add("web", 1, shape(1500)), ladder(2, 4), daemons=[shape(1000)])
    planned = plan(asked)
    assert planned.claims[0].instance_types == ("t04",)
    assert unbound_pods(asked, planned) == ()


def test_unbound_pods_get_a_node_if_that_is_still_cheaper() -> None:
    """A tight packing of unlike pods on unlike nodes, against a dear giant that holds them all."""
    types = Catalogue(
        (
            instance_type("lean", 4, memory=4 * GI, price=0.2),
            instance_type("fat", 4, memory=32 * GI, price=0.5),
            instance_type("giant", 64, memory=256 * GI, price=64.0),
        )
    )
    work = Workloads().add("cpu", 6, shape(1900, GI)).add("memory", 6, shape(600, 14 * GI))
    best = best_plan(problem(work, types), 100)
    assert best.unbound == ()
    assert best.first_price > 10


# ── pods that look at pods ──────────────────────────────────────


def allowed(counts: InterpodCounts, asked: Problem, number: int = 0) -> list[int]:
    """The nodes that the filters allow for a pod of the problem, by number."""
    pod = asked.pods[number]
    return [node for node in range(3) if counts.allows((pod.namespace, pod.shape), node)]


def test_a_spread_allows_only_the_emptier_zone() -> None:
    spread = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "x"}))
    counts, asked = counts_on(Workloads().add("x", 3, shape(labels={"app": "x"}, spread=(spread,))))
    assert allowed(counts, asked) == [0, 1, 2]
    bind(counts, asked, 0, 0)
    assert allowed(counts, asked) == [2]


def test_min_domains_that_are_not_there_keep_the_minimum_at_zero() -> None:
    spread = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "x"}), min_domains=3)
    counts, asked = counts_on(Workloads().add("x", 3, shape(labels={"app": "x"}, spread=(spread,))))
    bind(counts, asked, 0, 0)
    bind(counts, asked, 1, 2)
    assert allowed(counts, asked) == []


def test_affinity_lets_the_first_one_start_and_the_others_follow() -> None:
    term = AffinityTerm(lbl.ZONE, Selector({"app": "x"}))
    counts, asked = counts_on(Workloads().add("x", 2, shape(labels={"app": "x"}, affinity=(term,))))
    assert allowed(counts, asked) == [0, 1, 2]
    bind(counts, asked, 0, 0)
    assert allowed(counts, asked) == [0, 1]


def test_anti_affinity_keeps_both_sides_apart() -> None:
    term = AffinityTerm(lbl.HOSTNAME, Selector({"app": "victim"}))
    work = Workloads().add("lonely", 1, shape(labels={"app": "lonely"}, anti_affinity=(term,)))
    work.add("victim", 1, shape(labels={"app": "victim"}))
    counts, asked = counts_on(work)
    bind(counts, asked, 0, 0)
    assert allowed(counts, asked, 1) == [1, 2]
    bind(counts, asked, 1, 1)
    assert allowed(counts, asked, 0) == [0, 2]
