"""What the cloud of a simulation sells: the zones, and the catalogue of each NodeClass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.aws.catalogue.instance_types import NodeSettings
from kerf.adapters.aws.catalogue.offerings import offline_catalogue
from kerf.adapters.aws.catalogue.regions import ZONES, ZONES_BY_ID, zone_id
from kerf.adapters.aws.nodeclass.resolved import node_settings
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.labels import ZONE, ZONE_ID
from kerf.engine.model.mistyped import Known, near_value, values_of

DEFAULT_REGION, ZONE_LETTERS = "us-west-2", "abc"
_ZONE = re.compile(r"(.*[0-9])[a-z]")


def catalogues(region: str, zones: Sequence[str]) -> Callable[[Struct | None], Catalogue]:
    """A function that gives the catalogue of a NodeClass (None: of one without settings) by its family, kubelet and
    disks.

    It raises InputError for settings that cannot be read, such as maxPods as an expression (KERF522).
    """
    known: dict[bytes, Catalogue] = {}
    ids = {zone: zone_id(zone) for zone in zones}

    def catalogue_of(node_class: Struct | None) -> Catalogue:
        settings = node_settings(node_class) if isinstance(node_class, EC2NodeClass) else NodeSettings()
        key = msgspec.json.encode(settings, order="deterministic")
        if key not in known:
            known[key] = offline_catalogue(region=region, zones=zones, zone_ids=ids, settings=settings)
        return known[key]

    return catalogue_of


def zones_of(documents: Iterable[dict[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """The region and the zones in which a simulation's cloud sells: the zones that NodePools name, and a, b and c of
    the region for a NodePool that names none. A name that looks like a mistyped zone is no zone."""
    named: dict[str, None] = {}
    anywhere = False
    for document in documents:
        if document.get("kind") == "NodePool":
            pool_zones = _wanted_zones(document)
            named.update(dict.fromkeys(pool_zones))
            anywhere = anywhere or not pool_zones
    return zones_sold(named, anywhere=anywhere)


def zones_sold(named: Iterable[str], *, anywhere: bool = False) -> tuple[str, tuple[str, ...]]:
    """The region and the zones that are sold, by the zones that are named: a, b and c of the region, too, if a NodePool
    may be anywhere, or if none is left."""
    named = list(named)
    known = [zone for zone in named if zone in ZONES]
    match = next(filter(None, map(_ZONE.fullmatch, known or named)), None)
    region = match[1] if match else DEFAULT_REGION
    letters = [f"{region}{letter}" for letter in ZONE_LETTERS]
    like_zones = ZONES if known else (*letters, *filter(_ZONE.fullmatch, named))  # a region may be newer than the table
    sold = {zone for zone in named if not near_value(zone, like_zones)}
    if anywhere or not sold:
        sold.update(letters)
    return region, tuple(sorted(sold))


def known_values(catalogue: Catalogue, zones: Sequence[str]) -> Known:
    """The values that labels have: by what the simulation's cloud sells, and all zones of its regions (of AWS, if it
    sells in none of them). A zone that is sold only because a NodePool names it does not count as known."""
    regions = {zone[:-1] for zone in zones if zone in ZONES}
    likely = [zone for zone in ZONES if zone[:-1] in regions] or ZONES
    return {**values_of(catalogue), ZONE: {*likely, *(zone for zone in zones if not near_value(zone, ZONES))}}


def _wanted_zones(pool: dict[str, Any]) -> list[str]:
    """The zones in a NodePool's requirements and labels, by name or by id. Malformed ones are refused elsewhere."""
    return [
        *_allowed(pool, ZONE),
        *(ZONES_BY_ID[known_id] for known_id in _allowed(pool, ZONE_ID) if known_id in ZONES_BY_ID),
    ]


def _allowed(pool: dict[str, Any], key: str) -> list[str]:
    """The values that a NodePool allows for a label, as far as it lists them."""
    template = _part(_part(pool, "spec"), "template")
    value = _part(_part(template, "metadata"), "labels").get(key)
    allowed = [value] if isinstance(value, str) else []
    requirements = _part(template, "spec").get("requirements")
    for requirement in requirements if isinstance(requirements, list) else ():
        if isinstance(requirement, dict) and requirement.get("key") == key and requirement.get("operator") == "In":
            values = requirement.get("values")
            allowed += [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    return allowed


def _part(document: dict[str, Any], key: str) -> dict[str, Any]:
    part = document.get(key)
    return part if isinstance(part, dict) else {}
