"""The status of an EC2NodeClass as karpenter.k8s.aws/v1 has it, without its conditions (A-54). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClassStatus
from kerf.engine.model.karpenter.nodepools import RequirementSpec

FINALIZER = "karpenter.k8s.aws/termination"
HASH = "karpenter.k8s.aws/ec2nodeclass-hash"


def status_document(status: EC2NodeClassStatus, free: Mapping[str, int]) -> dict[str, Any]:
    """The status as a document; empty parts are left out. Subnets with more `free` addresses come first (A-96)."""
    subnets = sorted(status.subnets, key=lambda subnet: (-free.get(subnet.id, 0), subnet.id))
    parts: dict[str, Any] = {
        "subnets": msgspec.to_builtins(subnets),
        "securityGroups": msgspec.to_builtins(status.security_groups),
        "amis": [
            {
                **_text(image.id, image.name),
                "requirements": [_requirement(requirement) for requirement in image.requirements],
            }
            | ({"deprecated": True} if image.deprecated else {})
            for image in status.amis
        ],
        "instanceProfile": status.instance_profile,
        "capacityReservations": msgspec.to_builtins(status.capacity_reservations),
    }
    return {name: part for name, part in parts.items() if part}


def _text(id: str, name: str) -> dict[str, str]:
    return {"id": id, **({"name": name} if name else {})}


def _requirement(spec: RequirementSpec) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": spec.key, "operator": spec.operator}
    return {**shown, "values": list(spec.values)} if spec.values else shown
