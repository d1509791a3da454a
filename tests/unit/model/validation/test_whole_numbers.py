"""A number without a fraction is an integer: kubectl sends 2 for 2.0."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, POD, changed

IMAGE = changed(POD, "spec.containers.0.image", "i")


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (NODE_POOL, "spec.weight"),
        (NODE_POOL, "metadata.generation"),
        (EC2_NODE_CLASS, "spec.ipPrefixCount"),
        (IMAGE, "spec.terminationGracePeriodSeconds"),
    ],
)
@pytest.mark.parametrize(("value", "verdict"), [(3.0, "accepted"), (3.5, "refused"), (1e308, "refused")])
def test_it_is_taken_for_an_integer(document: dict[str, Any], path: str, value: float, verdict: str) -> None:
    assert judge(changed(document, path, value), published=published_schemas()).verdict == verdict


def test_it_is_read_as_one() -> None:
    pool = decode_object(changed(NODE_POOL, "spec.weight", 3.0)).object
    assert isinstance(pool, NodePool)
    assert repr(pool.weight) == "3"
