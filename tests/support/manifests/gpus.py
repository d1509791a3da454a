"""A world whose larger type brings GPUs, as objects: what a driver publishes and what pods ask for."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.devices import (
    AllocatedDevice,
    Allocation,
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm
from kerf.engine.record.decisions import Intent
from kerf.engine.record.observations import CatalogueSeen, Observation
from tests.support.world import CATALOGUE, NODE_CLASS, World

DRIVER = "gpu.example.com"
CLASS = DeviceClass("gpu", (f'device.driver == "{DRIVER}"',))
GPUS = (Device("gpu-0", {f"{DRIVER}/model": "a"}), Device("gpu-1", {f"{DRIVER}/model": "a"}))
TEMPLATE = ResourceSlice("", DRIVER, "gpus", devices=GPUS)
WITH_GPUS = "m5.xlarge"
OFFERED = Catalogue(
    tuple(
        replace(instance_type, slices=(TEMPLATE,)) if instance_type.name == WITH_GPUS else instance_type
        for instance_type in CATALOGUE.types
    ),
    source="t",
)


def see(world: World, *objects: Struct) -> list[Intent]:
    return world.see(*(Observation(manifest) for manifest in objects))


def gpu_world(*, ignore_dra_requests: bool = False) -> World:
    """The NodeClass sells one type with two GPUs."""
    world = World(ignore_dra_requests=ignore_dra_requests)
    world.prepare()
    digest, _ = content(OFFERED)
    key = f"{NODE_CLASS.group}/{NODE_CLASS.kind}/{NODE_CLASS.name}"
    world.see(Observation(CatalogueSeen(key, digest), {digest: OFFERED}), Observation(CLASS))
    return world


def claim(name: str, count: int = 1, **fields: object) -> ResourceClaim:
    return ResourceClaim("default", name, (DeviceRequest("r", "gpu", count=count),), **fields)  # type: ignore[arg-type]


def published(node: str, *devices: Device, **fields: object) -> ResourceSlice:
    """What the driver publishes on a node: all of its type's GPUs, unless some are named."""
    made = ResourceSlice(f"{node}-gpus", DRIVER, node, node=node, owner=node, devices=devices or GPUS)
    return replace(made, **fields)


def allocated(given: ResourceClaim, node: str, *devices: str, pod: str = "") -> ResourceClaim:
    """As kube-scheduler leaves it."""
    term = NodeTerm(fields=(Expression("metadata.name", "In", (node,)),))
    found = tuple(AllocatedDevice(DRIVER, node, device) for device in devices)
    return replace(given, allocation=Allocation(found, (term,)), pods=(pod,) if pod else ())
