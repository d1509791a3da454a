"""Planning problems about devices: GPUs of a driver, types that have them, and pods with claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.devices import (
    Attribute,
    Capacity,
    Device,
    DeviceClass,
    DeviceFacts,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.labels import INSTANCE_TYPE, NODEPOOL, ZONE
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem
from tests.support.scenarios.problems import Workloads, instance_type, problem, shape

DRIVER = "gpu.example.com"
CLASS = DeviceClass("gpu", (f'device.driver == "{DRIVER}"',))


def gpu(name: str, capacity: Mapping[str, Capacity] | None = None, shared: bool = False, **attributes: Any) -> Device:
    full: dict[str, Attribute] = {f"{DRIVER}/{key}": value for key, value in attributes.items()}
    return Device(name, full, {f"{DRIVER}/{k}": v for k, v in (capacity or {}).items()}, shared=shared)


def template(*devices: Device, **fields: Any) -> tuple[ResourceSlice, ...]:
    return (ResourceSlice("t", DRIVER, "node", devices=devices, **fields),)


def types(**slices: tuple[ResourceSlice, ...]) -> Catalogue:
    """Types of two, three, … cores in this order, with these devices."""
    return Catalogue(
        tuple(replace(instance_type(name, n), slices=found) for n, (name, found) in enumerate(slices.items(), start=2))
    )


def ask(count: int = 1, *selectors: str, name: str = "r", **fields: Any) -> DeviceRequest:
    return DeviceRequest(name, "gpu", selectors, count=count, **fields)


def claim(name: str, *requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    return ResourceClaim("default", name, requests or (ask(),), **fields)


def question(
    claims: Sequence[ResourceClaim],
    pods: Mapping[str, Sequence[str]],
    catalogue: Catalogue,
    *,
    slices: Sequence[ResourceSlice] = (),
    nodes: Sequence[NodeInput] = (),
    leaving: Sequence[str] = (),
    cpu: int = 100,
    classes: Sequence[DeviceClass] = (CLASS,),
) -> Problem:
    """`pods`: by name, the claims they ask for; a name without claims is a pod without any."""
    work = Workloads()
    for name, wanted in pods.items():
        work.add(name, 1, shape(cpu, resource_claims=tuple(wanted)))
    given = problem(work, catalogue, nodes=nodes, ignore_dra_requests=False)
    asked: tuple[PendingPod, ...] = tuple(
        replace(pod, device_claims=tuple(f"default/{name}" for name in pods[pod.name.rpartition("-")[0]]))
        for pod in given.pods
    )
    facts = DeviceFacts(
        {asked_claim.key: asked_claim for asked_claim in claims},
        {device_class.name: device_class for device_class in classes},
        {resource_slice.name: resource_slice for resource_slice in slices},
        leaving=frozenset(leaving),
    )
    return replace(given, pods=asked, devices=facts)


def solved(*given: Any, **fields: Any) -> Plan:
    return plan(question(*given, **fields))


def existing(name: str, kind: str = "", initialized: bool = True, zone: str = "z1") -> NodeInput:
    own = {NODEPOOL: "default", INSTANCE_TYPE: kind} if kind else {}
    available = {"cpu": 4000, "memory": 2**33, "pods": 10}
    return NodeInput(name, "", {**own, ZONE: zone}, (), available, initialized=initialized)


def published(name: str, *devices: Device, node: str = "", **fields: Any) -> ResourceSlice:
    """A pool of one slice, of a node unless it is said otherwise."""
    return ResourceSlice(name, DRIVER, name, node=node, owner=node, devices=devices, **fields)


def placed(planned: Plan) -> dict[str, str]:
    """Pod → its node, or the claim as "type type#number"."""
    found = {uid: placement.node for placement in planned.placements for uid in placement.pods}
    for number, opened in enumerate(planned.claims):
        found |= dict.fromkeys(opened.pods, f"{' '.join(sorted(opened.instance_types))}#{number}")
    return {uid.rpartition("-")[0]: place for uid, place in sorted(found.items())}


def why(planned: Plan) -> dict[str, list[str]]:
    """Pod → the codes of its reasons."""
    return {
        uid.rpartition("-")[0]: [reason.code for reason in group.reasons]
        for group in planned.unplaced
        for uid in group.pods
    }
