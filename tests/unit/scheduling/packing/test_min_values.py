"""minValues: how many values of a label a claim keeps open, and when that gives way (S-39, S-107 to S-110, S-162)."""

from __future__ import annotations

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from tests.support.scenarios.planned import codes, port, sizes
from tests.support.scenarios.problems import Workloads, instance_type, ladder, pool, problem, shape, spec


def least(claim: OpenedClaim, key: str = lbl.INSTANCE_TYPE) -> set[int | None]:
    return {requirement.min_values for requirement in claim.requirements if requirement.key == key}


def test_e66_a_pod_does_not_join_below_min_values() -> None:
    work = Workloads().add("a", 2, shape(900))
    assert sizes(plan(problem(work, ladder(1, 4), pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))))) == [1, 1]
    assert sizes(plan(problem(work, ladder(1, 4), pool("p")))) == [2]


def test_e67_a_cut_below_min_values_drops_the_claim() -> None:
    work = Workloads().add("a", 2, shape(100))
    pooled = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))
    planned = plan(problem(work, ladder(1, 4), pooled, max_instance_types=1))
    assert not planned.claims
    assert codes(planned) == {"a-0": [SchedulingCode.MIN_VALUES], "a-1": [SchedulingCode.MIN_VALUES]}


def test_s162_under_best_effort_a_cut_drops_no_claim() -> None:
    work = Workloads().add("a", 2, shape(100))
    pooled = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))
    planned = plan(problem(work, ladder(1, 4), pooled, max_instance_types=1, min_values_policy="BestEffort"))
    assert [claim.instance_types for claim in planned.claims] == [("t01",)]
    assert not planned.unplaced


def test_e68_strict_drops_the_template_and_best_effort_lowers_min_values() -> None:
    work = Workloads().add("a", 1, shape(100))
    pooled = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=3))
    planned = plan(problem(work, ladder(1, 4), pooled))
    assert codes(planned) == {"a-0": [SchedulingCode.TOO_FEW_TYPES]}
    assert sentence(planned.unplaced[0].reasons[0]) == (
        "NodePool p: the NodePool's requirements leave 2 of its 2 instance types, with fewer values of "
        "node.kubernetes.io/instance-type than its minValues asks for"
    )
    (claim,) = plan(problem(work, ladder(1, 4), pooled, min_values_policy="BestEffort")).claims
    assert claim.min_values_relaxed
    assert least(claim) == {2}


def test_s109_s110_e69_e70_a_relaxed_heavy_pool_is_preferred_and_each_claim_says_so_itself() -> None:
    """In the reference the claims of a template share the annotation, and the last one's word counts for all."""
    heavy = pool("heavy", spec(lbl.INSTANCE_TYPE, "Exists", least=2), weight=10)
    work = Workloads().add("large", 1, shape(2000)).add("small", 1, shape(900, host_ports=port()))
    work.add("other", 1, shape(800, host_ports=port()))
    planned = plan(problem(work, ladder(1, 4), heavy, pool("light"), min_values_policy="BestEffort"))
    assert {claim.node_pool for claim in planned.claims} == {"heavy"}
    assert [claim.min_values_relaxed for claim in planned.claims] == [True, False]


def test_s108_values_of_a_label_are_counted_over_the_types_that_are_left() -> None:
    types = tuple(instance_type(f"t{i}", i, labels={"family": (f,)}) for i, f in ((1, "a"), (2, "b"), (4, "b")))
    pooled = pool("p", spec("family", "Exists", least=2))
    small, large = Workloads().add("a", 1, shape(100)), Workloads().add("a", 1, shape(1500))
    assert sizes(plan(problem(small, Catalogue(types), pooled))) == [1]
    assert codes(plan(problem(large, Catalogue(types), pooled))) == {"a-0": [SchedulingCode.MIN_VALUES]}


# ── the policy ──────────────────────────────────────


def families() -> Catalogue:
    """Four types of three families."""
    return Catalogue(
        tuple(instance_type(f"t{n}", n, labels={"family": (f,)}) for n, f in ((1, "a"), (2, "b"), (4, "b"), (8, "c")))
    )


