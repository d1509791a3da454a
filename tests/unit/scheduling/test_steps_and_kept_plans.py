"""What a pass does beyond placing pods: devices (S-194), its limit of steps, and plans that stay."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import Selector, SpreadConstraint
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, preferred, problem, shape, spec


def codes(planned: Plan) -> dict[str, list[str]]:
    return {uid: [reason.code for reason in group.reasons] for group in planned.unplaced for uid in group.pods}


def node(name: str, cpu: int = 4000, zone: str = "z1", claim: str | None = None) -> NodeInput:
    room = {"cpu": cpu, "memory": 8 * GI, "pods": 10}
    return NodeInput(name, f"claim-{name}" if claim is None else claim, {lbl.ZONE: zone}, (), room)


def aimed(given: Problem, **targets: str) -> Problem:
    """`targets`: pod → target, with `-` written as `_`."""
    by_name = {name.replace("_", "-"): target for name, target in targets.items()}
    return replace(given, pods=tuple(replace(pod, target=by_name.get(pod.name, "")) for pod in given.pods))


# ── devices ──────────────────────────────────────


def test_s92_s194_e129_a_pod_that_asks_for_devices_fails_at_once_beside_a_free_node() -> None:
    wants = shape(resource_claims=("gpu",), preferred_terms=(preferred(1, (lbl.ZONE, "In", ("z9",))),))
    work = Workloads().add("a", 1, wants).add("b", 1, shape())
    planned = plan(problem(work, ladder(2), nodes=[node("n")]))
    assert codes(planned) == {"a-0": [SchedulingCode.RESOURCE_CLAIMS]}
    assert [placement.pods for placement in planned.placements] == [("b-0",)]
    (left,) = planned.unplaced
    assert "gpu" in sentence(left.reasons[0])


# ── a pass may use so many steps ──────────────────────────────────────


def test_s60_a_pass_stops_at_its_limit_and_names_whom_it_has_not_looked_at() -> None:
    given = problem(Workloads().add("a", 5, shape(900)), ladder(1), max_steps=2)
    planned = plan(given)
    assert [claim.pods for claim in planned.claims] == [("a-0",), ("a-1",)]
    assert planned.truncated == ("a-2", "a-3", "a-4")
    assert not planned.unplaced, "nothing is said of pods that were not tried"
    assert faults(given, planned) == []


def test_pods_that_would_be_asked_again_count_as_not_looked_at() -> None:
    """The large pod fails and the small one is placed after it: it would have had another try (S-87)."""
    work = Workloads().add("large", 1, shape(9000)).add("small", 2, shape(100))
    planned = plan(problem(work, ladder(1), max_steps=2))
    assert planned.truncated == ("large-0", "small-1")
    assert codes(planned) == {}
    planned = plan(problem(work, ladder(1), max_steps=4))
    assert (planned.truncated, codes(planned)) == ((), {"large-0": [SchedulingCode.TYPES_RESOURCES]})


def test_each_preference_that_is_given_up_is_a_step() -> None:
    wish = shape(preferred_terms=tuple(preferred(i, (lbl.ZONE, "In", (f"no-{i}",))) for i in (1, 2)))
    work = Workloads().add("a", 2, wish)
    assert plan(problem(work, ladder(2), max_steps=3)).truncated == ("a-1",)
    assert plan(problem(work, ladder(2), max_steps=4)).truncated == ()


def test_a_truncated_plan_gets_no_effort() -> None:
    given = problem(Workloads().add("a", 5, shape(900)), ladder(1, 8), max_steps=2)
    assert best_plan(given, 100) == plan(given)


# ── pods go where they were planned ──────────────────────────────────────


def test_pods_on_their_way_keep_their_room_before_larger_ones() -> None:
    given = problem(Workloads().add("small", 3, shape(1000)).add("large", 1, shape(2000)), ladder(4), nodes=[node("n")])
    assert plan(given).placements[0].pods == ("large-0", "small-0", "small-1")
    held = aimed(given, small_0="claim-n", small_1="claim-n", small_2="claim-n")
    planned = plan(held)
    assert planned.placements[0].pods == ("small-0", "small-1", "small-2")
    assert [claim.pods for claim in planned.claims] == [("large-0",)]
    assert faults(held, planned) == []


def test_an_unmanaged_node_is_a_target_by_its_name() -> None:
    nodes = [node("a", claim=""), node("b", claim="")]
    (placed,) = plan(aimed(problem(Workloads().add("x", 1, shape()), ladder(2), nodes=nodes), x_0="b")).placements
    assert placed.node == "b"


def test_a_pod_whose_target_has_no_room_goes_elsewhere() -> None:
    given = problem(Workloads().add("a", 1, shape(2000)), ladder(4), nodes=[node("n", 1000), node("o")])
    assert [placement.node for placement in plan(aimed(given, a_0="claim-n")).placements] == ["o"]
    assert [placement.node for placement in plan(aimed(given, a_0="gone")).placements] == ["o"]


def test_planned_pods_may_go_there_in_any_order_that_a_spread_allows() -> None:
    """a-0 and a-1 are planned for one zone, a-2 for another: the second waits for the third."""
    even = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "a"}))
    given = problem(
        Workloads().add("a", 3, shape(100, labels={"app": "a"}, spread=(even,))), ladder(2),
        pool("default", spec(lbl.ZONE, "In", "z1", "z2")), nodes=[node("n"), node("o", zone="z2")],
    )  # fmt: skip
    held = aimed(given, a_0="claim-n", a_1="claim-n", a_2="claim-o")
    planned = plan(held)
    assert [(placement.node, placement.pods) for placement in planned.placements] == [
        ("n", ("a-0", "a-1")),
        ("o", ("a-2",)),
    ]
    assert faults(held, planned) == []


def test_planned_pods_use_no_steps() -> None:
    given = problem(Workloads().add("a", 6, shape(100)), ladder(1), nodes=[node("n")], max_steps=1)
    held = aimed(given, **{f"a_{i}": "claim-n" for i in range(5)})
    assert plan(held).truncated == ()
    assert len(plan(given).truncated) == 5


def test_a_preference_that_was_given_up_for_a_claim_on_its_way_stays_given_up() -> None:
    wish = shape(preferred_terms=(preferred(1, (lbl.ZONE, "In", ("z2",))),))
    given = problem(Workloads().add("a", 1, wish), ladder(2), nodes=[node("n")])
    assert len(plan(given).claims) == 1
    assert plan(aimed(given, a_0="claim-n")).claims == ()
