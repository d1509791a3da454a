"""The status of a cluster: one value, made of a state."""

from __future__ import annotations

from collections import Counter

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.karpenter.nodepool_health import UNHEALTHY
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.state.nodeclaims.unavailable import avoided, doubted
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import State
from kerf.projections.cluster_status.nodes import node_statuses, summed
from kerf.projections.cluster_status.structs import ClusterStatus, NodeStatus, PoolStatus, Totals, Usage
from kerf.projections.cluster_status.under_way import under_way
from kerf.projections.cluster_status.verdict import judged
from kerf.projections.cluster_status.waiting_pods import waiting_workloads
from kerf.projections.prose.reasons import sentence
from kerf.projections.status.nodepool import DEPENDENTS, nodepool_status


def cluster_status(state: State, now: int = 0, plan: ProvisionResult | None = None) -> ClusterStatus:
    """Return the status at the time `now`, at the earliest that of the last entry.

    `plan` is the result of the decision at `facts.plan`, the latest that did not repeat another: why pods have no place
    stands there alone. Without it such pods count as not planned for.
    """
    facts, now = state.facts, max(now, state.facts.at)
    nodes, waiting, going_on = node_statuses(state, now), waiting_workloads(state, now, plan), under_way(state, now)
    pools = tuple(_pool(state, name, nodes) for name in sorted(facts.pools))
    return ClusterStatus(
        position=facts.position,
        at=now,
        record=facts.record,
        verdict=judged(waiting, nodes, pools, going_on, sorted(facts.orphans), clocks_differ=bool(facts.clocks_differ)),
        totals=_totals(state, nodes),
        waiting=waiting,
        under_way=going_on,
        pools=pools,
        nodes=nodes,
        window_closes=window_closes_at(facts) if facts.batch_opened and not facts.tells_history else 0,
        unavailable=avoided(facts, now),
        in_doubt=doubted(facts, now),
        lacks=facts.imported.lacks if facts.imported is not None else (),
    )


def _totals(state: State, nodes: tuple[NodeStatus, ...]) -> Totals:
    return Totals(
        nodes=len(state.facts.nodes),
        claims=len(state.facts.claims),
        price=round(sum(node.price for node in nodes), 6),
        pods=pods_by_phase(state),
        usage=summed(node.usage for node in nodes),
    )


def pods_by_phase(state: State) -> dict[str, int]:
    """Count the pods by what they do: waiting, terminating, or by their phase."""
    total: Counter[str] = Counter()
    pending, tells_history = state.indexes.pending, state.facts.tells_history
    for uid, pod in state.facts.pods.items():
        if pod.deleting:
            total["terminating"] += 1
        elif uid in pending:
            total["waiting"] += 1
        elif tells_history and pod.node and pod.phase == "Pending":
            total["bound"] += 1  # what kubelets say is seldom in a history
        else:
            total[pod.phase.lower()] += 1
    return dict(sorted(total.items()))


def _too_small(state: State, pool: str, nodes: int) -> tuple[str, ...]:
    """Say that a NodePool of a fixed size has nothing to launch. No pod waits for it (S-191)."""
    known = state.facts.static.get(pool)
    if known is None or known.code != LifecycleCode.STATIC_NO_OFFERING:
        return ()
    lacks = sentence(Reason.of(LifecycleCode.STATIC_NO_OFFERING))
    return (f"it has {nodes} of {state.facts.pools[pool].replicas or 0} nodes: {lacks}",)


def _pool(state: State, name: str, nodes: tuple[NodeStatus, ...]) -> PoolStatus:
    pool, status = state.facts.pools[name], nodepool_status(state, name)
    own = [node for node in nodes if node.node_pool == name and node.claim]
    bad = [c for c in status.conditions if c.type in DEPENDENTS and c.status != "True"]
    bad += [c for c in status.conditions if c.type == "NodeRegistrationHealthy" and c.status == UNHEALTHY]
    bad += [c for c in status.conditions if c.type == "RequirementsMet"]
    bad = [] if state.facts.tells_history else bad  # its NodeClass, and what it launches, are not in the record
    return PoolStatus(
        name=name,
        ready=status.ready or state.facts.tells_history,
        wrong=(
            *(f"{c.reason}: {c.message}" if c.message else c.reason for c in bad),
            *_too_small(state, name, len(own)),
        ),
        nodes=len(own),
        price=round(sum(node.price for node in own), 6),
        usage=summed(node.usage for node in own),
        limits={
            resource: Usage(status.resources.get(resource, 0), limit)
            for resource, limit in sorted((pool.limits or {}).items())
        },
        drifted=sum(bool(claim.drifted_since) for claim in state.facts.claims.values() if claim.node_pool == name),
    )
