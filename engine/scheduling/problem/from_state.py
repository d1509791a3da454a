"""Ask the provisioning question: make a `Problem` from the state (S-40…S-51, S-61…S-78)."""

from __future__ import annotations

import msgspec

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodepool_validation import violations
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources, Taint, scored
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.ephemeral_taints import counting_taints
from kerf.engine.nodeclaim.state_table import GOING, REQUESTED
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.made_once import once
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.problem.beside_held_pods import beside_held_pods
from kerf.engine.scheduling.problem.capacity_buffers import BufferSources, virtual_pods
from kerf.engine.scheduling.problem.default_spread import SelectorSources, with_default_spread
from kerf.engine.scheduling.problem.departing_pods import departing_pods, waiting_nodes
from kerf.engine.scheduling.problem.problem import Beside, BoundPod, NodeInput, PendingPod, PoolInput, Problem
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.nodeclaims.unavailable import unavailable, unavailable_to
from kerf.engine.state.objects.daemonsets import daemon_shape
from kerf.engine.state.objects.devices import device_facts
from kerf.engine.state.objects.volumes import volume_facts
from kerf.engine.state.pods.bursts import untried_pods
from kerf.engine.state.pods.on_node import pods_on_node
from kerf.engine.state.provisioning_window import has_active_buffers
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
    shapes = {digest: state.indexes.blobs.shape(digest) for digest in sorted(asked_for)}
    pools = _pools(state, offered, now)
    beside = _beside_held(state, now, pods, bound, leaving, shapes)
    digests = sorted({p.catalogue for p in pools if p.catalogue})
    targets, devices = facts.targets, device_facts(state)
    return Problem(
        pods=tuple(
            PendingPod(
                p.uid,
                p.namespace,
                p.name,
                _shape_to_place(state, p.shape, beside.get(p.uid), shapes),
                p.created,
                targets.get(p.uid, ""),
                p.uid in of_buffers,
                devices.claims_of(p, shapes[p.shape]) if devices is not None else (),
                bool(p.node) or p.uid in beside,
                arrival=p.arrival,
                beside=beside.get(p.uid),
            )
            for p in pods
        ),
        shapes=shapes,
        pools=pools,
        catalogues={digest: state.indexes.blobs.catalogue(digest) for digest in digests},
        nodes=nodes,
        daemons=tuple(daemons),
        namespaces=tuple(facts.namespaces[name] for name in sorted(facts.namespaces)),
        unavailable=unavailable(facts, now),
        settings=facts.settings,
        bound=bound,
        leaving=leaving if bound else (),
        volumes=volume_facts(state),
        devices=devices,
    )


def without_doubted(problem: Problem, state: State, now: int) -> Problem:
    """The question without the offerings that are in doubt (`state.nodeclaims.unavailable`)."""
    facts = state.facts
    return msgspec.structs.replace(
        problem,
        unavailable=problem.unavailable | unavailable(facts, now, in_doubt=True),
        pools=tuple(
            msgspec.structs.replace(
                given, unavailable=unavailable_to(facts, given.pool.node_class.key, now, in_doubt=True)
            )
            for given in problem.pools
        ),
    )


def waiting_pods(state: State, now: int) -> list[Pod]:
    """The pods that need a place (S-41, S-46): pods without a node, in a burst also those that the scheduler has not
    tried yet; then those pods of going nodes that can leave soon. Each group is ordered by namespace and name."""
    facts = state.facts
    waiting = [*(facts.pods[uid] for uid in state.indexes.pending), *untried_pods(state, now)]
    pending = sorted(waiting, key=lambda p: (p.namespace, p.name, p.uid))
    going = [pod for pods in departing_pods(state, now).values() for pod in pods]
    return pending + going


def buffer_pods(state: State) -> list[Pod]:
    """The pods that CapacityBuffers stand for (S-45, S-179)."""
    facts, blobs = state.facts, state.indexes.blobs
    if not has_active_buffers(facts):
        return []
    buffers = [facts.buffers[key] for key in sorted(facts.buffers)]
    pods, shapes = virtual_pods(buffers, BufferSources(facts.pod_templates, facts.workloads, blobs.shape))
    for digest, shape in shapes.items():
        blobs.offer(digest, shape)
    return pods


def _of_this_pass(state: State, pods: list[Pod]) -> list[Pod]:
    """All pods; or, when the pass before ran out of steps, the pods that it left and those that its plan has a place
    for. The latter keep their place, and so their share of its room."""
    facts = state.facts
    if not facts.rest:
        return pods
    rest = frozenset(facts.rest)
    return [pod for pod in pods if pod.uid in rest or pod.uid in facts.targets]


