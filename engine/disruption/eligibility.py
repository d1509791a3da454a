"""Eligibility: which nodes a disruption method may take at all, and why it may not take the others (D-28…D-35, D-59,
D-67)."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.disruption_cost import NODE_COST, node_price, rescheduling_cost, savings_ratio
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, INSTANCE_TYPE, NODEPOOL, ZONE
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.made_once import once

WHEN_EMPTY = "WhenEmpty"


class Candidate(Struct, frozen=True, dict=True):
    """A node that may be disrupted (D-33).

    `pods` are its reschedulable pods, `price` is in USD per hour (D-34), `cost` is its rescheduling cost (D-38). With
    `strict`, only a node without such pods is empty.
    """

    node: ClusterNode
    pool: NodePool
    instance_type: InstanceType | None
    pods: tuple[Pod, ...]
    price: float
    cost: float
    strict: bool = False

    @cached_property
    def name(self) -> str:
        return self.node.name

    @property
    def capacity_type(self) -> str:
        return self.node.labels.get(CAPACITY_TYPE, "")

    @property
    def empty(self) -> bool:
        """Whether no pod has a positive eviction cost (D-35)."""
        return not self.pods if self.strict else self.cost <= NODE_COST

    @property
    def ratio(self) -> float:
        return savings_ratio(self.price, self.cost)


def total_price(candidates: Iterable[Candidate]) -> float:
    """What these nodes cost together, USD per hour."""
    return math.fsum(candidate.price for candidate in candidates)


Filter = Callable[[Candidate], Reason | None]


class Candidates(Struct, frozen=True):
    """A method's candidates in their order (D-40), all before the method's own filter, and why each other node is
    none."""

    chosen: tuple[Candidate, ...]
    eligible: tuple[Candidate, ...]
    excluded: dict[str, Reason]


class NodeEligibility(Struct, frozen=True, dict=True):
    """Each node with its candidate, or with the reason why it is none for all methods of a class."""

    judged: tuple[tuple[ClusterNode, Candidate | Reason], ...]

    @cached_property
    def _found(self) -> dict[Filter, Candidates]:
        return {}

    def candidates(self, own: Filter) -> Candidates:
        """The candidates of the method with this filter. Searches of one pass ask the same, and share the answer."""
        found = self._found.get(own)
        if found is None:
            found = self._found[own] = self._filtered(own)
        return found

    def _filtered(self, own: Filter) -> Candidates:
        chosen: list[Candidate] = []
        eligible: list[Candidate] = []
        excluded: dict[str, Reason] = {}
        for node, found in self.judged:
            if isinstance(found, Reason):
                excluded[node.name] = found
                continue
            eligible.append(found)
            why = own(found)
            if why is None:
                chosen.append(found)
            else:
                excluded[node.name] = why
        return Candidates(ordered(chosen), tuple(eligible), dict(sorted(excluded.items())))


def judge_nodes(cluster: Cluster, *, eventual: bool = False, claims: Container[str] | None = None) -> NodeEligibility:
    """Each node's candidate, or why it is none, as far as that is the same for all methods of a class (D-31).

    `claims` limits it to the nodes of these claims; None means all.
    """
    types = cluster.types()
    nodes = cluster.nodes if claims is None else [node for node in cluster.nodes if node.place.claim in claims]
    return NodeEligibility(tuple([(node, judge_node(node, cluster, eventual=eventual, types=types)) for node in nodes]))


def find_candidates(
    cluster: Cluster, own: Filter, *, eventual: bool = False, known: NodeEligibility | None = None
) -> Candidates:
    """A method's candidates.

    `own` is the method's filter, `eventual` its class (D-31), `known` what `judge_nodes` says, if that is known.
    """
    return (judge_nodes(cluster, eventual=eventual) if known is None else known).candidates(own)


def ordered(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Candidates by savings ratio, highest first, then by name (D-40)."""
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.ratio, candidate.name)))


def judge_node(
    node: ClusterNode,
    cluster: Cluster,
    *,
    eventual: bool = False,
    types: Mapping[str, Mapping[str, InstanceType]] | None = None,
    weighed: bool = True,
) -> Candidate | Reason:
    """The node's candidate, or the first check of D-30 that excludes it. `types` are those of the cluster.

    Without `weighed` the candidate's price and cost are 0, which saves looking them up. A cluster that is not live
    needs the cost: there it says whether a node is empty.
    """
    types = cluster.types() if types is None else types
    pool = cluster.pool(node.node_pool)
    why = _unfit(node, cluster.now) or _unknown_pool(node, pool, types)
    if why is None and not (eventual and node.grace_period is not None):  # D-31
        why = _held_by_pods(node, cluster)
    if why is not None or pool is None:
        return why or Reason.of(DisruptionCode.NO_NODEPOOL)
    instance_type = types[pool.name].get(node.labels.get(INSTANCE_TYPE, ""))
    pods = node.reschedulable
    if not weighed and cluster.live:
        return Candidate(node, pool, instance_type, pods, 0.0, 0.0, cluster.live)
    price = node_price(node, instance_type)
    cost = once(node, "cost", lambda: rescheduling_cost(pods, cluster.shapes))
    return Candidate(node, pool, instance_type, pods, price, cost, cluster.live)


