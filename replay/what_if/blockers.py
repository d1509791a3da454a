"""Remove what blocks the disruption of a node: for each reason why a node stays, the cluster without it.

Some reasons have no entry here, since no single change removes them: the node's pods need it, it takes pods of others,
it is on its way out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.budgets import UNLIMITED, Use, allowance, budget_usage
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.eligibility import WHEN_EMPTY
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import DO_NOT_DISRUPT
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.explanation_codes import BudgetUseCode, ChangeCode

BEHIND_ALL = -1
"""A weight below that of every NodePool: one without a weight has 0."""
LEAST_RESTRICTIVE_POLICY = "WhenEmptyOrUnderutilized"


class WithoutBlocker(Struct, frozen=True):
    """`change` says what would have to be otherwise; `cluster` is the cluster as it would be then."""

    change: Reason
    cluster: Cluster


RemoveBlocker = Callable[[Cluster, ClusterNode, DisruptionReason], WithoutBlocker | None]
"""Takes the cluster, the node, and the reason by which budgets know the method."""


def without_blocker(
    why: Reason, cluster: Cluster, node: ClusterNode, method: DisruptionReason
) -> WithoutBlocker | None:
    """Return the cluster without what blocks the node, or None if no single change removes it. `method` is the reason
    by which budgets know the method."""
    lifting = _REMOVALS.get(why.code)
    return None if lifting is None else lifting(cluster, node, method)


# ── of the node ────────────────────────────────────────────────────────────────────────────────────────────────────


def _node_annotation(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    left = {key: value for key, value in node.annotations.items() if key != DO_NOT_DISRUPT}
    return WithoutBlocker(Reason.of(ChangeCode.WITHOUT_NODE_ANNOTATION), _with(cluster, node, annotations=left))


def _quiet(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    return WithoutBlocker(Reason.of(ChangeCode.AFTER_CONSOLIDATE_AFTER), _with(cluster, node, consolidatable=True))


def _expected(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    return WithoutBlocker(Reason.of(ChangeCode.WITHOUT_EXPECTED_PODS), _with(cluster, node, nominated=False))


def _held_back(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    return WithoutBlocker(Reason.of(ChangeCode.AFTER_PAUSE), _with(cluster, node, held_until=0))


def _buffers(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    return WithoutBlocker(Reason.of(ChangeCode.WITHOUT_BUFFERS, buffers=node.buffers), _with(cluster, node, buffers=0))


# ── of its pods ────────────────────────────────────────────────────────────────────────────────────────────────────


def _pod_annotations(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    """Remove the annotation from all pods of the node: beside another annotated pod, removing one would change
    nothing."""
    rules = cluster.eviction_rules
    held = [pod for pod in node.pods if not rules.disruptable(pod)]
    free = tuple(replace(pod, do_not_disrupt="") if pod in held else pod for pod in node.pods)
    change = Reason.of(ChangeCode.WITHOUT_POD_ANNOTATION, pods=sorted(pod.key for pod in held))
    return WithoutBlocker(change, _with(cluster, node, pods=free))


def _pod_budgets(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    """Drop the PodDisruptionBudgets that let no pod of the node be evicted."""
    rules = cluster.eviction_rules
    holding = {budget.uid: budget for pod in node.pods for budget in rules.blocked_now(pod)}
    named = sorted((budget.key, _terms(budget)) for budget in holding.values())
    left = tuple(budget for budget in cluster.pod_disruption_budgets if budget.uid not in holding)
    names, terms = [name for name, _ in named], [said for _, said in named]
    several = any(len(rules.matching(pod)) > 1 for pod in node.pods)  # the API evicts no such pod, whatever they allow
    code = ChangeCode.UNDER_ONE_POD_BUDGET if several else ChangeCode.WITHOUT_POD_BUDGET
    change = Reason.of(code, budgets=names, terms=terms)
    return WithoutBlocker(change, replace(cluster, pod_disruption_budgets=left))


def _terms(budget: PodDisruptionBudget) -> str:
    """Write what a PodDisruptionBudget asks for, and what that comes to now."""
    asked = f"maxUnavailable {budget.max_unavailable}" if budget.max_unavailable is not None else ""
    asked = f"minAvailable {budget.min_available}" if budget.min_available is not None else asked
    if not budget.expected_pods:
        return asked or "nothing asked for"
    return f"{asked}: {budget.desired_healthy} of {budget.expected_pods} pods must stay healthy"


def without_pod(cluster: Cluster, node: ClusterNode, pod: Pod) -> Cluster:
    """Return the cluster with one pod less on the node. The room that it took stays taken; that does not matter once
    the node is gone."""
    return _with(cluster, node, pods=tuple(other for other in node.pods if other.uid != pod.uid))


# ── of its NodePool ────────────────────────────────────────────────────────────────────────────────────────────────


def budget_use(cluster: Cluster, pool: NodePool, method: DisruptionReason) -> Reason:
    """Say how many nodes the NodePool's budgets allow for a reason, and how many already count (D-47…D-51)."""
    used = budget_usage(cluster).get(pool.name, Use())
    allowed = allowance(pool, method, used.total, cluster.now).nodes
    params: dict[str, str | int | float | list[str]] = {
        "nodepool": pool.name,
        "allowed": min(allowed, used.total),
        "total": used.total,
        "consuming": used.consuming,
        "reason": method.karpenter,
    }
    code = BudgetUseCode.BUDGET_USE if allowed < UNLIMITED else BudgetUseCode.BUDGET_OPEN
    return Reason(code.value, params)


