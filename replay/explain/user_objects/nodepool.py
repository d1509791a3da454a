"""Explain a NodePool: whether it can launch nodes, what it has, why its nodes stay, and which pods it
could not take."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.budgets import UNLIMITED, Use, allowance, value, window_ends
from kerf.engine.disruption.moves.budget_headroom import budget_use
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import REQUESTED
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.record.store import Store
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets, crowding_behind
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.state.state import State
from kerf.projections.cluster_status.closed_budgets import held_by_closed_budgets
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.status.nodepool import nodepool_status
from kerf.replay.explain.funnels import decision_at
from kerf.replay.explain.pools_not_asked import conditions_not_met
from kerf.replay.explain.user_objects.drifted import drifted_by
from kerf.replay.history.histories import Histories

READY, NOT_READY, GONE = "ready", "not ready", "gone"


class PoolBudget(Struct, frozen=True):
    """How many further nodes the budgets let go for one reason; None for any number. `least` is the number in the
    NodePool's list of the budget that allows the fewest now, until `ends` (ms since the epoch; 0 if its window does not
    end). `consuming` nodes are going or not ready. `faults` are budgets that cannot be read."""

    reason: str
    nodes: int | None
    faults: tuple[Reason, ...] = ()
    least: int | None = None
    terms: Budget | None = None
    ends: int = 0
    consuming: int = 0


class RefusedPods(Struct, frozen=True):
    """Pods that the latest plan had no place for, and why not on nodes of this NodePool: with the DaemonSets that leave
    the first of them no type."""

    pods: tuple[str, ...]
    reason: Reason
    crowding: CrowdingDaemonSets | None = None


class PoolExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of one NodePool.

    `status` is READY, NOT_READY or GONE; `wrong` are the conditions that are not met, each with its reason. `nodes`
    counts its claims by state, `price` is in USD per hour. `limits` maps resources to what is used and what is allowed;
    `in_flight` nodes that are asked for and not launched yet count as up to `reserved` in addition (S-70).
    `reasons` counts its nodes by the latest verdict (a code), `drifted` those that have drifted by the reason of their
    condition. `launches`: how many it made until then, and `failed` how many of them failed.
    """

    node_pool: str
    position: int
    at: int
    status: str
    wrong: tuple[Reason, ...]
    nodes: dict[str, int]
    price: float
    limits: dict[str, tuple[int, int]]
    in_flight: int = 0
    reserved: dict[str, int] = {}
    budgets: tuple[PoolBudget, ...]
    reasons: dict[str, int]
    drifted: dict[str, int] = {}
    refused: tuple[RefusedPods, ...]
    launches: int
    failed: int


def explain_pool(store: Store, histories: Histories, state: State, name: str) -> PoolExplanation:
    """Explain the NodePool `name`, which the histories know."""
    facts = state.facts
    pool = facts.pools.get(name)
    claims = [claim for claim in facts.claims.values() if claim.node_pool == name]
    requested = [claim for claim in claims if claim.state == REQUESTED]
    status = nodepool_status(state, name) if pool is not None else None
    histories_of_pool = [claim for claim in histories.claims.values() if claim.node_pool == name and claim.orders]
    return PoolExplanation(
        node_pool=name,
        position=facts.position,
        at=facts.at,
        status=GONE if status is None else READY if status.ready else NOT_READY,
        wrong=conditions_not_met(status) if status is not None else (),
        nodes=dict(sorted(Counter(claim.state for claim in claims).items())),
        price=round(sum(claim.price for claim in claims if claim.launched), 6),
        limits={
            resource: (status.resources.get(resource, 0) if status is not None else 0, limit)
            for resource, limit in sorted(((pool.limits if pool is not None else None) or {}).items())
        },
        in_flight=len(requested),
        reserved=_reserved(requested, state),
        budgets=_budgets(state, name),
        reasons=_reasons(claims, state),
        drifted=drifted_by(claims),
        refused=_refused(store, histories, state, name),
        launches=len(histories_of_pool),
        failed=sum(not claim.instance for claim in histories_of_pool if claim.answers),
    )


def _reserved(requested: list[NodeClaim], state: State) -> dict[str, int]:
    """Return what counts against limits of claims that are not launched yet: the largest that each may become."""
    if not requested:
        return {}
    offered = PoolCatalogues(state)
    return total(offered.over_types(claim, largest=True) for claim in requested)


def _reasons(claims: list[NodeClaim], state: State) -> dict[str, int]:
    """Count the codes of why nodes go or stay."""
    codes = {claim.name: claim.why or claim.verdict for claim in claims if claim.initialized}
    held = [claim for claim in claims if codes.get(claim.name) == DisruptionCode.BUDGET]
    codes |= dict.fromkeys(
        held_by_closed_budgets(held, state, state.facts.at), ExplanationCode.BUDGET_ALLOWS_NONE.value
    )
    return dict(sorted(Counter(codes.values()).items()))


def _budgets(state: State, name: str) -> tuple[PoolBudget, ...]:
    pool = state.facts.pools.get(name)
    if pool is None:
        return ()
    use, now = budget_use(state).get(name, Use()), state.facts.at
    return tuple(_budget(pool, reason, use, now) for reason in BUDGET_REASONS)


def _budget(pool: NodePool, reason: DisruptionReason, use: Use, now: int) -> PoolBudget:
    found = allowance(pool, reason, use.total, now)
    if found.faults or found.nodes == UNLIMITED:
        return PoolBudget(reason.value, 0 if found.faults else None, found.faults)
    counting = [n for n, budget in enumerate(pool.budgets) if not budget.reasons or reason.karpenter in budget.reasons]
    least = min(counting, key=lambda n: value(pool.budgets[n], use.total, now))
    terms = pool.budgets[least]
    return PoolBudget(
        reason=reason.value,
        nodes=max(0, found.nodes - use.consuming),
        least=least,
        terms=terms,
        ends=window_ends(replace(pool, budgets=(terms,)), now),
        consuming=use.consuming,
    )


def _refused(store: Store, histories: Histories, state: State, name: str) -> tuple[RefusedPods, ...]:
    """Return the waiting pods that the latest plan found no node of this NodePool for."""
    result = decision_at(store, state.facts.plan).result if state.facts.plan else None
    found = []
    for group in result.unplaced if isinstance(result, ProvisionResult) else ():
        waiting = [uid for uid in group.pods if uid in state.indexes.pending]
        pods = tuple(sorted(histories.pod_names(waiting)))
        own = nearest_first(reason for reason in group.reasons if reason.params.get("node_pool") == name)
        if pods and own:
            shape = state.facts.pods[waiting[0]].shape
            found.append(RefusedPods(pods, own[0], crowding_behind(state, own[0], shape)))
    return tuple(found)
