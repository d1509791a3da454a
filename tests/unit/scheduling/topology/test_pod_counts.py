"""What topology counts, and where (S-77, S-122, S-127, S-129, S-132, S-133, S-147, S-157)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint, Taint, VolumeRef
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod
from tests.support.judges.plans import faults
from tests.support.lives import PODS, in_service
from tests.support.scenarios.problems import GI, ZONES, Workloads, ladder, pool, problem, shape, spec, term

WEB = Selector({"app": "web"})


def web(cpu: int = 900, **fields: Any) -> PodShape:
    return shape(cpu, labels={"app": "web"}, **fields)


def zones(made: Plan) -> list[str]:
    """Of the claims, in their order; several where it is open."""
    return [
        "|".join(requirement.values)
        for claim in made.claims
        for requirement in claim.requirements
        if requirement.key == lbl.ZONE
    ]


def test_s122_a_node_without_the_label_of_another_hard_spread_is_not_looked_at() -> None:
    """As kube-scheduler does: that z3 has a node of somebody else's keeps nobody waiting."""
    both = (SpreadConstraint(lbl.ZONE, selector=WEB), SpreadConstraint(lbl.CAPACITY_TYPE, selector=WEB))
    others = NodeInput("old", "", {lbl.ZONE: "z3"}, (), {"cpu": 0})
    two = pool("two", spec(lbl.ZONE, "In", "z1", "z2"))
    asked = problem(Workloads().add("w", 4, web(spread=both)), ladder(2), two, nodes=[others])
    made = plan(asked)
    assert [zones(made), made.unplaced] == [["z1", "z2"], ()]
    assert faults(asked, made) == []
    assert unbound_pods(asked, made) == ()
    alone = problem(Workloads().add("w", 4, web(spread=both[:1])), ladder(2), two, nodes=[others])
    assert len(plan(alone).unplaced[0].pods) == 2
    soft = replace(both[1], when_unsatisfiable="ScheduleAnyway")
    half = problem(Workloads().add("w", 4, web(spread=(both[0], soft))), ladder(2), two, nodes=[others])
    assert len(plan(half).unplaced[0].pods) == 2


@pytest.mark.parametrize(
    ("key", "asks", "zone"), [(lbl.HOSTNAME, {lbl.ZONE: "z1"}, "z1"), (lbl.ZONE, {lbl.CAPACITY_TYPE: "spot"}, "z2")]
)
def test_s77_s122_pods_on_a_claim_in_flight_count_by_what_is_known_of_its_labels(
    key: str, asks: dict[str, str], zone: str
) -> None:
    """It has no labels of zone and capacity type yet, but its requirements say which they will be."""
    known = (spec(lbl.ZONE, "In", "z1"), spec(lbl.CAPACITY_TYPE, "In", "spot"))
    room = {"cpu": 4000, "memory": 8 * GI, "pods": 9}
    flying = NodeInput("p-1", "p-1", {}, (), room, initialized=False, requirements=known)
    wanted = web(node_selector=asks, spread=(SpreadConstraint(key, selector=WEB),))
    two = pool("two", spec(lbl.ZONE, "In", "z1", "z2"))
    made = plan(problem(Workloads().add("w", 2, wanted), ladder(2), two, nodes=[flying]))
    assert [len(placement.pods) for placement in made.placements] == [1]
    assert zones(made) == [zone]


def test_s127_a_domain_that_one_nodepool_offers_without_a_taint_is_one_for_everybody() -> None:
    """Whatever taints the others have; a domain that all of them taint is none for pods that do not tolerate it."""
    spread = SpreadConstraint("k", selector=WEB, node_taints_policy="Honor")
    tainted = (Taint("t", "NoSchedule"),)
    pools = [
        pool("a", spec("k", "In", "foo", "bar"), taints=tainted, weight=1),
        pool("b", spec("k", "In", "foo", "baz")),
    ]
    made = plan(problem(Workloads().add("w", 4, web(spread=(spread,))), ladder(1), *pools))
    values = sorted(
        requirement.values[0] for claim in made.claims for requirement in claim.requirements if requirement.key == "k"
    )
    assert values == ["baz", "baz", "foo", "foo"]
    assert {claim.node_pool for claim in made.claims} == {"b"}


