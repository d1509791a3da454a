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
    "PodDisruptionBudget": ("policy/v1", {"maxUnavailable": 1}),
}


def found(kind: str, **metadata: str) -> list[tuple[str, str]]:
    api, spec = KINDS[kind]
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