def test_s39_strict_refuses_and_best_effort_gives_way_when_a_node_is_opened() -> None:
    work = Workloads().add("a", 1, shape(1500))
    pooled = pool("p", spec("family", "Exists", least=3))
    assert codes(plan(problem(work, families(), pooled))) == {"a-0": [SchedulingCode.MIN_VALUES]}
    (claim,) = plan(problem(work, families(), pooled, min_values_policy="BestEffort")).claims
    assert claim.min_values_relaxed
    assert claim.instance_types == ("t2", "t4", "t8")


def test_s107_each_label_that_has_too_few_values_is_lowered_to_what_there_is() -> None:
    """And no other: of the labels that have enough, minValues stays."""
    work = Workloads().add("a", 1, shape(1500))
    asked = (
        spec("family", "Exists", least=3),
        spec(lbl.INSTANCE_TYPE, "Exists", least=3),
        spec(lbl.ZONE, "Exists", least=2),
    )
    (claim,) = plan(problem(work, families(), pool("p", *asked), min_values_policy="BestEffort")).claims
    assert least(claim, "family") == {2}
    assert least(claim) == {3}
    assert least(claim, lbl.ZONE) == {2}


def test_s107_strict_says_which_labels_have_too_few() -> None:
    work = Workloads().add("a", 1, shape(1500))
    planned = plan(
        problem(work, families(), pool("p", spec("family", "Exists", least=3), spec("family", "NotIn", "z")))
    )
    (reason,) = planned.unplaced[0].reasons
    assert (reason.code, reason.params["keys"]) == (SchedulingCode.MIN_VALUES, ["family"])


def test_s109_a_pod_joins_an_open_claim_only_within_its_minvalues_whatever_the_policy() -> None:
    """Under BestEffort too: the second pod would leave one type of the two, and opens a claim of its own."""
    work = Workloads().add("a", 2, shape(900))
    two = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))
    planned = plan(problem(work, ladder(1, 4), two, min_values_policy="BestEffort"))
    assert sizes(planned) == [1, 1]
    assert [claim.min_values_relaxed for claim in planned.claims] == [False, False]


def test_s109_within_a_lowered_minvalues_pods_do_join() -> None:
    """Of three one is left when the claim is opened; the small pod needs no more than that."""
    work = Workloads().add("large", 1, shape(3000)).add("small", 1, shape(500))
    three = pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=3))
    planned = plan(problem(work, ladder(1, 2, 4), three, min_values_policy="BestEffort"))
    assert sizes(planned) == [2]
    assert least(planned.claims[0]) == {1}


def test_s109_a_lowered_template_comes_before_the_next() -> None:
    heavy = pool("heavy", spec(lbl.INSTANCE_TYPE, "Exists", least=3), weight=1)
    work = Workloads().add("a", 1, shape(3000))

    def chosen(policy: str) -> list[str]:
        given = problem(work, ladder(1, 2, 4), heavy, pool("light"), min_values_policy=policy)
        return [claim.node_pool for claim in plan(given).claims]

    assert chosen("BestEffort") == ["heavy"]
    assert chosen("Strict") == ["light"]


def test_s108_a_types_values_count_in_full_whatever_the_pod_asks_of_the_label() -> None:
    """Its nodes will be in one zone; the type is there in three."""
    two = pool("p", spec(lbl.ZONE, "Exists", least=3))
    work = Workloads().add("a", 1, shape(100, node_selector={lbl.ZONE: "z1"}))
    assert sizes(plan(problem(work, ladder(2), two))) == [1]
    fewer = Catalogue((instance_type("t", 2, zones=("z1", "z2")),))
    assert codes(plan(problem(work, fewer, two))) == {"a-0": [SchedulingCode.TOO_FEW_TYPES]}


def test_s108_where_no_type_is_left_at_all_minvalues_are_not_the_reason() -> None:
    work = Workloads().add("a", 1, shape(99_000))
    planned = plan(problem(work, ladder(1, 2), pool("p", spec(lbl.INSTANCE_TYPE, "Exists", least=2))))
    assert codes(planned) == {"a-0": [SchedulingCode.TYPES_RESOURCES]}
