"""What is refused before scheduling: S-25, S-26, S-42 (E-18, E-19, E-20)."""

from __future__ import annotations

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, PodShape
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.pods.validation import RequirementProblem, pod_refusals, requirement_problems
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from tests.support.scenarios.problems import Workloads, ladder, preferred, problem, spec, term


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (spec("k", "Has", "a"), RequirementProblem.OPERATOR),
        (spec("a/b/c", "Exists"), RequirementProblem.KEY),
        (spec("Bad_Domain/k", "Exists"), RequirementProblem.KEY),
        (spec("k", "In", "not valid"), RequirementProblem.VALUE),
        (spec("k", "In"), RequirementProblem.NO_VALUES),
        (spec("k", "In", "a", least=2), RequirementProblem.TOO_FEW_VALUES),
        (spec("k", "Gt", "1", "2"), RequirementProblem.OPERAND),
        (spec("k", "Lte", "-1"), RequirementProblem.OPERAND),  # and no label value either
        (spec("k", "Gte", "x"), RequirementProblem.OPERAND),
        (spec("k", "Lt", "0"), RequirementProblem.EMPTY_RANGE),
        (spec(lbl.CAPACITY_TYPE, "In", "cheap"), RequirementProblem.CAPACITY_TYPE),
        (spec(lbl.CAPACITY_TYPE, "In", "spot", "cheap", least=2), RequirementProblem.TOO_FEW_CAPACITY_TYPES),
    ],
)
def test_s26_problems(given: RequirementSpec, problem: RequirementProblem) -> None:
    found = requirement_problems(given)
    assert {reason.code for reason in found} == {SchedulingCode.INVALID_REQUIREMENT}
    assert problem.value in {reason.params["problem"] for reason in found}


@pytest.mark.parametrize(
    "given",
    [
        spec("example.com/team", "In", "a", "b"),
        spec("k", "In", ""),
        spec("sub.kubernetes.io/x", "In", "y"),  # E-19
        spec(lbl.ZONE, "Exists", least=2),
        spec(lbl.CAPACITY_TYPE, "In", "spot", "cheap"),
        spec("karpenter.k8s.aws/instance-cpu", "Gt", "4"),
    ],
)
def test_s26_valid(given: RequirementSpec) -> None:
    assert requirement_problems(given) == ()


@pytest.mark.parametrize("key", [lbl.HOSTNAME, "karpenter.sh/custom", "karpenter.k8s.aws/foo", "x.karpenter.sh/y"])
def test_s25_e18_restricted_labels(key: str) -> None:
    given = PodShape(node_selector={key: "x"})
    (found,) = pod_refusals(given)
    assert found.code == SchedulingCode.RESTRICTED_LABEL
    assert found.params == {"key": key}


@pytest.mark.parametrize(
    "expressions",
    [
        [(lbl.NODEPOOL, "DoesNotExist", ())],
        [(lbl.NODEPOOL, "In", ("a",)), (lbl.NODEPOOL, "In", ("b",))],
    ],
)
def test_s42_e20_opting_out(expressions: list[tuple[str, str, tuple[str, ...]]]) -> None:
    given = PodShape(required_terms=(term(*expressions),))
    assert [pod_refusal.code for pod_refusal in pod_refusals(given)] == [SchedulingCode.OPTED_OUT]


@pytest.mark.parametrize("policy", ["Respect", "Ignore"])
def test_s42_a_pod_that_prefers_to_opt_out_is_left_out_whatever_becomes_of_preferences(policy: str) -> None:
    away = preferred(1, (lbl.NODEPOOL, "DoesNotExist", ()))
    work = Workloads().add("a", 1, PodShape(preferred_terms=(away,)))
    ((found,),) = (group.reasons for group in plan(problem(work, ladder(2), preference_policy=policy)).ignored)
    assert found.code == SchedulingCode.OPTED_OUT


def test_s42_match_fields_and_every_term_are_looked_at() -> None:
    fields = NodeTerm(fields=(Expression("metadata.name", "In", ("n",)),))
    given = PodShape(required_terms=(term(("k", "Exists", ())), fields, term(("k", "Gt", ("x",)))))
    codes = [pod_refusal.code for pod_refusal in pod_refusals(given)]
    assert codes == [SchedulingCode.MATCH_FIELDS, SchedulingCode.INVALID_REQUIREMENT]


def test_s26_a_reason_keeps_the_values_and_says_them() -> None:
    (found,) = requirement_problems(spec("k", "In", "not valid"))
    assert found.params["values"] == ["not valid"]
    assert sentence(found) == "requirement k In [not valid] is not valid: a value is not a valid label value"
    older = Reason("invalid-requirement", {"key": "k", "operator": "In", "problem": "In needs values"})
    assert sentence(older) == "requirement k In is not valid: In needs values", "as older records have it"
