"""NodeOverlays (karpenter.sh/v1alpha1): L-49…L-52."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import msgspec
from msgspec import field

from kerf.engine.model.crds.check import check_document
from kerf.engine.model.crds.feature_gated import NODE_OVERLAY, PRICE, PRICE_ADJUSTMENT
from kerf.engine.model.crds.schema import compiled
from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import (
    Int32,
    ObjectWire,
    Quantities,
    Read,
    RequirementWire,
    Wire,
    read_resources,
    require_name,
)


class OverlaySpecWire(Wire):
    requirements: list[RequirementWire] | None = None
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Quantities = {}
    weight: Int32 | None = None


class OverlayWire(ObjectWire):
    spec: OverlaySpecWire = field(default_factory=OverlaySpecWire)


_read = msgspec.json.Decoder(OverlayWire).decode


def read_node_overlay(data: bytes, report: Report) -> Read:
    """A karpenter.sh/v1alpha1 NodeOverlay."""
    wire = _read(data)
    require_name(report, wire.metadata)
    check_document(NODE_OVERLAY, msgspec.json.decode(data), report)
    spec = wire.spec
    overlay = NodeOverlay(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        requirements=tuple(
            RequirementSpec(requirement.key, requirement.operator, tuple(requirement.values or ()))
            for requirement in spec.requirements or ()
        ),
        price=_price(spec.price),
        adjustment=_adjustment(spec.price_adjustment),
        capacity=read_resources(report, "spec.capacity", spec.capacity),
        weight=spec.weight or 0,
        generation=wire.metadata.generation,
    )
    return Read(overlay, {})


def _price(text: str | None) -> float | None:
    """None too for what the declared pattern has refused."""
    return float(text) if text is not None and compiled(PRICE).search(text) else None


def _adjustment(text: str | None) -> Adjustment | None:
    """The adjustment, in dollars or percent (L-50). None too for what the declared pattern has refused."""
    if text is None or not compiled(PRICE_ADJUSTMENT).search(text):
        return None
    return Adjustment(float(text.removesuffix("%")), percent=text.endswith("%"))
