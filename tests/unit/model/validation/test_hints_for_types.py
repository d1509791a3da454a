"""What is said of a number where a text belongs: what may be written there, and not only that quotes are missing."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.mark.parametrize(
    ("document", "path", "value", "hint"),
    [
        (NODE_POOL, "spec.template.spec.expireAfter", 720, 'Write whole hours, minutes and seconds, such as "30m"'),
        (NODE_POOL, "spec.disruption", {"consolidateAfter": 30}, "Write whole hours, minutes and seconds"),
        (NODE_POOL, "spec.disruption", {"consolidateAfter": "1m", "budgets": [{"nodes": 5}]}, 'in quotes: "5"'),
        (NODE_POOL, "spec.template.metadata.annotations", {"a": True}, 'in quotes: "true"'),
        (EC2_NODE_CLASS, "spec.blockDeviceMappings", [{"ebs": {"volumeSize": 100}}], "Write 1Gi to 59000Gi"),
        (EC2_NODE_CLASS, "spec.metadataOptions", {"httpEndpoint": True}, "Write enabled or disabled"),
        (POD, "metadata.labels", {"a": True}, 'in quotes: "true"'),
        (POD, "metadata.labels", {"a": 1}, 'in quotes: "1"'),
    ],
)
def test_quotes_are_proposed_where_the_text_in_them_would_do(
    document: dict[str, Any], path: str, value: Any, hint: str
) -> None:
    (wrong,) = judge(changed(document, path, value), published=published_schemas()).violations
    assert (wrong.code, hint in wrong.hint) == ("KERF303", True), wrong
    assert "true or false true" not in wrong.message