def spread_by_default(state: State, pods: list[Pod]) -> list[Pod]:
    """The pods with the default topology spread, where they have none of their own (S-150)."""
    facts, blobs = state.facts, state.indexes.blobs
    if not facts.settings.default_spread:
        return pods
    shapes = {digest: blobs.shape(digest) for digest in sorted({pod.shape for pod in pods})}
    sources = SelectorSources(tuple(facts.services[key] for key in sorted(facts.services)), facts.workloads)
    spread_pods, new_shapes = with_default_spread(pods, shapes, facts.settings.default_spread, sources)
    for digest, shape in new_shapes.items():
        blobs.offer(digest, shape)
    return spread_pods


def _bound(state: State, moving: list[Pod], places: dict[str, str]) -> tuple[BoundPod, ...]:
    """The bound pods that topology counts (S-119, S-131) and whose volumes count against a node's limits (S-159). None
    if no pod of the pass depends on them.

    `moving`: the pods of this pass; `places`: the NodeInput's name for each Node.
    """
    blobs, facts = state.indexes.blobs, state.facts
    here = {p.uid for p in moving}
    on_places = [pods_on_node(state, name) for name in sorted(places)]
    limited = any(node.limits for node in facts.csi_nodes.values())
    asks = any(_notices_other_pods(blobs.shape(digest), limited) for digest in sorted({p.shape for p in moving}))
    shapes = frozenset[str]().union(*(on_place.shapes for on_place in on_places))
    if not asks and not any(blobs.shape(digest).anti_affinity for digest in sorted(shapes)):
        return ()
    bound_pods = [p for on_place in on_places for p in on_place.pods if p.uid not in here]
    bound_pods.sort(key=lambda p: (p.namespace, p.name, p.uid))
    return tuple(BoundPod(p.uid, p.namespace, p.shape, places[p.node], bool(p.deleting), p.name) for p in bound_pods)


def _beside_held(
    state: State,
    now: int,
    pods: list[Pod],
    bound: tuple[BoundPod, ...],
    leaving: tuple[NodeInput, ...],
    shapes: dict[str, PodShape],
) -> dict[str, Beside]:
    """The pods (uids) that can run only beside pods which PodDisruptionBudgets keep on going nodes (S-46, S-49)."""
    budgets = sorted(state.facts.pdbs.values(), key=lambda budget: (budget.namespace, budget.name, budget.uid))
    waiting = waiting_nodes(state, now) if budgets else {}
    on_node = {node.name: node for node in leaving if node.name in waiting}
    if not on_node:
        return {}
    places = {pod.uid: on_node[pod.node] for pod in pods if pod.node in on_node}
    rules = EvictionRules(shapes, tuple(budgets), now)
    return beside_held_pods(pods, places, bound, rules, tuple(state.facts.namespaces.values()))


def _shape_to_place(state: State, digest: str, beside: Beside | None, shapes: dict[str, PodShape]) -> str:
    """The digest of the shape of a pod that can run only `beside` others; it is added to `shapes`."""
    if beside is None:
        return digest
    shape = beside.shape(shapes[digest])
    name = content(shape)[0]
    shapes[name] = shape
    state.indexes.blobs.offer(name, shape)
    return name


def _notices_other_pods(shape: PodShape, limited: bool) -> bool:
    """Whether it matters to the pod where others are. `limited`: some node limits its volumes."""
    return bool(shape.spread or shape.affinity or shape.anti_affinity or (limited and shape.volumes))


# ── NodePools ──────────────────────────────────────────────────────────────────────────────────────────────────────


def pool_inputs(state: State, now: int) -> tuple[PoolInput, ...]:
    """The NodePools of the question that `problem_of` asks, by name."""
    return _pools(state, PoolCatalogues(state), now)


def _pools(state: State, offered: PoolCatalogues, now: int) -> tuple[PoolInput, ...]:
    return tuple(_pool(state, name, offered, now) for name in sorted(state.facts.pools))


def _pool(state: State, name: str, offered: PoolCatalogues, now: int) -> PoolInput:
    """The NodePool as an input. It is ready (S-61) if it is valid (L-252) and its NodeClass is ready (L-253). The
    object's own condition is not used: kerf wrote it a moment ago, and a new object has none."""
    facts = state.facts
    pool = facts.pools[name]
    key = pool.node_class.key
    node_class = facts.node_classes.get(key)
    invalid = once(pool, "violations", lambda: violations(facts.pools[name]))
    if node_class is None or not node_class.ready or invalid:
        pool = msgspec.structs.replace(pool, ready=False)
    health = facts.health.get(name)
    withheld = health.withheld if health is not None else ()
    return PoolInput(
        pool=pool,
        catalogue=offered.of(name),
        usage=_usage(state, name, offered),
        withheld=withheld,
        unavailable=unavailable_to(facts, key, now),
    )


