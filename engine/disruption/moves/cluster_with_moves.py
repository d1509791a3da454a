"""The cluster as it will be with moves that are under way or proposed.

What is chosen or validated beside these moves must not place pods where they do, nor use the disruption budgets that
they use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Pod, Resources
from kerf.engine.model.labels import CAPACITY_TYPE, NODEPOOL
from kerf.engine.record.decisions import Move, PlannedClaim
from kerf.engine.scheduling.matching.resources import added, total
from kerf.engine.scheduling.problem.problem import NodeInput


def with_moves(cluster: Cluster, moves: Iterable[Move]) -> Cluster:
    """The cluster with these moves carried out.

    Their nodes are marked, so that they count for the budgets. Their pods, and those of nodes that are marked anyway
    (D-88), are where the moves put them, and nodes that take pods are nominated. Each replacement is a node on its way
    that takes no further pods.
    """
    moves = tuple(moves)
    if not moves:
        return cluster
    leaving = frozenset(name for move in moves for name in move.claims)
    pods = {pod.uid: pod for node in cluster.nodes if node.marked or node.place.claim in leaving for pod in node.pods}
    pods |= {pod.uid: pod for pod in cluster.pending}
    there = {uid: place.node for move in moves for place in move.placements for uid in place.pods if uid in pods}
    news = [new for move in moves for new in move.replacements]
    settled = {uid for new in news for uid in new.pods if uid in pods} | there.keys()
    arrived: dict[str, list[Pod]] = {}
    for uid in sorted(there):
        arrived.setdefault(there[uid], []).append(pods[uid])
    nodes = [_changed(node, leaving, settled, arrived.get(node.name, ()), cluster) for node in cluster.nodes]
    first = len(nodes)  # the cluster may have replacements of other moves already
    nodes += [_arriving(new, f"replacement-{number}", pods, cluster) for number, new in enumerate(news, first)]
    pending = tuple(pod for pod in cluster.pending if pod.uid not in settled)
    return replace(cluster, nodes=tuple(nodes), pending=pending)


def without_room(cluster: Cluster, moves: Iterable[Move]) -> Cluster:
    """The cluster in which nodes of these moves take no further pods."""
    leaving = frozenset(name for move in moves for name in move.claims)
    return replace(
        cluster,
        nodes=tuple(
            replace(node, place=replace(node.place, available={})) if node.place.claim in leaving else node
            for node in cluster.nodes
        ),
    )


def without_late_pods(move: Move, cluster: Cluster, proposed: Iterable[Move]) -> Move:
    """The move without pods that came late to nodes of moves which are only proposed.

    A simulation places these pods too, but they may well stay where they are. `cluster` is as it was before
    `with_moves`.
    """
    claims = frozenset(name for other in proposed for name in other.claims)
    nodes = [node for node in cluster.nodes if node.place.claim in claims and not node.marked]
    late = frozenset(pod.uid for node in nodes for pod in node.pods)
    placements = tuple(replace(placement, pods=_but(placement.pods, late)) for placement in move.placements)
    return replace(
        move,
        placements=tuple(placement for placement in placements if placement.pods),
        replacements=tuple(
            replace(replacement, pods=_but(replacement.pods, late)) for replacement in move.replacements
        ),
    )


def _but(pods: tuple[str, ...], late: frozenset[str]) -> tuple[str, ...]:
    return tuple(uid for uid in pods if uid not in late)


def _changed(
    node: ClusterNode, leaving: frozenset[str], settled: set[str], arrived: Iterable[Pod], cluster: Cluster
) -> ClusterNode:
    if node.marked or node.place.claim in leaving:
        stay = tuple(pod for pod in node.pods if pod.uid not in settled)
        return replace(node, marked=True, pods=stay)
    if not arrived:
        return node
    pods = tuple(replace(pod, node=node.name) for pod in arrived)
    used = total({**cluster.shapes[pod.shape].requests, "pods": 1} for pod in pods)
    ports = tuple(port for pod in pods for port in cluster.shapes[pod.shape].host_ports)
    place = replace(
        node.place, available=added(node.place.available, used, -1), host_ports=(*node.place.host_ports, *ports)
    )
    return replace(node, place=place, pods=(*node.pods, *pods), nominated=True)


def _arriving(new: PlannedClaim, name: str, pods: Mapping[str, Pod], cluster: Cluster) -> ClusterNode:
    """A replacement that is not there yet: it has no room for other pods (D-95), and counts for limits and topology."""
    wanted = Requirements.of_specs(new.requirements)
    single = {requirement.key: next(iter(requirement.values)) for requirement in wanted if requirement.single}
    kinds = {CAPACITY_TYPE: new.capacity_types[0]} if len(new.capacity_types) == 1 else {}
    labels = {**new.labels, **single, **kinds, NODEPOOL: new.node_pool}
    return ClusterNode(
        place=NodeInput(name, name, labels, (), {}, initialized=False),
        pods=tuple(replace(pods[uid], node=name) for uid in new.pods if uid in pods),
        capacity=_most(new, cluster),
        has_node=False,
        ready=False,
    )


def _most(new: PlannedClaim, cluster: Cluster) -> Resources:
    """The most of each resource that the replacement may come to have (S-70)."""
    catalogue, most = cluster.catalogue(new.node_pool), dict[str, int]()
    names = frozenset(new.instance_types)
    for instance_type in () if catalogue is None else catalogue.types:
        if instance_type.name in names:
            most = {
                name: max(most.get(name, 0), instance_type.capacity.get(name, 0))
                for name in {**most, **instance_type.capacity}
            }
    return most
