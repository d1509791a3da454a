"""The instance types that the KWOK provider offers: 144 made by a formula, or those of a file (L-466…L-471)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kerf.adapters.kwok.errors import CatalogueRefused
from kerf.engine.errors import InputError
from kerf.engine.model import labels
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.manifests.slice_templates import attribute_bindings, slice_templates
from kerf.engine.model.quantities import parse_quantity
from kerf.engine.record.errors import UNDECODABLE

GROUP = "karpenter.kwok.sh"
SIZE, FAMILY, CPU, MEMORY = (f"{GROUP}/instance-{field}" for field in ("size", "family", "cpu", "memory"))
CPUS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
FAMILIES = {"c": 2, "s": 4, "m": 8}  # GiB for each cpu
SYSTEMS, ARCHITECTURES = ("linux", "windows"), ("amd64", "arm64")
ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
OVERHEAD: Resources = {"cpu": 100, "memory": 10 << 20}  # L-470
SPOT_DISCOUNT = 0.7
PODS = 110  # of a type that does not say (L-466)
_GIB = 1 << 30
_AWS_NAME = re.compile(r"[a-z0-9-]+\.(?P<size>[a-z0-9-]+)")


def built_in() -> Catalogue:
    """Returns KWOK's own 144 types, by CPU, family, system and architecture (L-467, L-468)."""
    types = [
        _by_formula(family, cpu, system, architecture)
        for cpu in CPUS
        for family in FAMILIES
        for system in SYSTEMS
        for architecture in ARCHITECTURES
    ]
    return Catalogue(tuple(types), source="kwok built-in")


def _by_formula(family: str, cpu: int, system: str, architecture: str) -> InstanceType:
    memory = cpu * FAMILIES[family] * _GIB
    price = 0.025 * cpu + 0.001 * memory / 1e9
    offerings = tuple(
        Offering(zone, kind, price * SPOT_DISCOUNT if kind == labels.SPOT else price)
        for zone in ZONES
        for kind in (labels.SPOT, labels.ON_DEMAND)
    )
    capacity = {"cpu": cpu * 1000, "memory": memory, "pods": min(16 * cpu, 1024), "ephemeral-storage": 20 * _GIB}
    name = f"{family}-{cpu}x-{architecture}-{system}"
    return _type(name, capacity, architecture, (system,), offerings)


def _type(
    name: str, capacity: Resources, architecture: str, systems: tuple[str, ...], offerings: tuple[Offering, ...]
) -> InstanceType:
    """Returns a type whose labels follow from its name and CPU (L-469)."""
    sized = _AWS_NAME.fullmatch(name)
    cpu = str(capacity.get("cpu", 0) // 1000)
    parts = re.split(r"[.-]", name, maxsplit=1)
    family = parts[0] if len(parts) > 1 else name[:1]
    requirements = {
        labels.INSTANCE_TYPE: (name,),
        labels.ARCH: (architecture,),
        labels.OS: systems,
        labels.ZONE: _unique(offering.zone for offering in offerings),
        labels.CAPACITY_TYPE: _unique(offering.capacity_type for offering in offerings),
        SIZE: (str(sized["size"]) if sized else cpu,),
        FAMILY: (family,),
        CPU: (cpu,),
        MEMORY: (str(capacity.get("memory", 0) >> 20),),
    }
    return InstanceType(name, capacity, OVERHEAD, requirements, offerings)


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_catalogue(data: bytes, source: str) -> Catalogue:
    """Reads the types of a file in KWOK's format; field names may be in any case. Raises CatalogueRefused (KERF352).

    A type may say which devices its nodes will publish (`resourceSlices`, `attributeBindings`).
    """
    try:
        items = msgspec.json.decode(data, type=list[dict[str, Any]])
    except UNDECODABLE as error:
        raise CatalogueRefused(f"no list of instance types: {error}", where=source) from error
    types = []
    for index, item in enumerate(items):
        try:
            types.append(_listed({key.lower(): value for key, value in item.items()}))
        except KeyError as error:
            raise CatalogueRefused(f"an instance type without {error.args[0]}", where=f"{source}[{index}]") from error
        except (InputError, TypeError, ValueError, AttributeError) as error:
            raise CatalogueRefused(f"no instance type: {error}", where=f"{source}[{index}]") from error
    return Catalogue(tuple(types), source=source)


def read_catalogue_file(file: Path) -> Catalogue:
    """Reads the types of a file. Raises InputError (KERF330) for one that is not there, and what `read_catalogue`
    does."""
    try:
        data = file.read_bytes()
    except OSError as error:
        said = f"cannot read the instance types: {error.strerror}"
        raise InputError(said, where=str(file), hint="Check the path", code="KERF330") from error
    return read_catalogue(data, str(file))


def _listed(item: dict[str, Any]) -> InstanceType:
    capacity = {name: parse_quantity(amount, name) for name, amount in item["resources"].items()}
    capacity.setdefault("pods", PODS)
    offerings = tuple(
        _offering({key.lower(): value for key, value in offering.items()}) for offering in item.get("offerings") or ()
    )
    systems = tuple(item.get("operatingsystems") or ())
    kind = _type(str(item["name"]), capacity, str(item.get("architecture", "")), systems, offerings)
    slices = slice_templates(item.get("resourceslices") or ())
    return replace(kind, slices=slices, bindings=attribute_bindings(item.get("attributebindings") or ()))


def _offering(item: dict[str, Any]) -> Offering:
    """Returns an offering, always available (L-466). What its requirements do not say is empty."""
    said: dict[str, str] = {}
    for requirement in item.get("requirements") or ():
        lowered = {key.lower(): value for key, value in requirement.items()}
        values: list[Any] = lowered.get("values") or []
        if len(values) == 1:
            said[str(lowered.get("key"))] = str(values[0])
    return Offering(said.get(labels.ZONE, ""), said.get(labels.CAPACITY_TYPE, ""), float(item.get("price", 0.0)))
