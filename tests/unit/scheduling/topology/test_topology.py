"""Topology in plans: S-117…S-148, by the examples of section 13.9. The judge passes every plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    PodShape,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
)
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import (
    GI,
    ZONES,
    Workloads,
    instance_type,
    ladder,
    pool,
    preferred,
    problem,
    shape,
    spec,
    term,
)

WEB = {"app": "web"}
ANY_WEB = Selector(WEB)


def web(cpu: int = 500, **fields: Any) -> PodShape:
    return shape(cpu, labels=WEB, **fields)


def spread(key: str = lbl.ZONE, skew: int = 1, **fields: Any) -> SpreadConstraint:
    return SpreadConstraint(key, skew, **{"selector": ANY_WEB, **fields})


def near(key: str = lbl.ZONE, selector: Selector = ANY_WEB, **fields: Any) -> AffinityTerm:
    return AffinityTerm(key, selector, **fields)


def node(name: str, zone: str, cpu: int = 0, **labels: str) -> NodeInput:
    return NodeInput(name, "", {lbl.ZONE: zone, **labels}, (), {"cpu": cpu, "memory": 8 * GI, "pods": 20})


def planned(given: Problem) -> Plan:
    made = plan(given)
    assert faults(given, made) == []
    return made


def per_domain(given: Problem, made: Plan, key: str = lbl.ZONE, prefix: str = "") -> list[int]:
    """Pods of this pass per value of a label, most first."""
    counts: Counter[str] = Counter()
    labels = {existing.name: existing.labels for existing in given.nodes}
    for placement in made.placements:
        counts[labels[placement.node][key]] += sum(uid.startswith(prefix) for uid in placement.pods)
    for claim in made.claims:
        values = next(tuple(requirement.values) for requirement in claim.requirements if requirement.key == key)
        counts["|".join(sorted(values))] += sum(uid.startswith(prefix) for uid in claim.pods)
    return sorted((count for count in counts.values() if count), reverse=True)


def left(made: Plan) -> list[str]:
    return sorted(uid for group in made.unplaced for uid in group.pods)


def spread_over(count: int, given: PodShape, **fields: Any) -> tuple[Problem, Plan]:
    asked = problem(Workloads().add("w", count, given), ladder(2, 4), **fields)
    return asked, planned(asked)


# ── spread ──────────────────────────────────────


def test_s140_e77_four_pods_over_three_zones() -> None:
    asked, made = spread_over(4, web(spread=(spread(),)))
    assert per_domain(asked, made) == [2, 1, 1]


def test_s131_e78_pods_that_are_bound_count() -> None:
    nodes = [node("n1", "z1"), node("n2", "z2")]
    asked, made = spread_over(3, web(spread=(spread(),)), nodes=nodes, bound=[(web(), "n1")] * 3)
    assert per_domain(asked, made) == [2, 1], "z1 has three: the new ones go to z2 and z3"


def test_s129_e79_a_zone_that_only_a_node_knows_stays_a_domain() -> None:
    zones = spec(lbl.ZONE, "In", "z2", "z3")
    work = Workloads().add("w", 10, web(spread=(spread(),)))
    asked = problem(work, ladder(2, 4), pool("default", zones), nodes=[node("n1", "z1")], bound=[(web(), "n1")])
    made = planned(asked)
    assert per_domain(asked, made) == [2, 2]
    assert len(left(made)) == 6
    assert {reason.code for group in made.unplaced for reason in group.reasons} == {SchedulingCode.TOPOLOGY}


@pytest.mark.parametrize(("least", "placed"), [(3, [1, 1]), (2, [2, 1])])
def test_s138_e81_min_domains(least: int, placed: list[int]) -> None:
    zones = spec(lbl.ZONE, "In", "z1", "z2")
    work = Workloads().add("w", 3, web(spread=(spread(min_domains=least),)))
    asked = problem(work, ladder(2, 4), pool("default", zones))
    assert per_domain(asked, planned(asked)) == placed


def test_s140_e80_a_skew_of_five() -> None:
    nodes = [node("n1", "z1"), node("n2", "z2")]
    work = Workloads().add("w", 10, web(spread=(spread(skew=5),)))
    only = pool("default", spec(lbl.ZONE, "In", "z3"))
    asked = problem(work, ladder(4, 8), only, nodes=nodes, bound=[(web(), "n1"), (web(), "n2")])
    assert per_domain(asked, planned(asked)) == [6]


@pytest.mark.parametrize("least", [2, 3])
def test_s138_e82_min_domains_that_there_are(least: int) -> None:
    asked, made = spread_over(11, web(spread=(spread(min_domains=least),)))
    assert per_domain(asked, made) == [4, 4, 3]


def test_s140_e92_capacity_types() -> None:
    spot = node("n1", "z1", 0, **{lbl.CAPACITY_TYPE: "spot"})
    work = Workloads().add("w", 5, web(spread=(spread(lbl.CAPACITY_TYPE),)))
    only = pool("default", spec(lbl.CAPACITY_TYPE, "In", "on-demand"))
    asked = problem(work, ladder(4), only, nodes=[spot], bound=[(web(), "n1")])
    made = planned(asked)
    assert per_domain(asked, made, lbl.CAPACITY_TYPE) == [2]
    assert len(left(made)) == 3


def test_s122_s128_e95_taints_honored() -> None:
    pools = [
        pool(name, spec("k", "In", *values), taints=(Taint(name, "NoSchedule"),))
        for name, values in (("A", ("foo", "bar")), ("B", ("foo", "baz")))
    ]
    work = Workloads()
    for name, count in (("A", 2), ("B", 4)):
        given = web(spread=(spread("k", node_taints_policy="Honor"),), tolerations=(Toleration(name, "Exists"),))
        work.add(name, count, given)
    asked = problem(work, ladder(4), *pools)
    assert left(planned(asked)) == []


def test_s120_two_workloads_that_differ_only_in_min_domains_do_not_share_it() -> None:
    """The reference gives both the minDomains of whichever came first."""
    zones = spec(lbl.ZONE, "In", "z1", "z2")
    work = Workloads().add("a", 3, web(spread=(spread(min_domains=3),))).add("b", 3, web(spread=(spread(),)), created=1)
    made = planned(problem(work, ladder(4), pool("default", zones)))
    assert [uid[0] for uid in left(made)].count("b") == 0


def test_s121_pods_with_other_selectors_do_not_share_counts() -> None:
    """E-90: the reference counts both with the node filter of whichever came first (S-121)."""
    work = Workloads()
    for zone, count in (("z1", 5), ("z2", 10)):
        work.add(zone, count, web(spread=(spread(),), node_selector={lbl.ZONE: zone}))
    asked = problem(work, ladder(8))
    assert per_domain(asked, planned(asked)) == [10, 5]


def test_s100_e87_the_next_zone_is_tried_where_the_emptiest_has_no_offering() -> None:
    """The reference picks z1 by its count alone and leaves the pods pending."""
    offers = tuple(Offering(zone, lbl.ON_DEMAND, 0.1, available=zone != "z1") for zone in ZONES)
    asked = problem(
        Workloads().add("w", 4, web(spread=(spread(),))), Catalogue((instance_type("t", 4, offerings=offers),))
    )
    made = planned(asked)
    assert left(made) == []
    assert per_domain(asked, made) == [2, 2]


def test_s140_among_equal_zones_the_cheapest_then_the_first() -> None:
    prices = {"z1": 0.3, "z2": 0.1, "z3": 0.1}
    offers = tuple(Offering(zone, lbl.ON_DEMAND, price) for zone, price in prices.items())
    asked = problem(
        Workloads().add("w", 1, web(spread=(spread(),))), Catalogue((instance_type("t", 4, offerings=offers),))
    )
    (claim,) = planned(asked).claims
    assert next(requirement.values for requirement in claim.requirements if requirement.key == lbl.ZONE) == ("z2",)


def test_s141_e84_an_unknown_key_has_no_domain() -> None:
    work = Workloads().add("w", 1, web(spread=(spread("rack"),))).add("plain", 1, shape())
    assert left(planned(problem(work, ladder(2)))) == ["w-0"]


def test_s126_e93_a_label_that_only_node_pools_define() -> None:
    pools = [
        pool("a", spec("k", "In", "2", "3", "4", "5"), spec(lbl.CAPACITY_TYPE, "In", "spot")),
        pool("b", spec("k", "In", "1"), spec(lbl.CAPACITY_TYPE, "In", "on-demand")),
    ]
    asked = problem(Workloads().add("w", 20, web(spread=(spread("k"),))), ladder(4), *pools)
    made = planned(asked)
    assert per_domain(asked, made, "k") == [4, 4, 4, 4, 4]
    assert per_domain(asked, made, lbl.CAPACITY_TYPE) == [16, 4]


@pytest.mark.parametrize("operator", ["Exists", "NotIn"])
def test_s126_s135_a_node_pool_that_leaves_a_label_open_launches_nodes_in_its_known_domains(operator: str) -> None:
    """One value is that of a node, the others are those of a NodePool whose taint the pods do not tolerate."""
    values = ("1", "9") if operator == "NotIn" else ()
    open_pool = pool("open", spec("k", operator, *values))
    pools = [open_pool, pool("tainted", spec("k", "In", "1", "2"), taints=(Taint("t", "NoSchedule"),))]
    work = Workloads().add("w", 6, web(spread=(spread("k"),)))
    asked = problem(work, ladder(4), *pools, nodes=[node("n", "z1", k="3")])
    made = planned(asked)
    assert per_domain(asked, made, "k") == ([3, 3] if values else [2, 2, 2])
    assert {claim.node_pool for claim in made.claims} == {"open"}


def test_s126_s143_pods_follow_others_into_a_domain_of_a_label_that_a_node_pool_leaves_open() -> None:
    work = Workloads().add("w", 2, web(affinity=(near("k"),)))
    open_pool = pool("open", spec("k", "Exists"))
    asked = problem(work, ladder(4), open_pool, nodes=[node("n", "z1", k="3")], bound=[(web(), "n")])
    made = planned(asked)
    assert per_domain(asked, made, "k") == [2]
    assert [claim.labels["k"] for claim in made.claims] == ["3"]


@pytest.mark.parametrize("key", [lbl.ZONE, lbl.HOSTNAME])
def test_s141_e85_pods_that_their_own_constraint_does_not_select_share_a_node(key: str) -> None:
    other = Selector({"app": "other"})
    _, made = spread_over(2, web(spread=(spread(key, selector=other),)))
    assert len(made.claims) == 1


@pytest.mark.parametrize(("skew", "claims"), [(1, 4), (4, 1)])
def test_s139_e86_hostname_spread(skew: int, claims: int) -> None:
    _, made = spread_over(4, web(spread=(spread(lbl.HOSTNAME, skew),)))
    assert len(made.claims) == claims


@pytest.mark.parametrize("policy", ["Ignore", "Honor"])
def test_s128_e94_a_domain_behind_a_taint_keeps_nobody_waiting(policy: str) -> None:
    """The reference leaves one pod pending under Ignore although no node is in that domain."""
    pools = [pool("a", spec("k", "In", "foo")), pool("b", spec("k", "In", "bar"), taints=(Taint("t", "NoSchedule"),))]
    work = Workloads().add("w", 2, web(spread=(spread("k", node_taints_policy=policy),)))
    assert left(planned(problem(work, ladder(4), *pools))) == []


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 5)])
def test_s122_e96_nodes_that_the_pods_do_not_select(policy: str, placed: int) -> None:
    nodes = [node("n1", "z1", k="foo"), node("n2", "z1", k="bar")]
    given = web(spread=(spread("k", node_affinity_policy=policy),), node_selector={"team": "red"})
    red = pool("p", spec("k", "In", "baz"), spec("team", "In", "red"))
    asked = problem(Workloads().add("w", 5, given), ladder(4), red, nodes=nodes)
    assert 5 - len(left(planned(asked))) == placed


def test_s125_e97_match_label_keys() -> None:
    work = Workloads()
    for revision in "ab":
        own = {**WEB, "rev": revision}
        given = shape(500, labels=own, spread=(spread(lbl.HOSTNAME, match_label_keys=("rev", "missing")),))
        work.add(revision, 2, given)
    made = planned(problem(work, ladder(4)))
    assert sorted(sorted(uid[0] for uid in claim.pods) for claim in made.claims) == [["a", "b"], ["a", "b"]]


def test_s36_schedule_anyway_is_kept_while_it_can_be_and_then_given_up() -> None:
    asked, made = spread_over(3, web(spread=(spread(when_unsatisfiable="ScheduleAnyway"),)))
    assert per_domain(asked, made) == [1, 1, 1]
    work = Workloads().add("w", 1, web(spread=(spread("rack", when_unsatisfiable="ScheduleAnyway"),)))
    assert left(planned(problem(work, ladder(2)))) == []


def test_s134_pods_already_on_a_claim_count_when_it_gets_its_zone() -> None:
    """The reference forgets them. The plain pod opens the claim, the next one pins it, and then there are two."""
    work = Workloads().add("plain", 1, web(900)).add("w", 2, web(400, spread=(spread(),)))
    asked = problem(work, ladder(4))
    made = planned(asked)
    assert len(made.claims) == 2


# ── affinity ──────────────────────────────────────


def test_s142_e99_hostname_self_affinity_stays_on_one_node() -> None:
    work = Workloads().add("w", 10, web(400, affinity=(near(lbl.HOSTNAME),)))
    made = planned(problem(work, ladder(2)))
    assert len(made.claims) == 1
    assert len(left(made)) == 5


def test_s144_e100_zonal_self_affinity() -> None:
    asked, made = spread_over(3, web(affinity=(near(),)))
    assert per_domain(asked, made) == [3]


def test_s144_e101_self_affinity_in_two_zones_is_not_what_kube_scheduler_binds() -> None:
    """The reference opens a node in each zone, and kube-scheduler never binds the second pod."""
    work = Workloads()
    for zone in ("z2", "z3"):
        work.add(zone, 1, web(affinity=(near(),), node_selector={lbl.ZONE: zone}))
    assert len(left(planned(problem(work, ladder(2))))) == 1


def test_s145_e102_affinity_to_nobody() -> None:
    _, made = spread_over(1, shape(affinity=(near(),)))
    assert left(made) == ["w-0"]


@pytest.mark.parametrize("cpu", [100, 900])
def test_s145_e103_affinity_to_a_pod_of_this_pass(cpu: int) -> None:
    """In the reference the second one waits for the next pass. Larger or smaller than what it follows."""
    work = Workloads().add("target", 1, web(500)).add("follower", 1, shape(cpu, affinity=(near(),)))
    asked = problem(work, ladder(1))
    made = planned(asked)
    assert left(made) == []
    assert per_domain(asked, made) == [2]


@pytest.mark.parametrize(
    ("fields", "works"),
    [({"namespaces": ("other",)}, True), ({"namespace_selector": Selector()}, True), ({}, False)],
)
def test_s124_e104_namespaces(fields: dict[str, Any], works: bool) -> None:
    work = Workloads().add("target", 1, web(900), namespace="other").add("w", 1, shape(affinity=(near(**fields),)))
    made = planned(problem(work, ladder(2), namespaces=[Namespace("other")]))
    assert (left(made) == []) == works


def test_s118_all_required_terms_must_be_met_by_the_same_pods() -> None:
    """kube-scheduler's reading; the reference lets each term be met by another pod."""
    two = (near(), near(lbl.HOSTNAME, Selector({"app": "db"})))
    work = Workloads().add("a", 1, web()).add("b", 1, shape(500, labels={"app": "db"})).add("w", 1, shape(affinity=two))
    assert left(planned(problem(work, ladder(4)))) == ["w-0"]


