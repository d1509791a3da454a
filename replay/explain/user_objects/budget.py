"""Explain a PodDisruptionBudget: what it allows now, which pods it is for, and which nodes and drains it holds."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kerf.engine.disruption.cluster_from_state import cluster_when_moves_start
from kerf.engine.disruption.why_nodes_stay import why_node_stays
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, Selector, is_terminal
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.scheduling.matching.label_selectors import selector_matches
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.state.state import State
from kerf.projections.cluster_status.draining_pods import draining_pods
from kerf.projections.workload_names import WorkloadName, workload_of
from kerf.replay.history.budget_history import names_budget
from kerf.replay.history.histories import ClaimHistory, Histories

THERE, GONE = "there", "gone"


class HeldNode(Struct, frozen=True, kw_only=True):
    """A node that a PodDisruptionBudget holds: it stays for `reason`, or drains because it is `why` ("" for one that
    stays). `pods` are those that may not be evicted, `since` is when that was first so, or when the drain began.

    `attempts` counts the evictions of one pod that were asked for, `forced_at` is when the pods are deleted by force (0
    for never), `drifted_since` since when the node is not as its NodePool asks for, and `move` is the move that waits.
    """

    claim: str
    node: str
    since: int
    pods: tuple[str, ...]
    why: str = ""
    reason: Reason | None = None
    attempts: int = 0
    forced_at: int = 0
    drifted_since: int = 0
    move: str = ""


class CoveredWorkload(Struct, frozen=True):
    """Pods of one workload that a PodDisruptionBudget selects: how many there are, and how many are healthy."""

    workload: str
    kind: str
    pods: int
    healthy: int


class BudgetExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of one PodDisruptionBudget (namespace/name).

    `status` is THERE or GONE. `allowed` evictions are allowed now, none since `allows_none_since` (ms since the epoch;
    0 if some are). `expected` and `desired` are as its status says. `for_good`: no pod may be evicted until the budget
    changes or, where `growth_helps`, its workload grows. `nodes` maps nodes to how many of its `pods` are there.
    `overlaps` are other budgets that select some of its pods, too: these are never evicted. `drains` and `stays` are
    what it holds.
    """

    budget: str
    position: int
    at: int
    status: str
    max_unavailable: str | None = None
    min_available: str | None = None
    always_allow_unhealthy: bool = False
    selector: Selector | None = None
    allowed: int = 0
    expected: int = 0
    desired: int = 0
    healthy: int = 0
    allows_none_since: int = 0
    for_good: bool = False
    growth_helps: bool = False
    pods: tuple[str, ...] = ()
    workloads: tuple[CoveredWorkload, ...] = ()
    nodes: dict[str, int] = {}
    overlaps: tuple[str, ...] = ()
    drains: tuple[HeldNode, ...] = ()
    stays: tuple[HeldNode, ...] = ()


def explain_budget(histories: Histories, state: State, name: str) -> BudgetExplanation:
    """Explain the PodDisruptionBudget `name` (namespace/name), which the histories know."""
    facts = state.facts
    budget = next((pdb for pdb in facts.pdbs.values() if pdb.key == name), None)
    if budget is None:
        return BudgetExplanation(budget=name, position=facts.position, at=facts.at, status=GONE)
    pods = _selected(budget, state)
    rules = EvictionRules(
        {pod.shape: state.indexes.blobs.shape(pod.shape) for pod in pods}, tuple(facts.pdbs.values()), facts.at
    )
    held = [pod for pod in pods if budget in rules.blocked_now(pod)]
    for_good = any(budget in rules.never_letting_go(pod) for pod in held)
    return BudgetExplanation(
        budget=name,
        position=facts.position,
        at=facts.at,
        status=THERE,
        max_unavailable=budget.max_unavailable,
        min_available=budget.min_available,
        always_allow_unhealthy=budget.always_allow_unhealthy,
        selector=budget.selector,
        allowed=budget.disruptions_allowed,
        expected=budget.expected_pods,
        desired=budget.desired_healthy,
        healthy=sum(map(_healthy, pods)),
        allows_none_since=histories.budgets[name].allows_none_since,
        for_good=for_good,
        growth_helps=for_good and not any(map(rules.blocked_for_good, held)),
        pods=tuple(pod.key for pod in pods),
        workloads=_workloads(pods),
        nodes=dict(sorted(Counter(pod.node for pod in pods if pod.node).items())),
        overlaps=tuple(sorted({other.key for pod in pods for other in rules.matching(pod)} - {name})),
        drains=_drains(state, name),
        stays=_stays(histories, state, name, held),
    )


