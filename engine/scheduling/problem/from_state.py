"""From the state to the planner's `Problem` (S-40…S-51, S-61…S-78)."""

from __future__ import annotations

from collections import Counter

import msgspec

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepool_validation import violations
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources, Taint, is_terminal, scored
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.startup_taints import counting_taints
from kerf.engine.nodeclaim.state_table import GOING, REQUESTED
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.problem.capacity_buffers import BufferSources, virtual_pods
from kerf.engine.scheduling.problem.default_spread import SelectorSources, with_default_spread
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod, PoolInput, Problem
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.objects.daemonsets import daemon_shape
from kerf.engine.state.objects.devices import device_facts
from kerf.engine.state.objects.volumes import volume_facts
from kerf.engine.state.pod_bursts import untried_pods
from kerf.engine.state.pods_on_node import on_node
from kerf.engine.state.provisioning_window import going_pods, keeps_room
from kerf.engine.state.state import State


def problem_of(state: State, now: int) -> Problem:
    """The provisioning question as the state stands at `now`."""
    facts = state.facts
    virtual = buffer_pods(state)
    pods = spread_by_default(state, _of_this_pass(state, [*waiting_pods(state, now), *virtual]))
    of_buffers = {pod.uid for pod in virtual}
    offered = PoolCatalogues(state)
    nodes = _nodes(state, offered)
    places = _places(state)
    leaving = _leaving(state, nodes, places)
    bound = _bound(state, pods, {**places, **{node.name: node.name for node in leaving}})
    daemonsets = sorted(facts.daemonsets.values(), key=lambda d: (d.namespace, d.name, d.uid))
    daemons = [daemon_shape(state, daemonset) for daemonset in daemonsets]
    asked_for = {p.shape for p in pods} | {p.shape for p in bound} | set(daemons)
    shapes = {digest: state.ix.blobs.shape(digest) for digest in sorted(asked_for)}
    pools = tuple(_pool(state, name, offered) for name in sorted(facts.pools))
    digests = sorted({p.catalogue for p in pools if p.catalogue})
    targets, devices = facts.targets, device_facts(state)
    return Problem(
        pods=tuple(
            PendingPod(
                p.uid,
                p.namespace,
                p.name,
                p.shape,
                p.created,
                targets.get(p.uid, ""),
                p.uid in of_buffers,
                devices.claims_of(p, shapes[p.shape]) if devices is not None else (),
                bool(p.node),
            )
            for p in pods
        ),
        shapes=shapes,
        pools=pools,
        catalogues={digest: state.ix.blobs.catalogue(digest) for digest in digests},
        nodes=nodes,
        daemons=tuple(daemons),
        namespaces=tuple(facts.namespaces[name] for name in sorted(facts.namespaces)),
        unavailable=unavailable(state, now),
        settings=facts.settings,
        bound=bound,
        leaving=leaving if bound else (),
        volumes=volume_facts(state),
        devices=devices,
    )


def waiting_pods(state: State, now: int) -> list[Pod]:
    """S-41, S-46: pods without a node, in a burst those too that the scheduler has not come to; then the pods of nodes
    that are going; each by namespace and name."""
    facts = state.facts
    waiting = [*(facts.pods[uid] for uid in state.ix.pending), *untried_pods(state, now)]
    pending = sorted(waiting, key=lambda p: (p.namespace, p.name, p.uid))
    going = [
        pod
        for name in sorted(state.ix.going)
        if facts.claims[name].node
        for pod in _moving(state, facts.claims[name], now)
    ]
    return pending + going


def buffer_pods(state: State) -> list[Pod]:
    """The pods that CapacityBuffers stand for (S-45, S-179)."""
    facts, blobs = state.facts, state.ix.blobs
    if not keeps_room(facts):
        return []
    buffers = [facts.buffers[key] for key in sorted(facts.buffers)]
    pods, shapes = virtual_pods(buffers, BufferSources(facts.pod_templates, facts.workloads, blobs.shape))
    for digest, shape in shapes.items():
        blobs.offer(digest, shape)
    return pods


def _of_this_pass(state: State, pods: list[Pod]) -> list[Pod]:
    """All, or if the pass before had not steps enough, those that it left and those that have a place by a plan: these
    keep it (and their part of its room)."""
    facts = state.facts
    if not facts.rest:
        return pods
    rest = frozenset(facts.rest)
    return [pod for pod in pods if pod.uid in rest or pod.uid in facts.targets]