# ── anti-affinity ──────────────────────────────────────


def test_s148_e105_all_self_anti_affine_zonal_pods_in_one_pass() -> None:
    """The reference places one per pass."""
    asked, made = spread_over(4, web(anti_affinity=(near(),)))
    assert per_domain(asked, made) == [1, 1, 1]
    assert len(left(made)) == 1


@pytest.mark.parametrize(("first", "second"), [(900, 100), (100, 900)])
def test_s148_e106_e108_who_keeps_away_and_whom_from(first: int, second: int) -> None:
    work = Workloads().add("web", 1, web(first)).add("shy", 1, shape(second, anti_affinity=(near(),)))
    asked = problem(work, ladder(2))
    made = planned(asked)
    assert left(made) == []
    assert per_domain(asked, made) == [1, 1]


@pytest.mark.parametrize("weight", [0, 10])
def test_s119_e107_pods_that_keep_others_away(weight: int) -> None:
    work = Workloads()
    for zone in ZONES:
        work.add(zone, 1, shape(900, node_selector={lbl.ZONE: zone}, anti_affinity=(near(weight=weight),)))
    made = planned(problem(work.add("x", 1, web(100)), ladder(2)))
    assert left(made) == ([] if weight else ["x-0"])


def test_s119_bound_pods_keep_others_away_too() -> None:
    shy = shape(anti_affinity=(near(lbl.HOSTNAME),))
    asked = problem(Workloads().add("x", 1, web()), ladder(2), nodes=[node("n", "z1", 4000)], bound=[(shy, "n")])
    assert len(planned(asked).claims) == 1


