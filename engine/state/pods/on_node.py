"""Sums over the pods of one node, kept for as long as these pods are the same.

Each pass asks for every node, and between two passes few nodes change.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import DAEMONSET, HostPort, Pod, Resources, assumed, owned_by
from kerf.engine.state.state import State

MAX_GONE_NODES = 1_000
"""So many nodes that are gone are remembered at most."""


class PodsOnNode(Struct, frozen=True):
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


def _summed(pods: list[Pod], state: State) -> PodsOnNode:
    shape = state.indexes.blobs.shape
    return PodsOnNode(
        pods,
        tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))),
        _requests(pods, state),
        _requests([pod for pod in pods if owned_by(pod, DAEMONSET)], state),
        _assumed([pod for pod in pods if not owned_by(pod, DAEMONSET)], state),
        tuple(sorted({port for pod in pods for port in shape(pod.shape).host_ports})),
        frozenset(pod.shape for pod in pods),
    )


def _assumed(pods: list[Pod], state: State) -> Resources:
    summed: Resources = {}
    for pod in pods:
        for resource, amount in assumed(state.indexes.blobs.shape(pod.shape).requests).items():
            summed[resource] = summed.get(resource, 0) + amount
    return summed


def _requests(pods: list[Pod], state: State) -> Resources:
    summed: Resources = {}
    shape = state.indexes.blobs.shape
    for pod in pods:
        for resource, amount in shape(pod.shape).requests.items():
            summed[resource] = summed.get(resource, 0) + amount
    if pods:
        summed["pods"] = len(pods)
    return summed
