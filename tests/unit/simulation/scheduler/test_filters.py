"""kube-scheduler's filters, restated."""

from __future__ import annotations

import pytest

from kerf.adapters.simulation.scheduler.filters import (
    expression_holds,
    node_selected,
    ports_free,
    resources_fit,
    statically_possible,
    term_matches,
    tolerates,
    untolerated_preferences,
)
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, HostPort, NodeTerm, PodShape, Taint, Toleration


@pytest.mark.parametrize(
    ("operator", "values", "present", "absent"),
    [
        ("In", ("4", "8"), True, False),
        ("In", ("2",), False, False),
        ("NotIn", ("4",), False, True),
        ("NotIn", ("2",), True, True),
        ("Exists", (), True, False),
        ("DoesNotExist", (), False, True),
        ("Gt", ("3",), True, False),
        ("Gt", ("4",), False, False),
        ("Lt", ("5",), True, False),
        ("Lt", ("x",), False, False),
        ("Sideways", ("4",), False, False),
    ],
)
def test_expressions_on_a_label_with_value_4(
    operator: str, values: tuple[str, ...], present: bool, absent: bool
) -> None:
    expression = Expression("cpu", operator, values)
    assert expression_holds(expression, {"cpu": "4"}) is present
    assert expression_holds(expression, {}) is absent


def test_required_terms_are_alternatives_and_an_empty_term_matches_nothing() -> None:
    node = Node(name="n1", labels={"zone": "a"})
    in_a = NodeTerm(expressions=(Expression("zone", "In", ("a",)),))
    in_b = NodeTerm(expressions=(Expression("zone", "In", ("b",)),))
    assert node_selected(PodShape(required_terms=(in_b, in_a)), node)
    assert not node_selected(PodShape(required_terms=(in_b,)), node)
    assert not node_selected(PodShape(required_terms=(NodeTerm(),)), node)
    assert not node_selected(PodShape(node_selector={"zone": "b"}, required_terms=(in_a,)), node)
    assert term_matches(NodeTerm(fields=(Expression("metadata.name", "In", ("n1",)),)), node)
    assert not term_matches(NodeTerm(fields=(Expression("metadata.name", "In", ("n2",)),)), node)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="k", value="v", effect="NoSchedule"), True),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    """A toleration matches a taint by key, operator, value and effect (S-38)."""
    assert tolerates((toleration,), Taint(key="k", effect="NoSchedule", value="v")) is expected


@pytest.mark.parametrize(("operator", "value", "expected"), [("Gt", "3", True), ("Gt", "5", False), ("Lt", "9", True)])
def test_tolerations_that_compare_numbers(operator: str, value: str, expected: bool) -> None:
    """S-38: Lt and Gt compare the taint's value with the toleration's."""
    taint = Taint(key="k", effect="NoSchedule", value="5")
    assert tolerates((Toleration(key="k", operator=operator, value=value),), taint) is expected


def test_d108_a_proposed_disruption_repels_as_a_soft_taint_does() -> None:
    node = Node(name="n", proposed=True)
    assert untolerated_preferences(PodShape(), node) == 1
    assert untolerated_preferences(PodShape(tolerations=(Toleration(operator="Exists"),)), node) == 0
    assert statically_possible(PodShape(), node)


def test_prefer_no_schedule_is_scored_and_never_filtered() -> None:
    node = Node(name="n", taints=(Taint(key="k", effect="PreferNoSchedule"),))
    assert statically_possible(PodShape(), node)
    assert untolerated_preferences(PodShape(), node) == 1
    assert not statically_possible(PodShape(), Node(name="n", taints=(Taint(key="k", effect="NoExecute"),)))


def test_resources_count_the_pod_itself_and_ignore_zero_requests() -> None:
    assert resources_fit({"cpu": 100, "gpu": 0}, {"cpu": 100, "pods": 1})
    assert not resources_fit({"cpu": 101}, {"cpu": 100, "pods": 1})
    assert not resources_fit({}, {"cpu": 100, "pods": 0})
    assert not resources_fit({"gpu": 1}, {"cpu": 100, "pods": 1})


def test_host_ports_clash_on_equal_or_unspecified_addresses() -> None:
    """Host ports clash on equal or unspecified addresses (S-97)."""
    taken = (HostPort(80, "TCP", "10.0.0.1"),)
    assert not ports_free((HostPort(80),), taken)
    assert not ports_free((HostPort(80, "TCP", "10.0.0.1"),), taken)
    assert ports_free((HostPort(80, "TCP", "10.0.0.2"),), taken)
    assert ports_free((HostPort(80, "UDP"),), taken)
    assert ports_free((HostPort(81),), taken)
