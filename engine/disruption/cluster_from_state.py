"""Builds disruption's `Cluster` from the state (D-4…D-8, D-49…D-58)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, Resources
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, INITIALIZED, REQUESTED
from kerf.engine.scheduling.problem.departing_pods import departing_pods
from kerf.engine.scheduling.problem.from_state import (
    buffer_pods,
    capacity_of,
    problem_of,
    spread_by_default,
    without_doubted,
)
from kerf.engine.scheduling.problem.problem import NodeInput
from kerf.engine.scheduling.relaunch_delay import recently_launched
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.pods.on_node import is_unused, pods_on_node
from kerf.engine.state.state import State

NEVER = 1 << 62


def cluster_of(state: State, now: int) -> Cluster:
    """The cluster as the state shows it. Moves that are only proposed do not count. Offerings that are in doubt count
    as unavailable: nothing is replaced by them. Pods that wait for another node are left out: no move launches one for
    them before their pause is over."""
    facts = state.facts
    waiting = recently_launched(facts, now)
    base = without_doubted(problem_of(state, now), state, now)
    nodes = _as_before(_nodes(state, {node.claim or node.name: node for node in base.nodes}, now), state)
    shapes = dict(base.shapes)
    for digest in sorted(frozenset[str]().union(*(node.shapes for node in nodes)) - shapes.keys()):
        shapes[digest] = state.indexes.blobs.shape(digest)
    virtual = buffer_pods(state)
    pods = (facts.pods[uid] for uid in state.indexes.pending if uid not in waiting)
    pending = spread_by_default(state, [*pods, *virtual])  # D-88
    for pod in pending:
        shapes.setdefault(pod.shape, state.indexes.blobs.shape(pod.shape))
    return Cluster(
        now=now,
        nodes=nodes,
        base=replace(base, pods=(), shapes=shapes),
        pending=_in_order(pending),
        pod_disruption_budgets=tuple(sorted(facts.pdbs.values(), key=lambda pdb: (pdb.namespace, pdb.name, pdb.uid))),
        virtual=frozenset(pod.uid for pod in virtual),
        spot_to_spot=facts.settings.spot_to_spot,
        live=True,
    )


def cluster_when_moves_start(state: State, now: int) -> Cluster:
    """The cluster as a pass at `now` (ms since the epoch) judges it: as of when the moves that it proposes start.

    Drifted nodes go at once: `cluster_of` shows them. (D-108)
    """
    return cluster_of(state, now + state.facts.settings.validation_delay)


def _as_before(nodes: Iterable[ClusterNode], state: State) -> tuple[ClusterNode, ...]:
    """Replace each node that equals one of the latest cluster by that object, which keeps its computed values."""
    before: dict[str, ClusterNode] = state.indexes.cluster_nodes
    kept = tuple([known if (known := before.get(node.place.name)) == node else node for node in nodes])
    state.indexes.cluster_nodes = {node.place.name: node for node in kept}
    return kept


def _nodes(state: State, places: dict[str, NodeInput], now: int) -> Iterator[ClusterNode]:
    """Nodes of NodeClaims by their names, then the others. A replacement is promised to the pods of the nodes that it
    replaces until these begin to drain."""
    facts = state.facts
    started = (underway.move for underway in facts.moves.values() if underway.started)
    replacing = frozenset(new.name for move in started for new in move.replacements)
    departing = {node: frozenset(pod.uid for pod in pods) for node, pods in departing_pods(state, now).items()}
    for name in sorted(facts.claims):
        claim = facts.claims[name]
        made = _managed(claim, node_of(claim, state), places.get(name), state, now)
        if claim.state in GOING:
            made = replace(made, departing=departing.get(claim.node, frozenset()))
        yield replace(made, nominated=True) if name in replacing else made
    for name in sorted(facts.nodes):
        if name not in state.indexes.claim_by_node:
            node = facts.nodes[name]
            place = places.get(name)
            yield ClusterNode(
                place=place or _gone(node.name, "", node, True),
                pods=_pods(node.name, state),
                managed=False,
                annotations=node.annotations,
                capacity=node.capacity,
                created=node.created,
                tracked=place is not None,
                marked=bool(node.deleting),
                ready=node.ready,
                departing=departing.get(name, frozenset()) if node.deleting else None,
            )


def _managed(claim: NodeClaim, node: Node | None, place: NodeInput | None, state: State, now: int) -> ClusterNode:
    facts = state.facts
    hold = facts.holds.get(claim.name)
    return ClusterNode(
        place=place or _gone(node.name if node is not None else claim.name, claim.name, node, bool(claim.initialized)),
        pods=_pods(node.name, state) if node is not None else (),
        has_node=node is not None,
        annotations=node.annotations if node is not None else claim.annotations,
        capacity=_capacity(claim, state),
        created=claim.created,
        expire_after=claim.expire_after,
        grace_period=claim.termination_grace_period,
        tracked=place is not None,
        marked=claim.state in GOING or claim.instance_status in ENDED,
        terminating=claim.is_ending,
        nominated=now < claim.nominated_until or bool(state.indexes.waiting_for.get(claim.name)),
        ready=node is not None and node.ready,
        consolidatable=quiet_at(claim, state) <= now,
        drifted_since=claim.drifted_since,
        initialized_since=claim.initialized,
        last_pod_event=claim.last_pod_event,
        buffers=facts.buffered.get(claim.name, 0),
        held_until=hold.until if hold is not None else 0,
        unused=is_unused(claim, state),
    )


def quiet_at(claim: NodeClaim, state: State) -> int:
    """When the claim becomes, or became, Consolidatable (ms since the epoch); `NEVER` if it does not (D-55, D-56)."""
    pool = state.facts.pools.get(claim.node_pool)
    if claim.state != INITIALIZED or pool is None or pool.replicas is not None or pool.consolidate_after is None:
        return NEVER
    return (claim.last_pod_event or claim.initialized) + pool.consolidate_after


def _gone(name: str, claim: str, node: Node | None, initialized: bool) -> NodeInput:
    """A node that is no longer a place for pods."""
    labels = node.labels if node is not None else {}
    return NodeInput(name, claim, labels, node.taints if node is not None else (), {}, initialized=initialized)


def _pods(node: str, state: State) -> tuple[Pod, ...]:
    here = pods_on_node(state, node)
    return _in_order(spread_by_default(state, here.pods)) if state.facts.settings.default_spread else here.ordered


def _in_order(pods: list[Pod]) -> tuple[Pod, ...]:
    return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid)))


def _capacity(claim: NodeClaim, state: State) -> Resources:
    """The node's capacity; for a claim that is not launched, the most that it may come to have (S-70, S-73)."""
    if claim.state != REQUESTED:
        return capacity_of(claim, state)
    ref = claim.node_class
    digest = state.facts.catalogues.get(f"{ref.group}/{ref.kind}/{ref.name}", "")
    return state.indexes.blobs.over_types(digest, claim.instance_types, largest=True) if digest else {}
