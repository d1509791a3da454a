"""Explain a decision: what it decided for which pods, and whether today's engine decides the same."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult, Result
from kerf.engine.record.store import Store
from kerf.replay.explain.funnels import (
    PlacementExplanation,
    Replan,
    decision_at,
    explain_new_node,
    explain_placement,
    replan_if_known,
)
from kerf.replay.history.histories import Histories, histories_of
from kerf.replay.verify.decide_again import VERSIONS


class PlanExplanation(Struct, frozen=True, kw_only=True):
    """One planned claim, or one group of pods, of a provisioning decision."""

    claim: str
    pods: tuple[str, ...]
    how: PlacementExplanation | None
    reasons: tuple[Reason, ...] = ()


class DecisionExplanation(Struct, frozen=True, kw_only=True):
    """One decision.

    `same`: whether today's engine decides the same, None where only `kerf verify` can tell. `plans` explain a
    provisioning decision piece by piece; for one that repeats another, they explain that one. `shortened`: it looked at
    a state before the record's base, and cannot be decided again.
    """

    position: int
    decider: str
    now: int
    looked_at: int
    version: int
    version_today: int
    same: bool | None
    result: Result
    intents: int
    repeats: int
    plans: tuple[PlanExplanation, ...]
    shortened: bool = False


def explain_decision(store: Store, position: int) -> DecisionExplanation:
    """Explain the decision at a position. Raises SubjectUnknown (KERF203)."""
    decision = decision_at(store, position)
    result = decision.result
    repeats = result.repeats if isinstance(result, ProvisionResult) else 0
    replan = replan_if_known(store, position) if isinstance(result, ProvisionResult) else None
    repeated = replan_if_known(store, repeats) if repeats else replan
    return DecisionExplanation(
        position=position,
        decider=decision.decider,
        now=decision.now,
        looked_at=decision.looked_at,
        version=decision.version,
        version_today=VERSIONS.get(decision.decider, 0),
        same=replan.same if replan is not None else None,
        result=result,
        intents=len(decision.intents),
        repeats=repeats,
        plans=_plans(store, repeats or position, repeated),
        shortened=isinstance(result, ProvisionResult) and replan is None,
    )


def _plans(store: Store, position: int, replan: Replan | None) -> tuple[PlanExplanation, ...]:
    """Return the pieces of the provisioning decision at a position. Without a `replan` they are as recorded, without
    funnels."""
    result = decision_at(store, position).result
    if not isinstance(result, ProvisionResult):
        return ()
    histories = histories_of(store, position)

    def placed_as(pods: tuple[str, ...]) -> PlacementExplanation | None:
        return explain_placement(replan, pods[0]) if replan is not None else None

    plans = [
        PlanExplanation(
            claim=claim.name,
            pods=_keys(histories, claim.pods),
            how=explain_new_node(replan, claim.name) if replan is not None else None,
        )
        for claim in result.claims
    ]
    plans += [
        PlanExplanation(claim=p.claim or p.node, pods=_keys(histories, p.pods), how=placed_as(p.pods))
        for p in result.placements
    ]
    plans += [
        PlanExplanation(claim="", pods=_keys(histories, group.pods), how=placed_as(group.pods), reasons=group.reasons)
        for group in (*result.unplaced, *result.ignored, *result.later)
    ]
    return tuple(plans)


def _keys(histories: Histories, uids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(histories.pod_name(uid) for uid in uids)
