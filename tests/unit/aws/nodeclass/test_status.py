"""The status of an EC2NodeClass as a document."""

from __future__ import annotations

from kerf.adapters.aws.nodeclass.status import status_document
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClassStatus, ResolvedSubnet


def test_a96_subnets_with_more_free_addresses_come_first_then_the_lower_id() -> None:
    status = EC2NodeClassStatus(subnets=tuple(ResolvedSubnet(id, "z1") for id in ("s-1", "s-2", "s-3", "s-4")))
    document = status_document(status, {"s-1": 5, "s-2": 90, "s-3": 5})
    assert [subnet["id"] for subnet in document["subnets"]] == ["s-2", "s-1", "s-3", "s-4"]
