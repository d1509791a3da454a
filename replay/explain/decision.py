"""Explain a decision: what it decided for which pods, and whether today's engine decides the same."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, Move, MoveStepResult, ProposedMovesResult, ProvisionResult, Result
from kerf.engine.record.store import Store
from kerf.replay.explain.decision_links import DecisionLinks, decision_links
from kerf.replay.explain.funnels import (
    KindAsked,
    PlacementExplanation,
    Replan,
    decision_at,
    explain_new_node,
    explain_placement,
    kinds_among,
    replan_if_known,
)
from kerf.replay.explain.tried_sets import TriedSet, tried_sets
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.removal import budgets_at_start, budgets_before
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.verify.decide_again import VERSIONS


class PlanExplanation(Struct, frozen=True, kw_only=True):
    """One planned claim, or one group of pods, of a provisioning decision. `how` explains one kind of its pods: of a
    new node the one that opened it. `kinds` are all of them, with the names of their pods."""

    claim: str
    pods: tuple[str, ...]
    how: PlacementExplanation | None
    reasons: tuple[Reason, ...] = ()
    kinds: tuple[KindAsked, ...] = ()


class DecisionExplanation(Struct, frozen=True, kw_only=True):
    """One decision.

    `same`: whether today's engine decides the same, None where only `kerf verify` can tell. `plans` explain a
    provisioning decision piece by piece; for one that repeats another, they explain that one. `shortened`: it looked at
    a state before the record's base, and cannot be decided again. `links` are the events that brought it about, and
    those that came of it. `budgets`: what the disruption budgets allowed before it, of the NodePools whose nodes it
    moves. `tried`: the sets of nodes that a disruption pass tried (see `tried_sets`), None if that is not known.
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
    links: DecisionLinks = DecisionLinks()
    budgets: tuple[Reason, ...] = ()
    tried: tuple[TriedSet, ...] | None = None


def explain_decision(store: Store, position: int, named: NamedEntries | None = None) -> DecisionExplanation:
    """Explain the decision at a position. `named` finds entries, if the record has an index. Raises SubjectUnknown
    (KERF203)."""
    decision = decision_at(store, position)
    links = decision_links(store, position, named)
    named = named.up_to(position) if named is not None else None
    result = decision.result
    repeats = result.repeats if isinstance(result, ProvisionResult) else 0
    replan = replan_if_known(store, position, named) if isinstance(result, ProvisionResult) else None
    repeated = replan_if_known(store, repeats, named) if repeats else replan
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
        plans=_plans(store, repeats or position, repeated, named),
        shortened=isinstance(result, ProvisionResult) and replan is None,
        links=links,
        budgets=_budgets(store, position, decision, named),
        tried=tried_sets(store, decision),
    )


def _budgets(store: Store, position: int, decision: Decision, named: NamedEntries | None) -> tuple[Reason, ...]:
    """Return what the budgets allowed, by reason of the moves that the decision proposes or begins."""
    result = decision.result
    moves: tuple[Move, ...] = result.proposed if isinstance(result, ProposedMovesResult) else ()
    uses = budgets_before
    if isinstance(result, MoveStepResult) and result.begun is not None:
        moves, uses = (result.begun,), budgets_at_start
    if not moves:
        return ()
    claims = histories_of(store, position, named).claims
    found: list[Reason] = []
    for why in sorted({move.why for move in moves}):
        gone = (name for move in moves if move.why == why for name in move.claims)
        pools = {claims[name].node_pool for name in gone if name in claims}
        found += uses(store, position, decision.now, why, pools)
    return tuple(found)


def _plans(
    store: Store, position: int, replan: Replan | None, named: NamedEntries | None
) -> tuple[PlanExplanation, ...]:
    """Return the pieces of the provisioning decision at a position. Without a `replan` they are as recorded, without
    funnels."""
    result = decision_at(store, position).result
    if not isinstance(result, ProvisionResult):
        return ()
    histories = histories_of(store, position, named)

    def placed_as(pods: tuple[str, ...]) -> PlacementExplanation | None:
        return explain_placement(replan, pods[0]) if replan is not None else None

    def kinds_of(pods: tuple[str, ...]) -> tuple[KindAsked, ...]:
        kinds = kinds_among(replan, pods) if replan is not None else ()
        return tuple(replace(kind, pods=histories.pod_names(kind.pods)) for kind in kinds)

    plans = [
        PlanExplanation(
            claim=claim.name,
            kinds=kinds_of(claim.pods),
            pods=histories.pod_names(claim.pods),
            how=explain_new_node(replan, claim.name) if replan is not None else None,
        )
        for claim in result.claims
    ]
    plans += [
        PlanExplanation(
            claim=p.claim or p.node,
            pods=histories.pod_names(p.pods),
            how=placed_as(p.pods),
            kinds=kinds_of(p.pods),
        )
        for p in result.placements
    ]
    plans += [
        PlanExplanation(
            claim="",
            pods=histories.pod_names(group.pods),
            how=placed_as(group.pods),
            reasons=group.reasons,
            kinds=kinds_of(group.pods),
        )
        for group in (*result.unplaced, *result.ignored, *result.later)
    ]
    return tuple(plans)
