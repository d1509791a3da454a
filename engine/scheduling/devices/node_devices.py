"""Collects the devices of a problem: which existing nodes have published theirs, and what other nodes will have
(S-196)."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import INSTANCE_TYPE, NODEPOOL
from kerf.engine.scheduling.devices.allocation import Devices, NodeDevices, Publishes
from kerf.engine.scheduling.devices.pools import DeviceKey, OwnDevices, own_devices
from kerf.engine.scheduling.problem.problem import NodeInput, Problem


def asks_for_devices(problem: Problem) -> bool:
    """Whether a pod of the pass asks for devices, and these are not ignored."""
    if problem.devices is None or problem.settings.ignore_dra_requests:
        return False
    return any(problem.shapes[digest].resource_claims for digest in {pod.shape for pod in problem.pods})


def devices_of(problem: Problem) -> Devices | None:
    """The devices of the pass; None if no pod asks for any, or nothing is known of them."""
    if problem.devices is None or not asks_for_devices(problem):
        return None
    asked = {name for pod in problem.pods for name in pod.device_claims}
    return Devices(problem.devices, (node.name for node in problem.nodes if node.initialized), asked)


def node_devices_of(node: NodeInput, labels: Requirements, problem: Problem) -> NodeDevices:
    """The devices of one existing node. `labels`: what is known of its labels."""
    if node.initialized:
        return NodeDevices(node.name, labels)
    distinct: list[Publishes] = []
    for instance_type in _types(node, labels, problem):
        publishes = instance_type.slices, instance_type.bindings
        if publishes not in distinct:
            distinct.append(publishes)
    groups = tuple(own_devices(*publishes) for publishes in distinct) or (OwnDevices(),)
    return NodeDevices(node.name, labels, groups, _taken(node.name, groups, problem))


def _types(node: NodeInput, labels: Requirements, problem: Problem) -> list[InstanceType]:
    """The instance types that the node is or can still become."""
    pool = node.labels.get(NODEPOOL, "")
    digest = next((pool_input.catalogue for pool_input in problem.pools if pool_input.pool.name == pool), "")
    known: Mapping[str, InstanceType] = (
        {instance_type.name: instance_type for instance_type in problem.catalogues[digest].types} if digest else {}
    )
    named = labels.find(INSTANCE_TYPE)
    names = sorted(named.values) if named is not None and not named.complement else []
    return [known[name] for name in names if name in known]


def _taken(node: str, groups: tuple[OwnDevices, ...], problem: Problem) -> frozenset[DeviceKey]:
    """Devices of the node's slice template that are already allocated under their published names, before the node is
    initialized."""
    assert problem.devices is not None
    owned = {
        (resource_slice.driver, resource_slice.pool)
        for resource_slice in problem.devices.slices.values()
        if node in (resource_slice.owner, resource_slice.node)
    }
    gone = {
        (device.driver, device.device)
        for claim in problem.devices.claims.values()
        if claim.allocation is not None
        for device in claim.allocation.devices
        if (device.driver, device.pool) in owned
    }
    return frozenset(
        (pool.driver, pool.name, device.name)
        for publishes in groups
        for pool in publishes.pools
        for part in pool.slices
        for device in part.devices
        if (pool.driver, device.name) in gone
    )
