"""Write what a NodePool could launch as the instance types of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.scheduling.launchable.launch_offers import is_unavailable
from kerf.replay.what_if.export.pods import quantities

Document = dict[str, Any]


Offerings = frozenset[tuple[str, str, str]]
"""(capacity type, instance type, zone); "" matches any."""


def source_of(catalogue: Catalogue, unavailable: Offerings, in_doubt: Offerings, left: Mapping[str, int]) -> Document:
    """Write all types of a catalogue. `unavailable` are offerings without capacity, `in_doubt` those that replace no
    node (A-290); `left` is how many instances each reservation has left."""
    source: Document = {"inline": [_type(instance_type, unavailable, left) for instance_type in catalogue.types]}
    if in_doubt:
        source["inDoubt"] = [_matchers(*offerings) for offerings in sorted(in_doubt)]
    return source


def _matchers(capacity_type: str, name: str, zone: str) -> Document:
    asked = {"types": name, "zones": zone, "capacityTypes": capacity_type}
    return {matcher: [value] for matcher, value in asked.items() if value}


def _type(instance_type: InstanceType, unavailable: Offerings, left: Mapping[str, int]) -> Document:
    offerings = [
        _offering(
            offering, not is_unavailable(unavailable, offering.capacity_type, instance_type.name, offering.zone), left
        )
        for offering in instance_type.offerings
    ]
    return {
        "name": instance_type.name,
        "capacity": quantities(instance_type.capacity),
        "overhead": {"kubeReserved": quantities(instance_type.overhead)},
        "requirements": {key: list(values) for key, values in instance_type.requirements.items()},
        "offerings": offerings,
    }


def _offering(offering: Offering, has_capacity: bool, left: Mapping[str, int]) -> Document:
    document: Document = {"zone": offering.zone, "capacityType": offering.capacity_type, "price": offering.price}
    if offering.zone_id:
        document["zoneId"] = offering.zone_id
    if not (offering.available and has_capacity):
        document["available"] = False
    if offering.reservation_id:
        document["reservationId"] = offering.reservation_id
        document["reservationCapacity"] = left.get(offering.reservation_id, offering.reservation_capacity)
    return document