def test_s137_e109_anti_affinity_over_a_label_that_nobody_has_keeps_nobody_away() -> None:
    """Nobody is in a domain of it, say kube-scheduler's filters. Affinity and spreads do need the label."""
    work = Workloads().add("shy", 2, shape(anti_affinity=(near("rack"),), labels=WEB)).add("plain", 1, web())
    work.add("fan", 1, web(affinity=(near("rack"),))).add("even", 1, web(spread=(spread("rack"),)))
    made = planned(problem(work, ladder(2)))
    assert left(made) == ["even-0", "fan-0"]
    assert len(made.claims) == 1


def test_s137_anti_affinity_over_a_label_that_only_some_nodes_have() -> None:
    """A bound pod keeps others out of its rack, and not off nodes that are in none."""
    nodes = [node("there", "z1", 4000, rack="r1"), node("without", "z1", 600)]
    shy = shape(labels={"app": "shy"}, anti_affinity=(near("rack"),))
    asked = problem(Workloads().add("web", 2, web(400)), ladder(2), nodes=nodes, bound=[(shy, "there")])
    made = planned(asked)
    assert [(placement.node, len(placement.pods)) for placement in made.placements] == [("without", 1)]
    assert [len(claim.pods) for claim in made.claims] == [1]


def test_s137_who_keeps_away_over_a_label_shares_no_node_that_gets_one() -> None:
    """A pod that only forbids a value of a label has its node get another one (S-165), the same on every node."""
    racked = shape(1500, required_terms=(term(("rack", "NotIn", ("r9",))),))
    work = Workloads().add("shy", 2, shape(1500, labels=WEB, anti_affinity=(near("rack"),))).add("racked", 2, racked)
    made = planned(problem(work, ladder(4)))
    racks = {uid.partition("-")[0]: claim.labels.get("rack") for claim in made.claims for uid in claim.pods}
    assert racks == {"shy": None, "racked": "0"}


