"""Karpenter's gauges of the cluster, from the state (L-376 to L-394; M-8, M-9, M-26).

All are made anew each time (L-363), so what is gone has no series any more. CPU is in cores, all else in base units.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.disruption.budgets import Use, allowance
from kerf.engine.disruption.moves.budget_headroom import budget_use
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import BUDGET_REASONS
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, Resources
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State
from kerf.projections.metrics.counter_definitions import PREFIX
from kerf.projections.metrics.counters import RecordCounters
from kerf.projections.metrics.families import GAUGE, Family
from kerf.projections.status.nodepool import nodepool_status

_NODE_LABELS: tuple[tuple[str, str], ...] = (
    ("nodepool", lbl.NODEPOOL), ("capacity_type", lbl.CAPACITY_TYPE), ("zone", lbl.ZONE), ("region", lbl.REGION),
    ("instance_type", lbl.INSTANCE_TYPE), ("arch", lbl.ARCH), ("os", lbl.OS),
    ("windows_build", lbl.WINDOWS_BUILD),
)  # fmt: skip
"""The labels of metrics about nodes (N in L-364), and the node label that each value comes from."""
_OF_PROVIDERS: dict[str, tuple[str, ...]] = {
    "aws": tuple(sorted(lbl.AWS_WELL_KNOWN - {lbl.WINDOWS_BUILD})), "kwok": tuple(sorted(lbl.KWOK_WELL_KNOWN)),
}  # fmt: skip
"""The well-known node labels of a provider (A-68). Of a node's metrics only its age has them: with them a sample is
three times as long, and there are some thirty of each node."""
_NODE_LABEL_NAMES = ("node_name", "phase", "managed", *(name for name, _ in _NODE_LABELS))
_POD = (
    "name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type",
    "phase", "ready", "managed",
)  # fmt: skip


def cluster_gauges(state: State, metrics: RecordCounters, now: int) -> list[Family]:
    """Return all gauges; `now` is in ms since the epoch."""
    of_provider = _OF_PROVIDERS[metrics.provider]
    return [*_nodes(state, of_provider, now), *_pools(state, now), *_pods(state), *_waiting(metrics, now)]


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(PREFIX + name, GAUGE, text, labels)


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _nodes(state: State, of_provider: tuple[str, ...], now: int) -> list[Family]:
    by_resource = (*_NODE_LABEL_NAMES, "resource_type")
    allocatable = _gauge("nodes_allocatable", "What nodes have for pods.", *by_resource)
    requests = _gauge("nodes_total_pod_requests", "What the pods of nodes ask for.", *by_resource)
    daemons = _gauge("nodes_total_daemon_requests", "What the DaemonSet pods of nodes ask for.", *by_resource)
    overhead = _gauge("nodes_system_overhead", "What nodes keep for themselves.", *by_resource)
    more = [_resource(key.rpartition("/")[2]) for key in of_provider]
    age = _gauge("nodes_current_lifetime_seconds", "The age of nodes.", *_NODE_LABEL_NAMES, *more)
    used_percent = _gauge("cluster_utilization_percent", "Share of all nodes that is asked for.", "resource_type")
    count = _gauge("cluster_state_node_count", "Nodes and NodeClaims without one yet.")
    all_allocatable, all_requests = [], []
    for node in state.facts.nodes.values():
        labels = _node_labels(node, state)
        pods = [state.facts.pods[uid] for uid in state.indexes.pods_by_node.get(node.name, ())]
        asked, of_daemons = _requests(pods, state), _requests(filter(_is_daemon, pods), state)
        _set_amounts(allocatable, node.allocatable, labels)
        _set_amounts(requests, asked, labels)
        _set_amounts(daemons, of_daemons, labels)
        _set_amounts(overhead, {k: v - node.allocatable.get(k, 0) for k, v in node.capacity.items()}, labels)
        own = (node.labels.get(key, "") for key in of_provider)
        age.set(max(0, now - node.created) / 1000, *labels, *own)
        all_allocatable.append(node.allocatable)
        all_requests.append(asked)
    there, asked = total(all_allocatable), total(all_requests)
    for name, amount in there.items():
        if amount:
            used_percent.set(100 * asked.get(name, 0) / amount, _resource(name))
    without = sum(node_of(claim, state) is None for claim in state.facts.claims.values())
    count.set(len(state.facts.nodes) + without)
    return [allocatable, requests, daemons, overhead, age, used_percent, count]


def _node_labels(node: Node, state: State) -> tuple[str, ...]:
    managed = state.indexes.claim_by_provider.get(node.provider_id) if node.provider_id else None
    phase = "Terminated" if node.deleting else "Ready" if node.ready else "NotReady"
    return (node.name, phase, str(managed is not None).lower(), *(node.labels.get(key, "") for _, key in _NODE_LABELS))


def _requests(pods: Iterable[Pod], state: State) -> Resources:
    return total({**state.indexes.blobs.shape(pod.shape).requests, "pods": 1} for pod in pods)


def _is_daemon(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind == "apps/v1/DaemonSet"


def _set_amounts(family: Family, amounts: Resources, labels: tuple[str, ...]) -> None:
    for name, amount in amounts.items():
        family.set(amount / 1000 if name == "cpu" else amount, *labels, _resource(name))


def _resource(name: str) -> str:
    return name.lower().replace("-", "_")


# ── NodePools ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _pools(state: State, now: int) -> list[Family]:
    limit = _gauge("nodepools_limit", "spec.limits of NodePools.", "resource_type", "nodepool")
    usage = _gauge("nodepools_usage", "status.resources of NodePools.", "resource_type", "nodepool")
    cost = _gauge("nodepools_cost_total", "What the nodes of NodePools cost, USD an hour.", "nodepool")
    allowed = _gauge("nodepools_allowed_disruptions", "Nodes that budgets let go at once.", "nodepool", "reason")
    consuming = _gauge("nodepools_nodes_consuming_budgets", "Nodes that count for it.", "nodepool", "reason")
    claims: dict[str, list[NodeClaim]] = {}
    uses = budget_use(state)
    for claim in state.facts.claims.values():
        claims.setdefault(claim.node_pool, []).append(claim)
    for name, pool in state.facts.pools.items():
        own = claims.get(name, [])
        for resource, amount in (pool.limits or {}).items():
            limit.set(amount / 1000 if resource == "cpu" else amount, _resource(resource), name)
        for resource, amount in nodepool_status(state, name).resources.items():
            usage.set(amount / 1000 if resource == "cpu" else amount, _resource(resource), name)
        cost.set(sum(claim.price for claim in own), name)
        use = uses.get(name, Use())
        for reason in BUDGET_REASONS:
            allowed.set(allowance(pool, reason, use.total, now).nodes, name, reason.karpenter)
            consuming.set(use.consuming, name, reason.karpenter)
    return [limit, usage, cost, allowed, consuming]


# ── pods ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pods(state: State) -> list[Family]:
    family = _gauge("pods_state", "One for each pod, with what it is and where.", *_POD)
    for pod in state.facts.pods.values():
        node = state.facts.nodes.get(pod.node)
        of_node = node.labels if node is not None else {}
        managed = node is not None and node.provider_id in state.indexes.claim_by_provider
        keys = (lbl.NODEPOOL, lbl.ZONE, lbl.ARCH, lbl.CAPACITY_TYPE, lbl.INSTANCE_TYPE)
        family.set(
            1, pod.name, pod.namespace, _owner(pod), pod.node, _flag(bool(pod.node)),
            *(of_node.get(key, "") for key in keys), pod.phase, _flag(pod.ready), _flag(managed),
        )  # fmt: skip
    return [family]


def _owner(pod: Pod) -> str:
    """The path of a pod's owner, as the metric `pods_state` has it (L-388)."""
    if pod.owner is None:
        return ""
    version, _, kind = pod.owner.kind.rpartition("/")
    return f"/apis/{version}/namespaces/{pod.namespace}/{kind.lower()}s/{pod.owner.name}"


