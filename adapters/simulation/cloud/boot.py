"""What an instance boots, and where, by the NodeClass that it is launched with."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclass_terms import image_for
from kerf.engine.record.observations import NodeClassSeen


class Boot(Struct, frozen=True):
    """What drift compares with the NodeClass later, as far as the class was resolved (A-333)."""

    image: str = ""
    subnet: str = ""
    security_groups: tuple[str, ...] = ()
    class_hash: str = ""


def boot_of(seen: NodeClassSeen, blobs: Mapping[str, Struct], kind: InstanceType, zone: str) -> Boot:
    """What an instance of this type boots in a zone. In a zone without a subnet of the class, its first one serves."""
    node_class = blobs.get(seen.digest)
    if seen.terms is None:
        return Boot()
    subnets = list(seen.terms.subnets)
    if isinstance(node_class, EC2NodeClass):
        zoned = sorted(node_class.status.subnets, key=lambda subnet: (subnet.zone != zone, subnet.id))
        subnets = [subnet.id for subnet in zoned]
    return Boot(
        image_for(seen.terms.images, kind),
        subnets[0] if subnets else "",
        seen.terms.security_groups,
        seen.terms.hash,
    )