def test_s36_e36_preferred_anti_affinity_does_not_pin() -> None:
    """A preference that could be kept only in other zones is given up rather than paid for."""
    _, made = spread_over(3, web(100, anti_affinity=(near(weight=1),)))
    assert len(made.claims) == 1


# ── several rules, claims in flight ──────────────────────────────────────


def test_s135_two_rules_over_one_key_are_met_together() -> None:
    """The reference takes one domain for each rule and fails where they differ."""
    nodes = [node(f"n{zone}", zone) for zone in ZONES]
    other = Selector({"app": "other"})
    bound = [(web(), "nz2"), (shape(labels={"app": "other"}), "nz1")]
    given = web(spread=(spread(skew=2), spread(skew=2, selector=other)))
    _, made = spread_over(2, given, nodes=nodes, bound=bound)
    assert left(made) == []


def test_s77_a_claim_in_flight_is_judged_by_every_zone_it_may_get() -> None:
    flying = NodeInput("c", "c", {}, (), {"cpu": 4000, "memory": 8 * GI, "pods": 20}, initialized=False)
    for zones, fits in ((("z1",), True), (("z1", "z2"), False)):
        there = NodeInput(**{**{f: getattr(flying, f) for f in flying.__struct_fields__},
                             "requirements": (spec(lbl.ZONE, "In", *zones),)})  # fmt: skip
        asked = problem(
            Workloads().add("w", 1, shape(100, affinity=(near(),))),
            ladder(2),
            nodes=[node("n", "z1"), there],
            bound=[(web(), "n")],
        )
        assert bool(planned(asked).placements) == fits


