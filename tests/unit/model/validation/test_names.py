"""Names of Kubernetes' own objects, as the API server takes them."""

from __future__ import annotations

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge

SPEC = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": SPEC}
KINDS = {
    "Pod": ("v1", SPEC),
    "Deployment": ("apps/v1", {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}),
    "CronJob": (
        "batch/v1",
        {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": SPEC | {"restartPolicy": "Never"}}}}},
    ),
    "Service": ("v1", {}),
    "Namespace": ("v1", {}),
}
BUDGET = {"PodDisruptionBudget": ("policy/v1", {"maxUnavailable": 1})}


def found(kind: str, **metadata: str) -> list[tuple[str, str]]:
    api, spec = (KINDS | BUDGET)[kind]
    document = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["Web", "web_app", "-web", "web.", "a/b", "x" * 254, "a..b"])
def test_a_name_that_is_none_is_refused(kind: str, name: str) -> None:
    assert found(kind, name=name) == [("KERF312", "metadata.name")]


@pytest.mark.parametrize(
    ("kind", "name", "good"),
    [
        ("Pod", "x" * 253, True),
        ("Pod", "web.example.com", True),
        ("Pod", "1", True),
        ("Deployment", "a.b", True),
        ("Service", "a.b", False),
        ("Namespace", "x" * 63, True),
        ("Namespace", "x" * 64, False),
        ("CronJob", "x" * 52, True),
        ("CronJob", "x" * 53, False),
    ],
)
def test_how_long_a_name_is_and_whether_it_has_dots_depends_on_the_kind(kind: str, name: str, good: bool) -> None:
    assert (found(kind, name=name) == []) is good


def test_a_namespace_is_a_label() -> None:
    assert found("Pod", name="p", namespace="Shop_1") == [("KERF312", "metadata.namespace")]
    assert found("Pod", name="p", namespace="shop-1") == []


@pytest.mark.parametrize(
    ("name", "good"), [("Web_1", True), ("x" * 254, True), ("a/b", False), ("..", False), ("50%", False)]
)
def test_a_pod_disruption_budget_may_be_called_anything_that_stands_in_a_path(name: str, good: bool) -> None:
    """An API server 1.36 takes it."""
    assert found("PodDisruptionBudget", name=name) == ([] if good else [("KERF312", "metadata.name")])


@pytest.mark.parametrize(("begin", "good"), [("web-", True), ("web", True), ("Web-", False), ("-", False)])
def test_what_a_generated_name_begins_with_counts_beside_a_name_too(begin: str, good: bool) -> None:
    assert found("Pod", name="web", generateName=begin) == ([] if good else [("KERF312", "metadata.generateName")])


@pytest.mark.parametrize(
    ("kind", "api"), [("PriorityClass", "scheduling.k8s.io/v1"), ("Node", "v1"), ("Namespace", "v1")]
)
def test_the_namespace_of_an_object_that_has_none_is_dropped(kind: str, api: str) -> None:
    value = {"value": 1} if kind == "PriorityClass" else {}
    document = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "Shop_1"}, **value}
    assert judge(document, published=published_schemas()).violations == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_needs_a_name(kind: str) -> None:
    assert found(kind) == [("KERF304", "metadata.name")]
    assert found(kind, name="") == [("KERF304", "metadata.name")]


def test_what_a_name_of_a_budget_begins_with_stands_in_a_path_too() -> None:
    assert found("PodDisruptionBudget", generateName="a/b") == [("KERF312", "metadata.generateName")]
    assert found("PodDisruptionBudget", generateName="A_b-") == []