def unreadable_budget(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> Reason | None:
    """Return the budget of the node's NodePool that cannot be read, and therefore blocks all disruption (D-48)."""
    pool = cluster.pool(node.node_pool)
    faults = allowance(pool, method, 0, cluster.now).faults if pool is not None else ()
    return faults[0] if faults else None


def _budget(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    pool = cluster.pool(node.node_pool)
    if pool is None:
        return None
    unread = unreadable_budget(cluster, node, method)
    if unread is not None:
        others = tuple(budget for index, budget in enumerate(pool.budgets) if index != unread.params["budget"])
        return WithoutBlocker(
            Reason(ChangeCode.READABLE_BUDGET.value, unread.params), _pool_with(cluster, pool, budgets=others)
        )
    change = Reason(ChangeCode.MORE_BUDGET.value, budget_use(cluster, pool, method).params)
    return WithoutBlocker(change, _pool_with(cluster, pool, budgets=()))


def _policy(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    pool = cluster.pool(node.node_pool)
    if pool is None:
        return None
    if pool.consolidation_policy == LEAST_RESTRICTIVE_POLICY:
        return None
    when_empty = pool.consolidation_policy == WHEN_EMPTY
    code = ChangeCode.WITHOUT_POLICY_WHEN_EMPTY if when_empty else ChangeCode.WITHOUT_POLICY_BALANCED
    change = Reason.of(code, nodepool=pool.name, policy=LEAST_RESTRICTIVE_POLICY)
    return WithoutBlocker(change, _pool_with(cluster, pool, consolidation_policy=LEAST_RESTRICTIVE_POLICY))


def _consolidate_after(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    pool = cluster.pool(node.node_pool)
    if pool is None:
        return None
    changed = _with(_pool_with(cluster, pool, consolidate_after=0), node, consolidatable=True)
    return WithoutBlocker(Reason.of(ChangeCode.WITH_CONSOLIDATE_AFTER, nodepool=pool.name), changed)


def _min_values(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    pool = cluster.pool(node.node_pool)
    if pool is None or all(requirement.min_values is None for requirement in pool.requirements):
        return None
    free = tuple(replace(requirement, min_values=None) for requirement in pool.requirements)
    return WithoutBlocker(
        Reason.of(ChangeCode.WITHOUT_MIN_VALUES, nodepool=pool.name), _pool_with(cluster, pool, requirements=free)
    )


def _spot_to_spot(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker:
    return WithoutBlocker(Reason.of(ChangeCode.WITH_SPOT_TO_SPOT), replace(cluster, spot_to_spot=True))


def _limits(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    """Lift the limits of NodePools, which may be why pods have no other place."""
    bounded = sorted(pool.pool.name for pool in cluster.pools if pool.pool.limits)
    if not bounded:
        return None
    free = tuple(replace(pool, pool=replace(pool.pool, limits=None)) for pool in cluster.pools)
    base = replace(cluster.base, pools=free)
    return WithoutBlocker(Reason.of(ChangeCode.WITHOUT_LIMITS, nodepools=bounded), replace(cluster, base=base))


def _weight(cluster: Cluster, node: ClusterNode, method: DisruptionReason) -> WithoutBlocker | None:
    """Ask the NodePools of less weight before the node's own, which hides what is cheaper there (S-63)."""
    pool = cluster.pool(node.node_pool)
    if pool is None:
        return None
    lighter = sorted(other.pool.name for other in cluster.pools if other.pool.weight < pool.weight)
    if not lighter:
        return None
    change = Reason.of(ChangeCode.AFTER_LIGHTER_NODEPOOLS, nodepool=pool.name, weight=pool.weight, nodepools=lighter)
    return WithoutBlocker(change, _pool_with(cluster, pool, weight=BEHIND_ALL))


def _with(cluster: Cluster, node: ClusterNode, **changes: Any) -> Cluster:
    changed = tuple(replace(other, **changes) if other.name == node.name else other for other in cluster.nodes)
    return replace(cluster, nodes=changed)


def _pool_with(cluster: Cluster, pool: NodePool, **changes: Any) -> Cluster:
    changed = replace(pool, **changes)
    pools = tuple(replace(other, pool=changed) if other.pool.name == pool.name else other for other in cluster.pools)
    return replace(cluster, base=replace(cluster.base, pools=pools))


_REMOVALS: dict[str, RemoveBlocker] = {
    DisruptionCode.AWAITING_PODS: _expected,
    DisruptionCode.BUDGET: _budget,
    DisruptionCode.CONSOLIDATE_AFTER_NEVER: _consolidate_after,
    DisruptionCode.DO_NOT_DISRUPT: _node_annotation,
    DisruptionCode.EMPTY_NOT_LONG_ENOUGH: _quiet,
    DisruptionCode.HELD_BACK: _held_back,
    DisruptionCode.HOLDS_BUFFERS: _buffers,
    DisruptionCode.MIN_VALUES: _min_values,
    DisruptionCode.NO_PLACE: _limits,
    DisruptionCode.NOMINATED: _expected,
    DisruptionCode.NOT_CONSOLIDATABLE: _quiet,
    DisruptionCode.NOT_WORTH_IT: _policy,
    DisruptionCode.NOTHING_CHEAPER: _weight,
    DisruptionCode.POD_BUDGET_EXHAUSTED: _pod_budgets,
    DisruptionCode.POD_DO_NOT_DISRUPT: _pod_annotations,
    DisruptionCode.POLICY_WHEN_EMPTY: _policy,
    DisruptionCode.SEVERAL_POD_BUDGETS: _pod_budgets,
    DisruptionCode.SPOT_TO_SPOT_OFF: _spot_to_spot,
}