def codes(made: Plan) -> Sequence[str]:
    return sorted({reason.code for group in made.unplaced for reason in group.reasons})


def test_s136_reasons_name_the_rule_and_its_counts() -> None:
    _, made = spread_over(4, web(anti_affinity=(near(),)))
    (group,) = made.unplaced
    (why,) = group.reasons
    assert codes(made) == [SchedulingCode.TOPOLOGY]
    assert (why.params["rule"], why.params["key"]) == ("anti-affinity", lbl.ZONE)
    assert why.params["domains"] == ["z1=1", "z2=1", "z3=1"]


def test_s38_tolerations_and_topology_together() -> None:
    tainted = pool("t", taints=(Taint("t", "NoSchedule"),))
    given = web(spread=(spread(),), tolerations=(Toleration("t", "Exists"),))
    asked = problem(Workloads().add("w", 3, given), ladder(2), tainted)
    assert per_domain(asked, planned(asked)) == [1, 1, 1]


def test_s141_preferred_zones_narrow_nodes_but_not_the_minimum() -> None:
    """Preferred zones narrow where a pod goes, but not the spread's minimum (E-89)."""
    zone = (lbl.ZONE, "In", ("z1", "z2"))
    asked, made = spread_over(6, web(spread=(spread(),), preferred_terms=(preferred(1, zone),)))
    assert per_domain(asked, made) == [2, 2, 2]


