"""Worlds with capacity reservations."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, Offering
from tests.support.world import CATALOGUE


def reserving(*reservations: Offering) -> Catalogue:
    """All of them for m5.large."""
    kinds = tuple(
        replace(kind, offerings=kind.offerings + reservations) if kind.name == "m5.large" else kind
        for kind in CATALOGUE.types
    )
    return replace(CATALOGUE, types=kinds)


def held(name: str, *, left: int = 1, kind: str = "default", zone: str = "us-west-2a", price: float = 1e-8) -> Offering:
    return Offering(zone, lbl.RESERVED, price, reservation_id=name, reservation_type=kind, reservation_capacity=left)
