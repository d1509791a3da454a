"""The pods of one node: sums over them, kept for as long as they are the same, and whether there are any.

Each pass asks for every node, and between two passes few nodes change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import (
    DAEMONSET,
    HostPort,
    Pod,
    PodShape,
    Resources,
    assumed,
    is_reschedulable,
    owned_by,
)
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state.state import State

_BY_NAME = attrgetter("namespace", "name", "uid")
MAX_GONE_NODES = 1_000
"""So many nodes that are gone are remembered at most."""


class PodsOnNode(Struct, frozen=True, dict=True):
    """`pods` as the index lists them, `ordered` by namespace and name; `used` is what they request with the resource
    `pods` counted (S-74), `daemons` the part of it that belongs to DaemonSets; `assumed` is what kube-scheduler's
    scores take the others for beyond it."""

    pods: list[Pod]
    ordered: tuple[Pod, ...]
    used: Resources
    daemons: Resources
    assumed: Resources
    ports: tuple[HostPort, ...]
    shapes: frozenset[str]

    @cached_property
    def made_for(self) -> list[Any]:
        """A Node, and what was made latest of it and these pods; empty before that."""
        return []


def pods_on_node(state: State, node: str) -> PodsOnNode:
    """Of the Node of this name."""
    facts, known = state.facts, state.indexes.on_nodes
    found = known.get(node)
    if found is None:
        if len(known) > len(facts.nodes) + MAX_GONE_NODES:
            known.clear()
        here = [facts.pods[uid] for uid in state.indexes.pods_by_node.get(node, ())]
        found = known[node] = _summed(here, state)
    return found


def is_unused(claim: NodeClaim, state: State) -> bool:
    """Whether the claim's node in service has no pod, nor one that is expected, because pods that it was launched for
    still run where they ran before. Without it the cluster is as it was before that launch."""
    facts, indexes = state.facts, state.indexes
    if not claim.initialized or not claim.pods or indexes.waiting_for.get(claim.name):
        return False
    if any(is_reschedulable(facts.pods[uid]) for uid in indexes.pods_by_node.get(claim.node, ())):
        return False
    meant = (facts.pods[uid] for uid in claim.pods if uid in facts.pods)
    return any(pod.node and 0 < pod.started <= claim.created and not pod.deleting for pod in meant)


def _summed(pods: list[Pod], state: State) -> PodsOnNode:
    everything: dict[str, int] = {}
    daemons: dict[str, int] = {}
    for pod in pods:
        everything[pod.shape] = everything.get(pod.shape, 0) + 1
        if owned_by(pod, DAEMONSET):
            daemons[pod.shape] = daemons.get(pod.shape, 0) + 1
    shapes = {digest: state.indexes.blobs.shape(digest) for digest in everything}
    others = {digest: number - daemons.get(digest, 0) for digest, number in everything.items()}
    return PodsOnNode(
        pods,
        tuple(sorted(pods, key=_BY_NAME)),
        _requests(everything, shapes),
        _requests(daemons, shapes),
        _times((assumed(shapes[digest].requests), count) for digest, count in others.items() if count),
        tuple(sorted({port for shape in shapes.values() for port in shape.host_ports})),
        frozenset(shapes),
    )


def _requests(counts: Mapping[str, int], shapes: Mapping[str, PodShape]) -> Resources:
    summed = _times((shapes[digest].requests, count) for digest, count in counts.items())
    return {**summed, "pods": sum(counts.values())} if counts else summed


def _times(amounts: Iterable[tuple[Resources, int]]) -> Resources:
    """The sum of these amounts, each so many times."""
    summed: Resources = {}
    for resources, count in amounts:
        for resource, amount in resources.items():
            summed[resource] = summed.get(resource, 0) + count * amount
    return summed