def spread_by_default(state: State, pods: list[Pod]) -> list[Pod]:
    """The pods with the default topology spread, where they have none of their own (S-150)."""
    facts, blobs = state.facts, state.ix.blobs
    if not facts.settings.default_spread:
        return pods
    shapes = {digest: blobs.shape(digest) for digest in sorted({pod.shape for pod in pods})}
    sources = SelectorSources(tuple(facts.services[key] for key in sorted(facts.services)), facts.workloads)
    spread_pods, new_shapes = with_default_spread(pods, shapes, facts.settings.default_spread, sources)
    for digest, shape in new_shapes.items():
        blobs.offer(digest, shape)
    return spread_pods


def _moving(state: State, claim: NodeClaim, now: int) -> list[Pod]:
    """The pods of a going node that will leave it: all of them by its deadline or its interruption; without either not
    those that nobody may evict (S-48, S-49), for whom a new node would stand empty."""
    pods = going_pods(state, claim)
    if claim.deadline is not None or claim.interruption:
        return pods
    shapes = {pod.shape: state.ix.blobs.shape(pod.shape) for pod in pods}
    budgets = tuple(sorted(state.facts.pdbs.values(), key=lambda b: (b.namespace, b.name, b.uid)))
    rules = EvictionRules(shapes, budgets, now)
    return [pod for pod in pods if rules.moves(pod)]


def _bound(state: State, moving: list[Pod], places: dict[str, str]) -> tuple[BoundPod, ...]:
    """The pods that topology counts where they are (S-119, S-131), and whose volumes take their part of a node's limits
    (S-159); none if no pod of the pass can notice them.

    `moving`: the pods of this pass; `places`: Node → name of its NodeInput."""
    blobs, facts = state.ix.blobs, state.facts
    here = {p.uid for p in moving}
    bound_pods = [
        p
        for name in sorted(places)
        for p in (facts.pods[uid] for uid in state.ix.pods_by_node.get(name, {}))
        if not is_terminal(p) and p.uid not in here
    ]
    limited = any(node.limits for node in facts.csi_nodes.values())
    asks = any(_notices_other_pods(blobs.shape(digest), limited) for digest in sorted({p.shape for p in moving}))
    if not asks and not any(blobs.shape(digest).anti_affinity for digest in sorted({p.shape for p in bound_pods})):
        return ()
    bound_pods.sort(key=lambda p: (p.namespace, p.name, p.uid))
    return tuple(BoundPod(p.uid, p.namespace, p.shape, places[p.node], bool(p.deleting), p.name) for p in bound_pods)


def _notices_other_pods(shape: PodShape, limited: bool) -> bool:
    """Whether it matters to the pod which others are where; `limited`: some node takes so many volumes only."""
    return bool(shape.spread or shape.affinity or shape.anti_affinity or (limited and shape.volumes))


def unavailable(state: State, now: int) -> frozenset[tuple[str, str, str]]:
    """A-212: (capacity type, instance type, zone) without capacity at `now`."""
    offerings = []
    for key, until in state.facts.unavailable.items():
        if until > now:
            kind, name, zone = key.split("|")
            offerings.append((kind, name, zone))
    return frozenset(offerings)


# ── NodePools ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _pool(state: State, name: str, offered: PoolCatalogues) -> PoolInput:
    """Ready (S-61) is one that is valid (L-252) and whose NodeClass is ready (L-253). What the object says of it is
    kerf's own writing of a moment ago; of a new one it says nothing."""
    facts = state.facts
    pool = facts.pools[name]
    ref = pool.node_class
    node_class = facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
    if node_class is None or not node_class.ready or violations(pool):
        pool = msgspec.structs.replace(pool, ready=False)
    return PoolInput(pool=pool, catalogue=offered.of(name), usage=_usage(state, name, offered))


def _usage(state: State, pool: str, offered: PoolCatalogues) -> Resources:
    """S-68: what the pool's nodes that are not on their way out have, with `nodes` counted."""
    total: Counter[str] = Counter()
    for claim in state.facts.claims.values():
        if claim.node_pool == pool and claim.state not in GOING:
            total.update(_counted_capacity(claim, state, offered))
            total["nodes"] += 1
    return dict(sorted(total.items()))


def _counted_capacity(claim: NodeClaim, state: State, offered: PoolCatalogues) -> Resources:
    """The capacity that counts against limits: for a claim in flight the largest it may still become (S-70)."""
    return offered.over_types(claim, largest=True) if claim.state == REQUESTED else capacity_of(claim, state)


