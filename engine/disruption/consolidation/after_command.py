"""The cluster as a command leaves it, so that the next one can be chosen beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode, moving_pods
from kerf.engine.disruption.consolidation.commands import Command, Replacement
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources
from kerf.engine.model.labels import CAPACITY_TYPE, NODEPOOL, RESERVED
from kerf.engine.scheduling.problem.problem import NodeInput


def after(cluster: Cluster, command: Command, number: int) -> Cluster:
    """The cluster once the command is carried out.

    The candidates are gone, their pods are where the command's simulation placed them, and each replacement is a node
    on its way that takes no further pods. `number` tells its replacements from those of other commands.
    """
    leaving = frozenset(command.names)
    going, gone = moving_pods(cluster, leaving)
    pods = {pod.uid: pod for pod in (*cluster.pending, *gone, *going)}
    moved = {pod.uid: pod for pod in going}
    settled = {uid for replacement in command.replacements for uid in replacement.claim.pods}
    nodes = [node for node in cluster.nodes if node.name not in leaving]
    there = {placement.node: [moved[uid] for uid in placement.pods if uid in moved] for placement in command.placements}
    nodes = [_filled(_without_settled_pods(node, settled), there.get(node.name, ()), cluster.shapes) for node in nodes]
    nodes += [
        _arriving(replacement, [pods[uid] for uid in replacement.claim.pods], f"replacement-{number}-{index}", cluster)
        for index, replacement in enumerate(command.replacements)
    ]
    placed = settled | {pod.uid for arrived in there.values() for pod in arrived}
    pending = [pod for pod in cluster.pending if pod.uid not in settled]
    pending += [replace(pod, node="", phase="Pending") for pod in going if pod.uid not in placed]
    return replace(
        cluster,
        nodes=tuple(nodes),
        pending=tuple(pending),
        base=replace(cluster.base, unavailable=cluster.base.unavailable | _reserved(command.replacements)),
    )


def _without_settled_pods(node: ClusterNode, settled: Iterable[str]) -> ClusterNode:
    """A node marked for deletion without the pods that have a place elsewhere by now."""
    if not node.marked:
        return node
    return replace(node, pods=tuple(pod for pod in node.pods if pod.uid not in settled))


def _filled(node: ClusterNode, arrived: Iterable[Pod], shapes: Mapping[str, PodShape]) -> ClusterNode:
    pods = tuple(arrived)
    if not pods:
        return node
    place = node.place.with_pods([shapes[pod.shape] for pod in pods])
    return replace(node, place=place, pods=(*node.pods, *(replace(pod, node=node.name) for pod in pods)))


def _arriving(new: Replacement, pods: Iterable[Pod], name: str, cluster: Cluster) -> ClusterNode:
    """A replacement that is not there yet: it has no room for others (D-95), and counts for limits and topology."""
    single = {requirement.key: next(iter(requirement.values)) for requirement in new.requirements if requirement.single}
    kinds = {CAPACITY_TYPE: new.capacity_types[0]} if len(new.capacity_types) == 1 else {}
    labels = {**new.claim.labels, **single, **kinds, NODEPOOL: new.claim.node_pool}
    return ClusterNode(
        place=NodeInput(name, name, labels, (), {}, initialized=False),
        pods=tuple(replace(pod, node=name) for pod in pods),
        capacity=_capacity(new, cluster),
        has_node=False,
        ready=False,
    )


def _capacity(new: Replacement, cluster: Cluster) -> Resources:
    """The most of each resource that it may come to have (S-70)."""
    catalogue = cluster.catalogue(new.claim.node_pool)
    most: Resources = {}
    for instance_type in () if catalogue is None else catalogue.types:
        if instance_type.name in new.instance_types:
            most = {
                name: max(most.get(name, 0), instance_type.capacity.get(name, 0))
                for name in {**most, **instance_type.capacity}
            }
    return most


def _reserved(replacements: Iterable[Replacement]) -> frozenset[tuple[str, str, str]]:
    """Reserved capacity that a replacement may use is left to it."""
    return frozenset(
        (RESERVED, name, "")
        for replacement in replacements
        if replacement.claim.reservations
        for name in replacement.instance_types
    )
