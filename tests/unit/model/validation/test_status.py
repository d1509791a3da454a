"""The status of a custom resource: the API server drops it unread, so nothing in it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (EC2_NODE_CLASS, {"capacityReservations": [{"id": "cr-1", "endTime": "soon"}]}),
        (EC2_NODE_CLASS, {"capacityReservations": 5}),
        (NODE_POOL, "odd"),
    ],
)
def test_a_status_is_not_looked_at(document: dict[str, Any], status: Any) -> None:
    judgement = judge(document | {"status": status}, published=published_schemas())
    assert (judgement.verdict, judgement.violations) == ("accepted", ())