def _unfit(node: ClusterNode, now: int) -> Reason | None:
    """Why a node is no candidate by itself: the checks of D-30, steps 1 to 8, and the pause after a failed move
    (D-66)."""
    if node.queued:
        return Reason.of(DisruptionCode.BEING_DISRUPTED)
    if not node.managed:
        return Reason.of(DisruptionCode.NOT_MANAGED)
    if not node.has_node:
        return Reason.of(DisruptionCode.NO_NODE)
    if not node.initialized:
        return Reason.of(DisruptionCode.NOT_INITIALIZED)
    if node.marked:
        return Reason.of(DisruptionCode.GOING)
    if node.nominated:
        return Reason.of(DisruptionCode.NOMINATED)
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return Reason.of(DisruptionCode.DO_NOT_DISRUPT)
    if NODEPOOL not in node.labels:
        return Reason.of(DisruptionCode.NO_NODEPOOL_LABEL, label=NODEPOOL)
    return Reason.of(DisruptionCode.HELD_BACK) if now < node.held_until else None


def _unknown_pool(node: ClusterNode, pool: NodePool | None, types: Container[str]) -> Reason | None:
    """Whether the NodePool is missing or has no instance types (D-30, step 9)."""
    if pool is None:
        return Reason.of(DisruptionCode.NO_NODEPOOL, nodepool=node.node_pool)
    if pool.name not in types:
        return Reason.of(DisruptionCode.NO_INSTANCE_TYPES, nodepool=pool.name)
    return None


def _held_by_pods(node: ClusterNode, cluster: Cluster) -> Reason | None:
    """Whether a pod may not be disrupted, by its annotation or a budget (D-30, steps 11 and 12)."""
    rules = cluster.eviction_rules
    held = [pod for pod in node.shielded if not rules.disruptable(pod)]
    if held:
        return Reason.of(DisruptionCode.POD_DO_NOT_DISRUPT, pod=min(held, key=_by_name).key)
    blocked = (
        [(pod, found) for pod in node.pods if (found := rules.blocked_now(pod))] if rules.pod_disruption_budgets else []
    )
    if blocked:
        pod, budgets = min(blocked, key=lambda each: _by_name(each[0]))
        names = [budget.key for budget in budgets]
        code = DisruptionCode.POD_BUDGET_EXHAUSTED if len(names) == 1 else DisruptionCode.SEVERAL_POD_BUDGETS
        return Reason.of(code, pod=pod.key, budgets=names)
    return None


def _by_name(pod: Pod) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid


# ── what the methods ask beyond that ─────────────────────────────────────────────────────────────────────────────


def emptiness(candidate: Candidate) -> Reason | None:
    """Why a node is not removed as empty, None if it is. A node is empty too if evicting its running pods costs nothing
    (D-59, D-35)."""
    pool = candidate.pool
    if pool.replicas is not None:
        return Reason.of(DisruptionCode.STATIC_NODEPOOL)
    if pool.consolidate_after is None:
        return Reason.of(DisruptionCode.CONSOLIDATE_AFTER_NEVER)
    if candidate.node.buffers:
        return Reason.of(DisruptionCode.HOLDS_BUFFERS, buffers=candidate.node.buffers)
    if not candidate.empty:
        return Reason.of(DisruptionCode.HAS_PODS)
    return None if candidate.node.consolidatable else Reason.of(DisruptionCode.NOT_CONSOLIDATABLE)


def consolidation(candidate: Candidate) -> Reason | None:
    """Why a node is no candidate for multi-node and single-node consolidation, None if it is one (D-67)."""
    pool, labels = candidate.pool, candidate.node.labels
    if pool.replicas is not None:
        return Reason.of(DisruptionCode.STATIC_NODEPOOL)
    if candidate.instance_type is None:
        return Reason.of(DisruptionCode.UNKNOWN_INSTANCE_TYPE, instance_type=labels.get(INSTANCE_TYPE, ""))
    for key in (CAPACITY_TYPE, ZONE):
        if key not in labels:
            return Reason.of(DisruptionCode.MISSING_LABEL, label=key)
    if pool.consolidate_after is None:
        return Reason.of(DisruptionCode.CONSOLIDATE_AFTER_NEVER)
    if candidate.empty:
        return Reason.of(DisruptionReason.EMPTY)
    if pool.consolidation_policy == WHEN_EMPTY:
        return Reason.of(DisruptionCode.POLICY_WHEN_EMPTY)
    return None if candidate.node.consolidatable else Reason.of(DisruptionCode.NOT_CONSOLIDATABLE)


def static_drift(candidate: Candidate) -> Reason | None:
    """Why a node is no candidate for StaticDrift, None if it is one (D-167)."""
    if candidate.pool.replicas is None:
        return Reason.of(DisruptionCode.NOT_STATIC)
    return None if candidate.node.drifted_since else Reason.of(DisruptionCode.NOT_DRIFTED)


def drift(candidate: Candidate) -> Reason | None:
    """Why a node is no candidate for Drift, None if it is one (D-62)."""
    if candidate.pool.replicas is not None:
        return Reason.of(DisruptionCode.STATIC_NODEPOOL)
    return None if candidate.node.drifted_since else Reason.of(DisruptionCode.NOT_DRIFTED)
