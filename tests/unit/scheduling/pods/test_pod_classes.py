"""Pod classes and relaxation: S-27…S-37."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, SpreadConstraint, Toleration
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.pod_classes import PodClasses
from kerf.engine.scheduling.pods.pod_requirements import relaxed_shape, requirements_of
from kerf.engine.scheduling.problem.problem import NodeInput
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.scheduling.topology.topology import Topology
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, preferred, problem, spec, term

ZONE_1 = (lbl.ZONE, "In", ("z1",))
ZONE_2 = (lbl.ZONE, "In", ("z2",))


def spread(key: str, hard: bool = False) -> SpreadConstraint:
    return SpreadConstraint(key, when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway")


def steps(shape: PodShape, soft_taints: bool = False) -> list[PodShape]:
    found = []
    while (following := relaxed_shape(shape, soft_taints)) is not None:
        found.append(shape := following)
    return found


def test_s27_s28_selector_first_required_and_heaviest_preferred_term() -> None:
    shape = PodShape(
        node_selector={lbl.ARCH: "amd64"},
        required_terms=(term(("team", "Exists", ())), term(("other", "Exists", ()))),
        preferred_terms=(preferred(1, ZONE_1), preferred(50, ZONE_2), preferred(50, ZONE_1)),
    )
    assert str(requirements_of(shape)) == f"{lbl.ARCH} In [amd64], team Exists, {lbl.ZONE} In [z2]"
    assert str(requirements_of(shape, preferences=False)) == f"{lbl.ARCH} In [amd64], team Exists"


def test_s33_order_of_all_steps() -> None:
    affinity = AffinityTerm(lbl.ZONE, weight=5)
    shape = PodShape(
        required_terms=(term(ZONE_1), term(ZONE_2)),
        preferred_terms=(preferred(1, ZONE_1),),
        affinity=(affinity,),
        anti_affinity=(affinity, AffinityTerm(lbl.HOSTNAME)),
        spread=(spread(lbl.ZONE, hard=True), spread("a")),
    )
    first, second, third, fourth, fifth, sixth = steps(shape, soft_taints=True)
    assert first.required_terms == (term(ZONE_2),)
    assert second == replace(first, affinity=())
    assert third == replace(second, anti_affinity=(AffinityTerm(lbl.HOSTNAME),))
    assert fourth == replace(third, preferred_terms=())
    assert fifth == replace(fourth, spread=(spread(lbl.ZONE, hard=True),))
    assert sixth == replace(fifth, tolerations=(TOLERATES_PREFER_NO_SCHEDULE,))


def test_s33_e29_the_last_required_term_stays() -> None:
    assert steps(PodShape(required_terms=(term(ZONE_1),))) == []


def test_s33_the_heaviest_preference_goes_first_and_equals_in_their_order() -> None:
    light, first, second = preferred(1, ZONE_1), preferred(9, ZONE_1), preferred(9, ZONE_2)
    found = steps(PodShape(preferred_terms=(light, first, second)))
    assert [shape.preferred_terms for shape in found] == [(light, second), (light,), ()]


def test_s34_e35_schedule_anyway_goes_in_the_order_a_c_b() -> None:
    found = steps(PodShape(spread=(spread("a"), spread("b"), spread("c"))))
    assert [[constraint.topology_key for constraint in shape.spread] for shape in found] == [["c", "b"], ["b"], []]


def test_s33_step_6_only_with_soft_taints_and_only_once() -> None:
    assert steps(PodShape()) == []
    assert steps(PodShape(tolerations=(TOLERATES_PREFER_NO_SCHEDULE,)), soft_taints=True) == []
    assert (
        steps(PodShape(tolerations=(Toleration("x"),)), soft_taints=True)[0].tolerations[-1]
        == TOLERATES_PREFER_NO_SCHEDULE
    )


def test_s37_under_policy_ignore_preferences_form_no_rules() -> None:
    shape = PodShape(spread=(spread(lbl.ZONE),), affinity=(AffinityTerm(lbl.ARCH, weight=1), AffinityTerm(lbl.ZONE)))
    for policy, kinds in (("Respect", ["affinity", "affinity", "spread"]), ("Ignore", ["affinity"])):
        classes = PodClasses({"a": shape}, topology(shape, policy), policy, soft_taints=False)
        assert sorted(rule.kind for rule in classes.of("default", "a").demand.rules) == kinds


def topology(shape: PodShape, policy: str) -> Topology:
    work = Workloads().add("w", 1, shape)
    return Topology(problem(work, ladder(1), preference_policy=policy), [], [])


def test_classes_join_shapes_that_differ_in_what_no_rule_reads() -> None:
    base = PodShape(requests={"cpu": 100, "memory": 5}, labels={"app": "a"})
    shapes = {
        "a": base,
        "b": replace(base, labels={"app": "b"}, priority=7, grace=3, requests={"memory": 5, "cpu": 100}),
        "c": replace(base, tolerations=(TOLERATES_PREFER_NO_SCHEDULE,)),
        "d": replace(base, anti_affinity=(AffinityTerm("z", Selector({"app": "a"})),)),
    }
    asked = Workloads()
    for digest in "abc":
        asked.add(digest, 1, shapes[digest])
    classes = PodClasses(shapes, Topology(problem(asked, ladder(1)), [], []), "Respect", soft_taints=True)
    found = {digest: classes.of("default", digest) for digest in "abc"}
    assert found["a"] is found["b"]
    assert found["a"].requests == {"cpu": 100, "memory": 5, "pods": 1}
    assert found["a"] is not found["c"]
    assert classes.relaxed(found["a"]) is found["c"]
    assert classes.relaxed(found["c"]) is None
    told_apart = Workloads()
    for digest in "abcd":
        told_apart.add(digest, 1, shapes[digest])
    classes = PodClasses(shapes, Topology(problem(told_apart, ladder(1)), [], []), "Respect", soft_taints=True)
    assert len({classes.of("default", shape).number for shape in shapes}) == 4, "d looks at the label app"


def test_s33_required_terms_that_were_given_up_first_come_again_without_preferences() -> None:
    """Unlike in the reference, where only the last term is tried without what the pod prefers."""
    wish = preferred(1, ("disk", "In", ("ssd",)))
    only_z1 = Catalogue((instance_type("t02", 2, zones=("z1",)),))
    for terms in ((ZONE_1, ZONE_2), (ZONE_2, ZONE_1, ZONE_2), (ZONE_2, ZONE_2, ZONE_1)):
        shape = PodShape(required_terms=tuple(map(term, terms)), preferred_terms=(wish,))
        (claim,) = plan(problem(Workloads().add("a", 1, shape), only_z1)).claims
        assert claim.pods == ("a-0",)
    nowhere = PodShape(required_terms=(term(ZONE_2), term((lbl.ZONE, "In", ("z3",)))))
    assert plan(problem(Workloads().add("a", 1, replace(nowhere, preferred_terms=(wish,))), only_z1)).claims == ()


def test_s33_a_pod_goes_back_to_none_but_its_own_terms() -> None:
    """What one pod comes to by giving up another one may ask from the beginning."""
    wish = preferred(1, ("disk", "In", ("ssd",)))
    both = PodShape(required_terms=(term(ZONE_1), term(ZONE_2)), preferred_terms=(wish,))
    one = PodShape(required_terms=(term(ZONE_2),))
    only_z1 = Catalogue((instance_type("t02", 2, zones=("z1",)),))
    for first, second in (("a", "b"), ("b", "a")):
        work = Workloads().add(first, 1, both).add(second, 1, one)
        planned = plan(problem(work, only_z1))
        assert [claim.pods for claim in planned.claims] == [(f"{first}-0",)]
        assert [group.pods for group in planned.unplaced] == [(f"{second}-0",)]


# ── contradictions ──────────────────────────────────────


RED, BLUE = ("team", "In", ("red",)), ("team", "In", ("blue",))


@pytest.mark.parametrize(
    "shape",
    [
        PodShape(node_selector={"team": "red"}, required_terms=(term(BLUE),)),
        PodShape(required_terms=(term(RED, BLUE),)),
        PodShape(required_terms=(term(RED, ("team", "DoesNotExist", ())),)),
        PodShape(required_terms=(term(("team", "Gt", ("5",)), ("team", "Lt", ("3",))),)),
        PodShape(node_selector={"team": "red"}, required_terms=(term(BLUE), term(("team", "NotIn", ("red",))))),
    ],
)
def test_s4_s17_what_contradicts_itself_is_no_missing_label(shape: PodShape) -> None:
    """Unlike in the reference, which launches a node without the label, on which kube-scheduler does not put the pod:
    again and again. A node that is there does not take it either."""
    node = NodeInput("n", "", {}, (), {"cpu": 4_000, "memory": 8 * GI, "pods": 20})
    planned = plan(problem(Workloads().add("a", 1, shape), ladder(2), nodes=[node]))
    assert (planned.claims, planned.placements) == ((), ())
    ((found,),) = (group.reasons for group in planned.unplaced)
    assert found == reason(SchedulingCode.CONTRADICTION, keys=["team"])


def test_s33_what_contradicts_itself_with_a_preference_or_in_one_term_is_relaxed() -> None:
    only = pool("p", spec("team", "In", "red"))
    preference = PodShape(node_selector={"team": "red"}, preferred_terms=(preferred(1, BLUE),))
    terms = PodShape(node_selector={"team": "red"}, required_terms=(term(BLUE), term(RED), term(BLUE)))
    for shape in (preference, terms):
        (claim,) = plan(problem(Workloads().add("a", 1, shape), ladder(2), pool("bare"), only)).claims
        assert (claim.node_pool, claim.labels["team"]) == ("p", "red")
