"""A null that the API server takes for an absent field, or for an absent entry of a map."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed

TAINT = {"key": "a", "effect": "NoSchedule"}


def verdict_and_object(document: dict[str, Any]) -> tuple[str, Any]:
    return judge(document, published=published_schemas()).verdict, decode_object(document).object


@pytest.mark.parametrize("field", ["httpTokens", "httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit"])
def test_a_null_field_with_a_default_takes_the_default(field: str) -> None:
    without, with_null = (changed(EC2_NODE_CLASS, "spec.metadataOptions", options) for options in ({}, {field: None}))
    assert verdict_and_object(with_null) == ("accepted", decode_object(without).object)


@pytest.mark.parametrize("field", ["taints", "startupTaints"])
def test_a_taint_with_the_value_null_has_none(field: str) -> None:
    without, with_null = (
        changed(NODE_POOL, f"spec.template.spec.{field}", [taint]) for taint in (TAINT, TAINT | {"value": None})
    )
    assert verdict_and_object(with_null) == ("accepted", decode_object(without).object)


def test_a_limit_of_null_is_no_limit() -> None:
    """It was a limit of 0, with which nothing is launched."""
    verdict, pool = verdict_and_object(changed(NODE_POOL, "spec.limits", {"cpu": None, "memory": "1Gi"}))
    assert (verdict, pool.limits) == ("accepted", {"memory": 1 << 30})


def test_a_tag_of_null_is_no_tag() -> None:
    terms = [{"tags": {"a": "b", "c": None}}]
    verdict, node_class = verdict_and_object(changed(EC2_NODE_CLASS, "spec.subnetSelectorTerms", terms))
    assert (verdict, node_class.spec.subnet_selector_terms[0].tags) == ("accepted", {"a": "b"})


def test_kubernetes_own_maps_keep_a_null_as_the_empty_value() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"a": None}}
    decoded = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec})
    (shape,) = decoded.blobs.values()
    assert isinstance(shape, PodShape)
    assert shape.node_selector == {"a": ""}
