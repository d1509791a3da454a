"""The judge refuses what is wrong: each plan here is valid but for one thing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import AffinityTerm, HostPort, PodShape, Selector, SpreadConstraint, Taint
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, problem, shape

WEB = Selector({"app": "web"})


def asked(given: PodShape, count: int = 2, **fields: object) -> Problem:
    work = Workloads().add("w", count, replace(given, labels={"app": "web"}))
    node = NodeInput("n", "", {lbl.ZONE: "z1"}, (Taint("busy", "NoSchedule"),), {"cpu": 9000, "memory": GI, "pods": 9})
    return problem(work, ladder(1, 2, 4), pool("default", **fields), nodes=[node])


def in_one(made: Plan) -> Plan:
    """All pods on the first claim."""
    first = made.claims[0]
    uids = tuple(uid for claim in made.claims for uid in claim.pods)
    return Plan((replace(first, pods=uids, instance_types=("t04",)),))


def changed(**fields: object) -> Callable[[Plan], Plan]:
    return lambda made: Plan(tuple(replace(claim, **fields) for claim in made.claims))


def zoned(zone: str) -> Callable[[Plan], Plan]:
    def move(claim: OpenedClaim) -> OpenedClaim:
        kept = tuple(requirement for requirement in claim.requirements if requirement.key != lbl.ZONE)
        return replace(claim, requirements=(*kept, RequirementSpec(lbl.ZONE, "In", (zone,))))

    return lambda made: Plan(tuple(move(claim) for claim in made.claims))


def on_node(made: Plan) -> Plan:
    return Plan(placements=(Placement("n", "", tuple(uid for claim in made.claims for uid in claim.pods)),))


SPREAD = SpreadConstraint(lbl.ZONE, 1, selector=WEB)
CASES: list[tuple[str, PodShape, Callable[[Plan], Plan], str]] = [
    ("a pod lost", shape(), lambda made: Plan(), "lost or doubled"),
    ("too small", shape(1500), changed(instance_types=("t01",)), "not enough|has not enough"),
    ("not on offer", shape(), zoned("z9"), "not on offer"),
    ("other zone", shape(node_selector={lbl.ZONE: "z1"}), zoned("z2"), "label"),
    ("tainted", shape(), on_node, "taint"),
    ("ports", shape(host_ports=(HostPort(80),)), in_one, "host port"),
    ("apart on a host", shape(anti_affinity=(AffinityTerm(lbl.HOSTNAME, WEB),)), in_one, "anti-affinity"),
    ("apart in a zone", shape(anti_affinity=(AffinityTerm(lbl.ZONE, WEB),)), zoned("z1"), "anti-affinity"),
    ("skew", shape(spread=(SPREAD,)), zoned("z2"), "cannot be bound"),
    ("zone left open", shape(spread=(SPREAD,)), changed(requirements=()), "cannot be bound"),
    ("alone", shape(affinity=(AffinityTerm(lbl.ZONE, Selector({"app": "db"})),)), lambda made: made, "cannot be bound"),
]


@pytest.mark.parametrize(("given", "spoil", "what"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_judge_sees(given: PodShape, spoil: Callable[[Plan], Plan], what: str) -> None:
    question = asked(given)
    lenient = asked(replace(given, affinity=()))  # what no plan can have is planned without
    made = plan(question if not given.affinity else lenient)
    if not given.affinity:
        assert faults(question, made) == []
    else:
        shapes = {pod.uid: pod.shape for pod in question.pods}
        assert set(shapes) == {uid for claim in made.claims for uid in claim.pods}
    found = " ".join(faults(question, spoil(made)))
    assert any(code in found for code in what.split("|")), found


def test_the_judge_sees_limits() -> None:
    question = asked(shape(1500, anti_affinity=(AffinityTerm(lbl.HOSTNAME, WEB),)), limits={"cpu": 100_000})
    made = plan(question)
    assert faults(question, made) == []
    tight = asked(shape(1500, anti_affinity=(AffinityTerm(lbl.HOSTNAME, WEB),)), limits={"cpu": 3000})
    assert "limit on cpu" in " ".join(faults(tight, made))


def test_an_order_that_only_a_search_finds_is_enough() -> None:
    """The pod that is spread over zones goes first, then the two that are apart by host, the later claim's before."""
    by_host, by_zone = SpreadConstraint(lbl.HOSTNAME, 1, selector=WEB), SpreadConstraint(lbl.ZONE, 1, selector=WEB)
    web = {"app": "web"}
    work = (
        Workloads()
        .add("w0", 3, replace(shape(0), labels=web))
        .add("w1", 1, replace(shape(0, spread=(by_zone, replace(by_zone, min_domains=2))), labels=web))
        .add("w2", 2, replace(shape(0, memory=512, spread=(by_host,)), labels=web))
    )
    asked_of = problem(work, ladder(1, 2, 4), pool("default"))
    made = plan(asked_of)
    first, *others = made.claims
    pods = (("w0-0", "w1-0", "w2-0"), ("w0-1", "w0-2", "w2-1"))
    zone = RequirementSpec(lbl.ZONE, "In", ("z1",))
    apart = Plan(
        (
            replace(first, pods=pods[0], requirements=(*_without_zone(first), zone), instance_types=("t04",)),
            replace(others[0] if others else first, pods=pods[1], instance_types=("t04",)),
        )
    )
    assert faults(asked_of, apart) == []


def _without_zone(claim: OpenedClaim) -> tuple[RequirementSpec, ...]:
    return tuple(requirement for requirement in claim.requirements if requirement.key != lbl.ZONE)
