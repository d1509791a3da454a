"""Reserved capacity: S-112…S-116, E-71…E-76."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.scheduling.launchable.remaining_reservations import with_launches_taken
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.reasons import SchedulingCode
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, preferred, problem, shape, spec


def reserved(name: str, cpu: int, *held: tuple[str, int]) -> InstanceType:
    """A type with an on-demand offering and these reservations (id, launches left), all in z1."""
    offerings = [Offering("z1", lbl.ON_DEMAND, 0.1 * cpu)]
    offerings += [
        Offering("z1", lbl.RESERVED, 1e-9, left > 0, "", reservation, "default", left) for reservation, left in held
    ]
    return instance_type(name, cpu, zones=("z1",), offerings=tuple(offerings))


def deferred(planned: Plan) -> list[str]:
    return [
        uid for group in planned.unplaced for uid in group.pods if group.reasons[0].code == SchedulingCode.RESERVATION
    ]


def test_s113_e71_a_claim_holds_every_reservation_it_might_use_and_others_wait() -> None:
    types = (reserved("small", 2, ("r1", 1)), reserved("medium", 3, ("r2", 1)), reserved("large", 64))
    work = Workloads().add("a", 3, shape(1800))
    only = pool("p", spec(lbl.INSTANCE_TYPE, "In", "small", "medium"))
    planned = plan(problem(work, Catalogue(types), only))
    (claim,) = planned.claims
    assert claim.reservations == ("r1", "r2")
    assert claim.capacity_types == (lbl.RESERVED,)
    assert [str(constraint) for constraint in claim.constraints if constraint.key == lbl.RESERVATION_ID] == [
        f"{lbl.RESERVATION_ID} In [r1 r2]"
    ]
    assert deferred(planned) == ["a-1", "a-2"]


def test_e71_used_up_reservations_do_not_stand_in_the_way_of_the_next_pass() -> None:
    types = (reserved("small", 2, ("r1", 0)),)
    planned = plan(problem(Workloads().add("a", 1, shape(1800)), Catalogue(types)))
    assert planned.claims[0].capacity_types == (lbl.ON_DEMAND,)


def test_s114_e71_a_reservation_that_launches_have_used_up_defers_nobody() -> None:
    """Between two readings of the cloud's list, the record tells only how many are left (A-210)."""
    used_up = with_launches_taken(Catalogue((reserved("small", 2, ("r1", 1)),)), {"r1": 1})
    planned = plan(problem(Workloads().add("a", 1, shape(1800)), used_up))
    assert deferred(planned) == []
    assert planned.claims[0].capacity_types == (lbl.ON_DEMAND,)


@pytest.mark.parametrize("left", [0, 1])
def test_a199_s105_pods_for_lent_capacity_get_nothing_else(left: int) -> None:
    """On demand a node would not have the label, and the next pass would launch one more."""
    lent = Offering("z1", lbl.RESERVED, 1e-9, left > 0, "", "r1", "default", left, interruptible=True)
    kind = instance_type("small", 2, zones=("z1",), offerings=(Offering("z1", lbl.ON_DEMAND, 0.2), lent))
    said = {**kind.requirements, lbl.RESERVATION_INTERRUPTIBLE: ("true",)}
    work = Workloads().add("a", 1, shape(1800, node_selector={lbl.RESERVATION_INTERRUPTIBLE: "true"}))
    planned = plan(problem(work, Catalogue((replace(kind, requirements=said),))))
    assert [claim.capacity_types for claim in planned.claims] == [(lbl.RESERVED,)] * left


def test_e72_e73_a_reservation_that_two_pools_share_is_counted_once() -> None:
    work = Workloads().add("a", 1, shape(1800, node_selector={lbl.NODEPOOL: "a"}))
    work.add("b", 1, shape(1800, node_selector={lbl.NODEPOOL: "b"}))
    shared = Catalogue((reserved("small", 2, ("r1", 1)),))
    planned = plan(problem(work, shared, pool("a"), pool("b")))
    assert len(planned.claims) == 1
    assert deferred(planned) == ["b-0"]
    two = Catalogue((reserved("small", 2, ("r1", 2)),))
    assert len(plan(problem(work, two, pool("a"), pool("b"))).claims) == 2


def test_s32_s90_e75_e76_a_deferred_pod_moves_to_no_other_pool_and_gives_up_no_preference() -> None:
    types = Catalogue((reserved("small", 2, ("r1", 1)),))
    work = Workloads().add("a", 2, shape(1800, preferred_terms=(preferred(1, (lbl.NODEPOOL, "In", ("heavy",))),)))
    planned = plan(problem(work, types, pool("heavy", weight=10), pool("light")))
    assert [claim.node_pool for claim in planned.claims] == ["heavy"]
    assert deferred(planned) == ["a-1"]


def test_s115_a_claim_that_outgrows_a_reserved_type_gives_its_reservation_back() -> None:
    """Two pods of 1.5 cores: the first claim grows to the large type and lets r1 go, for the claim after it."""
    types = Catalogue((reserved("small", 2, ("r1", 1)), reserved("large", 4, ("r2", 1))))
    work = Workloads().add("a", 2, shape(1800)).add("b", 1, shape(1700))
    planned = plan(problem(work, types))
    assert [(claim.pods, claim.reservations) for claim in planned.claims] == [
        (("a-0", "a-1"), ("r2",)),
        (("b-0",), ("r1",)),
    ]


def test_s114_a_pod_that_would_cost_a_claim_its_reservation_opens_its_own() -> None:
    types = Catalogue((reserved("small", 4, ("r1", 1)),))
    work = Workloads().add("a", 1, shape(1800))
    work.add("b", 1, shape(1000, node_selector={lbl.CAPACITY_TYPE: lbl.ON_DEMAND}))
    planned = plan(problem(work, types))
    assert [(claim.pods, claim.reservations) for claim in planned.claims] == [(("a-0",), ("r1",)), (("b-0",), ())]


def test_a_plan_that_opens_too_many_claims_ends_there_unless_reservations_may_change_how_many() -> None:
    work = Workloads().add("a", 5, shape(1800))
    plain, held = (Catalogue((kind,)) for kind in (reserved("small", 2), reserved("small", 2, ("r1", 9))))
    short = plan(problem(work, plain), most_claims=1)
    assert [claim.pods for claim in short.claims] == [("a-0",), ("a-1",)]
    assert short.truncated == ("a-2", "a-3", "a-4")
    assert plan(problem(work, plain), most_claims=5) == plan(problem(work, plain))
    assert plan(problem(work, held), most_claims=1) == plan(problem(work, held))


def test_s113_a_search_takes_no_more_of_a_reservation_than_is_left() -> None:
    """Each node that it plans alone has the one launch of r1 to itself, which costs next to nothing."""
    for cpu, *counts in ((4, (1, 900, 2 * GI), (2, 1500, 4 * GI)), (8, (1, 1500, GI), (3, 3500, GI))):
        work = Workloads()
        for number, (pods, milli, memory) in enumerate(counts):
            work.add(f"w{number}", pods, shape(milli, memory))
        asked = problem(work, Catalogue((*ladder(2, 4, 8, 16).types, reserved("r", cpu, ("r1", 1)))))
        best = best_plan(asked, 100)
        assert [claim.reservations for claim in best.claims if claim.reservations] == [("r1",)]