def _flag(value: bool) -> str:
    return str(value).lower()


def _waiting(metrics: RecordCounters, now: int) -> list[Family]:
    """How long each waiting pod has been without a node, a start, a plan (L-391, L-393, L-394, L-400)."""
    labels = ("name", "namespace")
    unbound = _gauge("pods_unbound_time_seconds", "How long pods have had no node.", *labels)
    unstarted = _gauge("pods_unstarted_time_seconds", "How long pods have not been ready.", *labels)
    planned_unbound = _gauge("pods_provisioning_unbound_time_seconds", "… since they were planned for.", *labels)
    planned_unstarted = _gauge("pods_provisioning_unstarted_time_seconds", "… since they were planned for.", *labels)
    undecided = _gauge(
        "pods_provisioning_scheduling_undecided_time_seconds", "How long pods have been seen and no plan made.", *labels
    )
    queue = _gauge("scheduler_queue_depth", "Pods that are seen and wait for the next plan.", "controller")
    queue.set(sum(bool(pod.seen) and not (pod.tried or pod.bound) for pod in metrics.waiting().values()), "provisioner")
    for pod in metrics.waiting().values():
        namespace, name = pod.key
        unstarted.set(max(0, now - pod.created) / 1000, name, namespace)
        if pod.planned:
            planned_unstarted.set(max(0, now - pod.planned) / 1000, name, namespace)
        if pod.bound:
            continue
        unbound.set(max(0, now - pod.created) / 1000, name, namespace)
        if pod.planned:
            planned_unbound.set(max(0, now - pod.planned) / 1000, name, namespace)
        elif pod.seen and not pod.tried:
            undecided.set(max(0, now - pod.seen) / 1000, name, namespace)
    return [unbound, unstarted, planned_unbound, planned_unstarted, undecided, queue]