def test_s138_e88_required_zones() -> None:
    first = web(900, spread=(spread(),), required_terms=(term((lbl.ZONE, "In", ("z1", "z2"))),))
    second = web(800, spread=(spread(),), required_terms=(term((lbl.ZONE, "In", ("z2", "z3"))),))
    work = Workloads().add("a", 6, first).add("b", 1, second).add("c", 5, web(700, spread=(spread(),)))
    asked = problem(work, ladder(4))
    assert per_domain(asked, planned(asked)) == [4, 4, 4]


def test_s123_expressions_and_nil_selectors() -> None:
    few = Selector(expressions=(Expression("app", "In", ("web", "db")), Expression("gone", "DoesNotExist")))
    asked, made = spread_over(4, web(spread=(spread(selector=few),)))
    assert per_domain(asked, made) == [2, 1, 1]
    _, made = spread_over(4, web(anti_affinity=(AffinityTerm(lbl.HOSTNAME, None),)))
    assert len(made.claims) == 1, "a nil selector selects nobody"


@pytest.mark.parametrize("digests", [("0", "1"), ("1", "0")])
def test_the_first_of_several_refusals_does_not_depend_on_the_digests_of_shapes(digests: tuple[str, str]) -> None:
    """Pseudonyms change digests, and keep the order of pods."""
    zone, capacity_type = near(), near(lbl.CAPACITY_TYPE)
    terms = {"a": (zone, capacity_type), "b": (capacity_type, zone)}
    labels = {lbl.ZONE: "z1", lbl.CAPACITY_TYPE: lbl.ON_DEMAND}
    full = NodeInput("full", "", labels, (), {"cpu": 0, "memory": 8 * GI, "pods": 20})
    one_domain = Catalogue((instance_type("t", 4, zones=("z1",), capacity_types=(lbl.ON_DEMAND,)),))
    asked = problem(Workloads(), one_domain, nodes=[full], bound=[(web(), "full")])
    shapes = {digests[number]: web(anti_affinity=terms[name]) for number, name in enumerate(terms)}
    pods = tuple(PendingPod(name, "default", name, digests[number]) for number, name in enumerate(terms))
    made = plan(replace(asked, pods=pods, shapes={**asked.shapes, **shapes}))
    keys = {uid: reason.params["key"] for group in made.unplaced for uid in group.pods for reason in group.reasons}
    assert keys == {"a": lbl.ZONE, "b": lbl.ZONE}
