"""Makes the Node object that stands for an instance (L-473, L-474)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.model import labels
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.record.decisions import LaunchInstance, Offer

FAKE = {"kwok.x-k8s.io/node": "fake"}  # KWOK makes such a Node ready, and runs its pods
PRICE = "eks-node-viewer/instance-price"


class NodeOrder(Struct, frozen=True):
    """A Node to be made: its name, the order, the offer that was taken, and the label that names its claim."""

    name: str
    order: LaunchInstance
    type: InstanceType
    offer: Offer
    claim_label: str


def node_document(wanted: NodeOrder) -> dict[str, Any]:
    """Returns the Node, pending and unregistered, with the resources of its type.

    The reference's Node has what its claim requests. kerf's claims know their type, and such a Node would be too small
    for them.
    """
    order = wanted.order
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": wanted.name, "labels": _labels(wanted), "annotations": dict(FAKE)},
        "spec": {
            "providerID": f"kwok://{wanted.name}",
            "taints": [_taint(Taint(labels.UNREGISTERED_TAINT, "NoExecute"))],
        },
        "status": {
            "phase": "Pending",
            "capacity": _amounts({**order.requests, **wanted.type.capacity}),
            "allocatable": _amounts({**order.requests, **wanted.type.allocatable()}),
        },
    }


def _labels(wanted: NodeOrder) -> dict[str, str]:
    order, offer = wanted.order, wanted.offer
    single = {key: values[0] for key, values in wanted.type.requirements.items() if len(values) == 1}
    return {
        **single,
        **order.labels,
        labels.INSTANCE_TYPE: wanted.type.name,
        labels.ZONE: offer.zone,
        labels.CAPACITY_TYPE: order.capacity_type,
        PRICE: f"{offer.price:.6f}",
        "kwok-partition": "a",
        labels.HOSTNAME: order.claim,
        wanted.claim_label: order.claim,
        **FAKE,
    }


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect}


def _amounts(resources: Resources) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in resources.items()}
