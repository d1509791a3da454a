"""Metadata of Kubernetes' own objects, as the API server takes it. The corpus has that of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge

SPEC = {"containers": [{"name": "c", "image": "i"}]}
OWNER = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}


def found(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


def of_pod(**metadata: Any) -> list[tuple[str, str]]:
    return found({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"} | metadata, "spec": SPEC})


def of_template(**metadata: Any) -> list[tuple[str, str]]:
    template = {"metadata": {"labels": {"app": "a"}} | metadata, "spec": SPEC}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return found({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})


@pytest.mark.parametrize(
    ("metadata", "wrong"),
    [
        ({"annotations": {"A.B/c": "any thing"}}, []),
        ({"annotations": {"a b": "c"}}, [("KERF312", "annotations[a b]")]),
        ({"annotations": {"a": "x" * 262_143}}, []),
        ({"annotations": {"a": "é" * 131_072}}, [("KERF309", "annotations")]),
    ],
)
def test_annotations(metadata: dict[str, Any], wrong: list[tuple[str, str]]) -> None:
    assert of_pod(**metadata) == [(code, f"metadata.{path}") for code, path in wrong]
    assert of_template(**metadata) == [(code, f"spec.template.metadata.{path}") for code, path in wrong]


@pytest.mark.parametrize(
    ("metadata", "wrong"),
    [
        ({"finalizers": ["a.b/c"]}, []),
        ({"finalizers": ["a.b/c", "d e"]}, [("KERF312", "metadata.finalizers[1]")]),
        ({"finalizers": ["kubernetes", "orphan", "mine"]}, [("KERF312", "metadata.finalizers[2]")]),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, [("KERF309", "metadata.finalizers")]),
        ({"ownerReferences": [OWNER, OWNER | {"controller": True}]}, []),
        ({"ownerReferences": [OWNER | {"uid": ""}]}, [("KERF304", "metadata.ownerReferences[0].uid")]),
        (
            {"ownerReferences": [OWNER | {"controller": True}, OWNER | {"controller": True, "uid": "v"}]},
            [("KERF309", "metadata.ownerReferences[1].controller")],
        ),
    ],
)
def test_finalizers_and_owners(metadata: dict[str, Any], wrong: list[tuple[str, str]]) -> None:
    """Those of a template are not looked at."""
    assert of_pod(**metadata) == wrong
    assert of_template(**metadata) == []


def test_a_budget_takes_finalizers_without_a_domain() -> None:
    metadata = {"name": "x", "finalizers": ["mine"]}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"minAvailable": 1},
    }
    assert found(budget) == []
