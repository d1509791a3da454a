"""The judge of spreads, which knows zones that have no node yet (S-126, S-138)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.kubernetes.pods import Selector, SpreadConstraint
from kerf.engine.scheduling.optimizer.spread_judge import SpreadJudge
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.problems import Workloads, ladder, problem, shape

APP = {"app": "web"}


def spread_over(key: str, when: str = "DoNotSchedule", selected: str = "web", policy: str = "Respect") -> Problem:
    """Four pods that are spread, and three that are not and that such a spread may count."""
    constraint = SpreadConstraint(key, 1, when, Selector({"app": selected}))
    work = Workloads().add("web", 4, shape(900, labels=APP, spread=(constraint,)))
    work.add("other", 3, shape(900, labels={"app": "other"}))
    return problem(work, ladder(8), preference_policy=policy)


def on_one_node(first: Plan) -> Plan:
    """All pods on the first claim."""
    pods = tuple(sorted(uid for claim in first.claims for uid in claim.pods))
    return Plan((replace(first.claims[0], pods=pods),))


@pytest.mark.parametrize("key", [lbl.ZONE, lbl.HOSTNAME, lbl.CAPACITY_TYPE])
@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_s126_s138_a_plan_in_one_domain_breaks_a_spread_over_several(key: str, when: str) -> None:
    asked = spread_over(key, when)
    first = plan(asked)
    judge = SpreadJudge(asked, first)
    assert judge.keeps(first)
    assert not judge.keeps(on_one_node(first))


def test_s36_spreads_that_nobody_is_to_keep_are_not_judged() -> None:
    asked = spread_over(lbl.ZONE, "ScheduleAnyway", policy="Ignore")
    first = plan(asked)
    assert SpreadJudge(asked, first).keeps(on_one_node(first))


def test_s138_what_the_first_plan_breaks_another_plan_may_break_as_much() -> None:
    asked = spread_over(lbl.ZONE)
    broken = on_one_node(plan(asked))
    assert SpreadJudge(asked, broken).keeps(broken)


def test_s139_pods_that_their_own_spread_does_not_count_keep_out_of_full_domains() -> None:
    asked = spread_over(lbl.ZONE, selected="other")
    first = plan(asked)
    assert not SpreadJudge(asked, first).keeps(on_one_node(first))


@pytest.mark.parametrize(
    ("web", "others", "kept"), [("z2", ("z1", "z1", "z1"), True), ("z1", ("z1", "z1", "z1"), False)]
)
def test_s138_only_pods_that_a_spread_binds_break_it(web: str, others: tuple[str, ...], kept: bool) -> None:
    """A spread that counts all pods, but is of one alone, does not hold the others in their zones."""
    constraint = SpreadConstraint(lbl.ZONE, 1, "DoNotSchedule", Selector())
    work = Workloads().add("web", 1, shape(6_000, labels=APP, spread=(constraint,)))
    asked = problem(work.add("other", 3, shape(6_000, labels={"app": "other"})), ladder(8))
    judge = SpreadJudge(asked, in_zones(asked, "z2", ("z1", "z1", "z3")))
    assert judge.keeps(in_zones(asked, web, others)) is kept


def in_zones(asked: Problem, web: str, others: tuple[str, ...]) -> Plan:
    """Each pod on a claim of its own, in these zones."""
    zones = iter(others)
    of_web = {pod.uid for pod in asked.pods if pod.name.startswith("web")}
    claims = []
    for claim in plan(asked).claims:
        zone = web if of_web.issuperset(claim.pods) else next(zones)
        kept = [constraint for constraint in claim.constraints if constraint.key != lbl.ZONE]
        claims.append(replace(claim, constraints=(*kept, Requirement(lbl.ZONE, False, frozenset([zone])))))
    return Plan(tuple(claims))


def test_a_node_whose_zone_is_open_keeps_no_spread_over_zones() -> None:
    asked = spread_over(lbl.ZONE)
    first = plan(asked)
    claims = (
        replace(claim, constraints=tuple(constraint for constraint in claim.constraints if constraint.key != lbl.ZONE))
        for claim in first.claims
    )
    assert not SpreadJudge(asked, first).keeps(Plan(tuple(claims)))
