"""NodeOverlays (karpenter.sh/v1alpha1): L-49…L-52."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

import re

import msgspec
from msgspec import field

from kerf.engine.model.manifests.admission import check_requirements
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
from kerf.engine.model.overlays import FIXED_RESOURCES, Adjustment, NodeOverlay
from kerf.engine.model.pools import RequirementSpec

_PRICE = re.compile(r"\d+(\.\d+)?")
_ADJUSTMENT = re.compile(r"([+-]\d*\.?\d+)|(\+\d*\.?\d+)%|(-\d{1,2}(?:\.\d+)?|-100)%")
_HEAVIEST = 10_000


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
    spec = wire.spec
    _check_requirements(report, spec.requirements)
    if spec.price is not None and spec.price_adjustment is not None:
        report.add("KERF317", "spec.price", "price and priceAdjustment exclude each other")
    if spec.weight is not None and not 1 <= spec.weight <= _HEAVIEST:
        report.add("KERF309", "spec.weight", f"weight is 1 to {_HEAVIEST}, not {spec.weight}")
    for resource in sorted(set(spec.capacity) & set(FIXED_RESOURCES)):
        report.add("KERF306", f"spec.capacity[{resource}]", f"An overlay cannot change {resource}")
    overlay = NodeOverlay(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        requirements=tuple(
            RequirementSpec(each.key, each.operator, tuple(each.values or ())) for each in spec.requirements or ()
        ),
        price=_price(report, spec.price),
        adjustment=_adjustment(report, spec.price_adjustment),
        capacity=read_resources(report, "spec.capacity", spec.capacity),
        weight=spec.weight or 0,
    )
    return Read(overlay, {})


def _check_requirements(report: Report, requirements: list[RequirementWire] | None) -> None:
    """L-49: as of a NodePool, but NotIn needs values too, and there is no minValues."""
    path = "spec.requirements"
    check_requirements(report, path, requirements)
    for index, each in enumerate(requirements or ()):
        if each.operator == "NotIn" and not each.values:
            report.add("KERF310", f"{path}[{index}].values", "Operator NotIn needs at least one value")
        if each.min_values is not None:
            report.add("KERF313", f"{path}[{index}].minValues", "An overlay's requirement has no minValues")


def _price(report: Report, text: str | None) -> float | None:
    if text is None:
        return None
    if not _PRICE.fullmatch(text):
        report.add("KERF306", "spec.price", f"{text!r} is no price", 'Write USD per hour, such as "0.25"')
        return None
    return float(text)


def _adjustment(report: Report, text: str | None) -> Adjustment | None:
    """L-50."""
    if text is None:
        return None
    match = _ADJUSTMENT.fullmatch(text)
    if match is None:
        hint = 'Write "+0.5", "-0.1", "+20%" or "-15%"'
        report.add("KERF306", "spec.priceAdjustment", f"{text!r} is no change of a price", hint)
        return None
    absolute, more, less = match.groups()
    return Adjustment(float(absolute)) if absolute else Adjustment(float(more or less), percent=True)
