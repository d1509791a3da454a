"""The fields in which documents differ, with their values, and never a part of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.projections.differences.documents import changed_fields
from kerf.projections.differences.field_changes import FieldChange, field_changes
from tests.support.world import pool

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


def test_a_nodepool_names_its_fields_as_its_manifest_does() -> None:
    before = pool(consolidate_after=30_000, limits={"cpu": 4000}, weight=5)
    after = pool(capacity_type="spot", consolidate_after=300_000, limits={"cpu": 8000, "memory": 1 << 30}, weight=5)
    assert changed_fields(before, after) == [
        "spec.disruption.consolidateAfter 30s → 5m0s",
        "spec.limits.cpu 4 → 8",
        "spec.limits.memory none → 1Gi",
        "spec.template.spec.requirements[karpenter.sh/capacity-type].values [on-demand] → [spot]",
    ]
    assert changed_fields(before, before) == []


def test_budgets_are_told_one_by_one() -> None:
    (only,) = changed_fields(pool(budgets=(Budget("10%"),)), pool(budgets=(Budget("50%"),)))
    assert only == "spec.disruption.budgets[0].nodes 10% → 50%"


def test_other_objects_have_the_names_of_their_fields() -> None:
    was, now = (PodDisruptionBudget("u", "default", "web", disruptions_allowed=number) for number in (1, 0))
    assert changed_fields(was, now) == ["disruptionsAllowed 1 → 0"]


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ({"a": [{"name": "x", "v": 1}]}, {"a": [{"name": "x", "v": 2}]}, "a[x].v 1 → 2"),
        ({"a": [{"name": "x"}, {"name": "x"}]}, {"a": [{"name": "x"}]}, "a[1].name x → none"),
        ({"labels": {"a.b/c": "1"}}, {"labels": {}}, "labels[a.b/c] 1 → none"),
        ({"a": ""}, {"a": "x"}, 'a "" → x'),
        ({"a": [1, 2]}, {"a": [1]}, "a [1 2] → [1]"),
        ({"a": True}, {"a": False}, "a true → false"),
    ],
)  # fmt: skip
def test_each_field_has_its_path(was: object, now: object, told: str) -> None:
    assert told in [change.words for change in field_changes(was, now)]


def test_an_empty_list_that_gets_items_is_told_by_them() -> None:
    empty: dict[str, list[object]] = {"taints": []}
    taints = {"taints": [{"key": "a.b/c", "effect": "NoSchedule"}]}
    assert [change.words for change in field_changes(empty, taints)] == ["taints[a.b/c].effect none → NoSchedule"]
    assert [change.words for change in field_changes(taints, empty)] == ["taints[a.b/c].effect NoSchedule → none"]
    assert [change.words for change in field_changes({}, empty)] == ["taints none → []"]


def test_long_texts_say_how_long_they_are() -> None:
    (change,) = field_changes({"a": "x" * 200}, {"a": "y" * 200})
    assert change.words.count("… (200 characters)") == 2


@given(DOCUMENTS, DOCUMENTS)
def test_equal_documents_have_no_changes_and_those_of_others_are_real(was: object, now: object) -> None:
    assert field_changes(was, json.loads(json.dumps(was))) == ()
    for change in field_changes(was, now):
        assert isinstance(change, FieldChange)
        assert change.was != change.now