def _healthy(pod: Pod) -> bool:
    return pod.ready and not pod.deleting


def _selected(budget: PodDisruptionBudget, state: State) -> list[Pod]:
    """Return the pods that are not over and that the budget selects, by name."""
    selects: dict[str, bool] = {}
    found = []
    for pod in state.facts.pods.values():
        if pod.namespace != budget.namespace or is_terminal(pod):
            continue
        if pod.shape not in selects:
            selects[pod.shape] = selector_matches(budget.selector, state.indexes.blobs.shape(pod.shape).labels)
        if selects[pod.shape]:
            found.append(pod)
    return sorted(found, key=lambda pod: pod.name)


def _workloads(pods: list[Pod]) -> tuple[CoveredWorkload, ...]:
    of: dict[WorkloadName, list[Pod]] = {}
    for pod in pods:
        of.setdefault(workload_of(pod), []).append(pod)
    return tuple(
        CoveredWorkload(workload.key, workload.kind, len(own), sum(map(_healthy, own)))
        for workload, own in sorted(of.items())
    )


def _drains(state: State, name: str) -> tuple[HeldNode, ...]:
    """Return the drains that wait for a pod which the budget forbids to evict, the longest first."""
    found = []
    for claim in state.facts.claims.values():
        waiting = [pod for pod in draining_pods(claim, state) if names_budget(pod.reason, name)]
        if waiting:
            found.append(
                HeldNode(
                    claim=claim.name,
                    node=claim.node,
                    since=claim.since or claim.created,
                    pods=tuple(pod.pod for pod in waiting),
                    why=claim.why,
                    reason=waiting[0].reason,
                    attempts=max(pod.attempts for pod in waiting),
                    forced_at=claim.deadline or 0,
                    drifted_since=claim.drifted_since,
                    move=state.indexes.move_of.get(claim.name, ""),
                )
            )
    return tuple(sorted(found, key=lambda held: (held.since, held.claim)))


def _stays(histories: Histories, state: State, name: str, held: list[Pod]) -> tuple[HeldNode, ...]:
    """Return the nodes that no move may take because of the budget, the longest held first."""
    if state.facts.tells_history or not held:
        return ()
    cluster, by_node = cluster_when_moves_start(state, state.facts.at), dict[str, list[str]]()
    for pod in held:
        by_node.setdefault(pod.node, []).append(pod.key)
    found = []
    for node in cluster.nodes:
        claim = state.facts.claims.get(node.place.claim)
        if claim is None or claim.state != INITIALIZED or node.name not in by_node:
            continue
        reason = why_node_stays(node, cluster, state)
        if reason is not None and names_budget(reason, name):
            found.append(_staying(claim, reason, tuple(by_node[node.name]), histories, name))
    return tuple(sorted(found, key=lambda held: (held.since, held.claim)))


def _staying(claim: NodeClaim, reason: Reason, pods: tuple[str, ...], histories: Histories, budget: str) -> HeldNode:
    since = histories.budgets[budget].allows_none_since
    return HeldNode(
        claim=claim.name,
        node=claim.node,
        since=_said_since(histories.claims.get(claim.name), budget) or max(since, claim.created),
        pods=pods,
        reason=reason,
        drifted_since=claim.drifted_since,
    )


def _said_since(history: ClaimHistory | None, budget: str) -> int:
    """Return since when the recorded verdicts name the budget, without another one in between; 0 if the latest does
    not."""
    since = 0
    for recorded in reversed(history.verdicts if history is not None else ()):
        if not names_budget(recorded.verdict.reason, budget):
            break
        since = recorded.at
    return since