def _usage(state: State, pool: str, offered: PoolCatalogues) -> Resources:
    """What counts against the limits of a NodePool (S-68): the capacity of its nodes that are not going, and their
    number as `nodes`."""
    counted = [claim for claim in state.facts.claims.values() if claim.node_pool == pool and claim.state not in GOING]
    used = total(_counted_capacity(claim, state, offered) for claim in counted)
    if counted:
        used["nodes"] = used.get("nodes", 0) + len(counted)
    return dict(sorted(used.items()))


def _counted_capacity(claim: NodeClaim, state: State, offered: PoolCatalogues) -> Resources:
    """The capacity that counts against limits: for a claim in flight the largest it may still become (S-70)."""
    return offered.over_types(claim, largest=True) if claim.state == REQUESTED else capacity_of(claim, state)


def capacity_of(claim: NodeClaim, state: State) -> Resources:
    """What the Node of a launched claim reports (S-73, L-266). Until the node is initialized, the catalogue's promise
    stands in for what is not reported yet."""
    node = node_of(claim, state)
    if node is None or not node.capacity:
        return claim.capacity
    if claim.initialized:
        return node.capacity
    return {**claim.capacity, **{name: amount for name, amount in node.capacity.items() if amount}}


# ── nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _nodes(state: State, offered: PoolCatalogues) -> tuple[NodeInput, ...]:
    """Every node that exists or is on its way and is not marked for deletion (S-71). Unlike S-71, a Node that carries a
    NodePool's label but belongs to no NodeClaim takes no pods: its instance is going to be ended (L-238)."""
    facts, indexes = state.facts, state.indexes
    node_inputs = []
    for name in sorted(facts.claims):
        claim = facts.claims[name]
        if claim.state not in GOING and claim.instance_status not in ENDED:
            node_inputs.append(_managed_node(claim, node_of(claim, state), state, offered))
    for name in sorted(facts.nodes):
        node = facts.nodes[name]
        if name not in indexes.claim_by_node and not node.deleting and not node.labels.get(lbl.NODEPOOL):
            node_inputs.append(_in_service("", node, state))
    return _reuse_known(node_inputs, state)


def _reuse_known(nodes: list[NodeInput], state: State) -> tuple[NodeInput, ...]:
    """Replace nodes that have not changed by those of the problem before, which keep what was compiled of them. From
    one pass to the next few nodes change."""
    before: dict[str, NodeInput] = state.indexes.node_inputs
    kept = tuple(known if (known := before.get(node.name)) is node or known == node else node for node in nodes)
    state.indexes.node_inputs = {node_input.name: node_input for node_input in kept}
    return kept


def _places(state: State) -> dict[str, str]:
    """For each Node, the name of the NodeInput that stands for it (S-71)."""
    facts, indexes = state.facts, state.indexes
    places = {name: name for name in facts.nodes if name not in indexes.claim_by_node}
    for name, owner in indexes.claim_by_node.items():
        claim = facts.claims[owner]
        if claim.state not in GOING:
            places[name] = name if claim.registered or claim.initialized else claim.name
    return places


def _leaving(state: State, nodes: tuple[NodeInput, ...], places: dict[str, str]) -> tuple[NodeInput, ...]:
    """Nodes that take no pods: those marked for deletion (S-50), and those whose instance has ended or belongs to no
    NodeClaim. The pods that stay on them still count (S-119, S-131)."""
    there = {node.name for node in nodes}
    leaving = (node for name, node in sorted(state.facts.nodes.items()) if places.get(name) not in there)
    return tuple(NodeInput(node.name, "", node.labels, node.taints, {}) for node in leaving)


def _managed_node(claim: NodeClaim, node: Node | None, state: State, offered: PoolCatalogues) -> NodeInput:
    """A claim's node: as its Node reports it (S-71 to S-73), else as the claim promises it."""
    if node is not None and claim.initialized:
        return _in_service(claim.name, node, state)
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


def _in_service(claim: str, node: Node, state: State) -> NodeInput:
    """A node as its Node reports it. It is made anew only if the Node or its pods have changed."""
    here = pods_on_node(state, node.name)
    made = here.made_for
    if not made or made[0] is not node or made[1].claim != claim:
        found = _node_input(node.name, claim, node.labels, node, state, node.allocatable, node.taints)
        made[:] = node, found
    known: NodeInput = made[1]
    return known


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
    here = pods_on_node(state, node.name)
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