def test_s129_a_node_that_leaves_keeps_no_zone_a_domain_but_for_pods_that_stay() -> None:
    """Where no node can be launched any more; else its pods would wait for it to be gone before one is."""
    spread = SpreadConstraint(lbl.ZONE, selector=WEB)
    full = [NodeInput(f"n{zone}", "", {lbl.ZONE: zone}, (), {"cpu": 0}) for zone in ("z1", "z2")]
    leaving = (NodeInput("old", "", {lbl.ZONE: "z3"}, (), {}),)
    two = pool("two", spec(lbl.ZONE, "In", "z1", "z2"))
    work = Workloads().add("w", 3, web(spread=(spread,)))
    asked = problem(work, ladder(1), two, nodes=full, bound=[(web(), "nz1"), (web(), "nz2")])
    made = plan(replace(asked, leaving=leaving))
    assert zones(made) == ["z1", "z2", "z1"]
    assert faults(replace(asked, leaving=leaving), made) == []
    stays = BoundPod("stays", "default", work.shape(web()), "old")
    made = plan(replace(asked, leaving=leaving, bound=(*asked.bound, stays)))
    assert [zones(made), [len(group.pods) for group in made.unplaced]] == [["z1", "z2"], [1]]


def test_s132_pods_that_move_are_not_counted_where_they_are() -> None:
    """Those of a node that goes are pods of the pass, beside those that wait."""
    world = in_service()
    world.pending("alone", anti_affinity=(AffinityTerm(lbl.HOSTNAME, Selector()),))
    asked = problem_of(world.runtime.state, world.now)
    assert {pod.name for pod in asked.bound} == set(PODS)
    world.see(Observation(replace(world.runtime.state.facts.nodes["n1"], deleting=world.now)))
    asked = problem_of(world.runtime.state, world.now)
    assert {pod.name for pod in asked.pods} == {"alone", *PODS}
    assert asked.bound == ()


def test_s133_a_rule_that_is_first_looked_at_after_a_relaxation_counts_what_was_placed_before() -> None:
    """Unlike in the reference: the second pod gives up a zone that there is not, and then keeps away from the first."""
    apart = (AffinityTerm(lbl.ZONE, WEB),)
    work = Workloads().add("first", 1, web(node_selector={lbl.ZONE: "z1"}))
    terms = tuple(term((lbl.ZONE, "In", values)) for values in (("nowhere",), ("z1", "z2")))
    wish = replace(shape(100, anti_affinity=apart), required_terms=terms)
    made = plan(problem(work.add("second", 1, wish), ladder(1, 2)))
    assert zones(made) == ["z1", "z2"]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_s147_zones_without_such_pods_are_all_that_anti_affinity_leaves(taken: int) -> None:
    nodes = [NodeInput(zone, "", {lbl.ZONE: zone}, (), {"cpu": 0, "memory": GI, "pods": 9}) for zone in ZONES]
    bound = [(web(), zone) for zone in ZONES[:taken]]
    work = Workloads().add("w", 1, shape(100, anti_affinity=(AffinityTerm(lbl.ZONE, WEB),)))
    made = plan(problem(work, ladder(2), nodes=nodes, bound=bound))
    assert bool(made.unplaced) == (taken == 3)
    for found in zones(made):
        assert not set(found.split("|")) & set(ZONES[:taken])


def test_s157_a_pod_that_moves_is_placed_though_its_volume_is_not_known() -> None:
    """One that waits is refused for it (S-153)."""
    given = shape(100, volumes=(VolumeRef("data", "gone"),))
    work = Workloads()
    digest = work.shape(given)
    work.pods += [PendingPod(name, "default", name, digest, accepted=name == "moves") for name in ("moves", "waits")]
    made = plan(replace(problem(work, ladder(2)), volumes=VolumeFacts()))
    assert [claim.pods for claim in made.claims] == [("moves",)]
    assert [group.pods for group in made.ignored] == [("waits",)]