def capacity_of(claim: NodeClaim, state: State) -> Resources:
    """S-73, L-266: what the Node of a launched claim reports; until it is initialized, what it does not report yet is
    what the catalogue promised."""
    node = node_of(claim, state)
    if node is None or not node.capacity:
        return claim.capacity
    if claim.initialized:
        return node.capacity
    return {**claim.capacity, **{name: amount for name, amount in node.capacity.items() if amount}}


# ── nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _nodes(state: State, offered: PoolCatalogues) -> tuple[NodeInput, ...]:
    """S-71: everything that exists or is on its way and is not marked for deletion. A Node of a NodePool without a
    NodeClaim is no place for pods (unlike S-71): its instance belongs to nobody and is ended (L-238)."""
    facts, ix = state.facts, state.ix
    node_inputs = []
    for name in sorted(facts.claims):
        claim = facts.claims[name]
        if claim.state not in GOING and claim.instance_status not in ENDED:
            node_inputs.append(_managed_node(claim, node_of(claim, state), state, offered))
    for name in sorted(facts.nodes):
        node = facts.nodes[name]
        if name not in ix.claim_by_node and not node.deleting and not node.labels.get(lbl.NODEPOOL):
            node_inputs.append(_node_input(node.name, "", node.labels, node, state, node.allocatable, node.taints))
    return _reuse_known(node_inputs, state)


def _reuse_known(nodes: list[NodeInput], state: State) -> tuple[NodeInput, ...]:
    """For nodes that equal those of the problem before these themselves, with what has been compiled of them: from one
    pass to the next few change."""
    before: dict[str, NodeInput] = state.ix.node_inputs
    kept = tuple(known if (known := before.get(node.name)) == node else node for node in nodes)
    state.ix.node_inputs = {each.name: each for each in kept}
    return kept


def _places(state: State) -> dict[str, str]:
    """Node → the name of the NodeInput that stands for it (S-71)."""
    facts, ix = state.facts, state.ix
    places = {name: name for name in facts.nodes if name not in ix.claim_by_node}
    for name, owner in ix.claim_by_node.items():
        claim = facts.claims[owner]
        if claim.state not in GOING:
            places[name] = name if claim.registered or claim.initialized else claim.name
    return places


def _leaving(state: State, nodes: tuple[NodeInput, ...], places: dict[str, str]) -> tuple[NodeInput, ...]:
    """Nodes that are no places: those marked for deletion (S-50), and those whose instance is over or belongs to no
    NodeClaim. What stays on them still counts (S-119, S-131)."""
    there = {node.name for node in nodes}
    leaving = (node for name, node in sorted(state.facts.nodes.items()) if places.get(name) not in there)
    return tuple(NodeInput(node.name, "", node.labels, node.taints, {}) for node in leaving)


def _managed_node(claim: NodeClaim, node: Node | None, state: State, offered: PoolCatalogues) -> NodeInput:
    """By its Node as far as that is there (S-71 to S-73), else by what the claim promises."""
    if node is not None and claim.initialized:
        return _node_input(node.name, claim.name, node.labels, node, state, node.allocatable, node.taints)
    promised = counting_taints(claim.taints, claim.startup_taints)
    if claim.state == REQUESTED:
        room = offered.over_types(claim, largest=False)
        return NodeInput(claim.name, claim.name, claim.labels, promised, room, initialized=False,
                         requirements=claim.requirements)  # fmt: skip
    if node is None:
        return NodeInput(claim.name, claim.name, claim.labels, promised, claim.allocatable, initialized=False)
    allocatable = {**claim.allocatable, **{k: v for k, v in node.allocatable.items() if v}}  # S-73
    if claim.registered:
        taints = counting_taints(node.taints, claim.startup_taints)
        return _node_input(node.name, claim.name, node.labels, node, state, allocatable, taints, initialized=False)
    return _node_input(claim.name, claim.name, claim.labels, node, state, allocatable, promised, initialized=False)


def _node_input(
    name: str,
    claim: str,
    labels: dict[str, str],
    node: Node,
    state: State,
    allocatable: Resources,
    taints: tuple[Taint, ...],
    *,
    initialized: bool = True,
) -> NodeInput:
    here = on_node(state, node.name)
    available = {resource: amount - here.used.get(resource, 0) for resource, amount in allocatable.items()}
    return NodeInput(
        name=name,
        claim=claim,
        labels=labels,
        taints=taints,
        available=available,
        initialized=initialized,
        bound_daemons=here.daemons,
        host_ports=here.ports,
        assumed=here.assumed,
        total=scored(allocatable),
    )
