"""Assertions about how kerf works: no node goes round in circles, budgets hold, decisions can be made again."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.disruption.budgets import UNLIMITED, allowance
from kerf.engine.disruption.moves.budget_headroom import budget_use
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, budget_reason
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.claim_events import Tainted
from kerf.engine.record.entries import Entry
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import beginning
from kerf.engine.state.state import State
from kerf.projections.figures.loops import (
    CHAIN,
    DRIFTS_AT_ONCE,
    EVICTED_AGAIN,
    EXPIRES_SOON,
    LAUNCH_FAILURES,
    LAUNCHED_AGAIN,
    UNUSED,
    find_loops,
)
from kerf.projections.prose.amounts import count, moment
from kerf.replay.partial_records import require
from kerf.replay.policies.evidence import Evidence
from kerf.replay.policies.found import RECORD, Asked, Found
from kerf.replay.policies.outcomes import Breach
from kerf.replay.verify.report_lines import divergence_lines, obstacle_lines, verdict
from kerf.replay.verify.verifier import turns
from kerf.replay.verify.verify import verify

LOOPS = (CHAIN, EVICTED_AGAIN, LAUNCHED_AGAIN, EXPIRES_SOON, UNUSED, DRIFTS_AT_ONCE, LAUNCH_FAILURES)
"""The kinds of loops that `no_loop` may name."""
MAX_DIVERGENCES_SHOWN = 5
DECIDED = ("- ", "+ ", "= ")
"""How the lines of a divergence begin that say what was, and is now, decided."""


def no_loop(evidence: Evidence, asked: Asked) -> Found:
    """No node goes round in circles (`kerf churn`)."""
    require(evidence.imported, Missing.NODES, "whether nodes went round in circles")
    lacks = evidence.imported.lacks if evidence.imported is not None else ()
    kinds = [kind for kind in asked.bound.patterns if kind != UNUSED or Missing.BINDINGS not in lacks]
    lives, window = evidence.lives, asked.window
    loops = [
        loop
        for loop in find_loops(lives, window.since, window.until, evidence.evictions_fold.again)
        if loop.kind in kinds and any(asked.selector.selects(lives.lives[claim].about()) for claim in loop.claims)
    ]
    breaches = [
        Breach(
            what=f"{loop.kind} of {loop.about}: {count(len(loop.claims), 'node')}, {count(loop.evicted, 'eviction')}"
            + (f" ({', '.join(loop.reasons)})" if loop.reasons else ""),
            position=evidence.position_at(loop.since),
            at=loop.since,
            subjects=tuple(f"nodeclaim/{claim}" for claim in loop.claims),
            command=("churn", RECORD, "--since", moment(window.since), "--until", moment(window.until)),
        )
        for loop in loops
    ]
    return Found(len(lives.lives), breaches)


def budget_held(evidence: Evidence, asked: Asked) -> Found:
    """Whenever nodes go for a reason that disruption budgets know, no more of their NodePool are on their way out or
    not ready than its budgets allow (D-51)."""
    require(evidence.imported, Missing.POLICY, "which budgets there were")
    state = beginning(evidence.store)
    found = Found(0, [])
    went = 0
    for turn in turns(evidence.store.scan(state.facts.position)):
        for entry in turn:
            evolve(state, entry)
        going = [(entry, entry.payload) for entry in turn if isinstance(entry.payload, Tainted)]
        chosen = [(entry, taint) for entry, taint in going if taint.why in BUDGET_REASONS and asked.is_within(entry.at)]
        went += len(chosen)
        found.breaches.extend(_overdrawn(state, chosen, asked))
    return Found(went, found.breaches)


def verifies(evidence: Evidence, asked: Asked) -> Found:
    """Today's engine decides all of the record as recorded."""
    report = verify(evidence.store, keep=MAX_DIVERGENCES_SHOWN, progress=evidence.progress)
    breaches = []
    for divergence in report.divergences:
        title, *lines = divergence_lines(divergence)
        decided = [line for line in lines if line[:2] in DECIDED]
        what = "; ".join([f"{divergence.type}: {title.partition('): ')[2]}", *(decided or lines[:1])])
        breaches.append(Breach(what=what, position=divergence.position, at=divergence.at, command=("verify", RECORD)))
    if report.exit_code and not breaches:
        what = "; ".join([verdict(report), *obstacle_lines(report)])
        breaches.append(Breach(what=what, position=0, at=0, command=("verify", RECORD)))
    return Found(report.decisions, breaches)


def _overdrawn(state: State, chosen: list[tuple[Entry, Tainted]], asked: Asked) -> Iterator[Breach]:
    """Give a breach for each NodePool and reason of which more nodes go than the budgets allow."""
    uses = budget_use(state)
    groups: dict[tuple[str, str], list[tuple[Entry, Tainted]]] = {}
    for entry, taint in chosen:
        claim = state.facts.claims.get(taint.claim)
        if claim is not None and asked.selector.selects({"pool": claim.node_pool}):
            groups.setdefault((claim.node_pool, taint.why), []).append((entry, taint))
    for (pool, why), going in groups.items():
        if pool not in state.facts.pools or pool not in uses:
            continue
        entry, use = going[-1][0], uses[pool]
        allowed = allowance(state.facts.pools[pool], budget_reason(why), use.total, entry.at).nodes
        if allowed < UNLIMITED and use.consuming > allowed:
            names = tuple(f"nodeclaim/{taint.claim}" for _, taint in going)
            yield Breach(
                what=f"{use.consuming} of {count(use.total, 'node')} of NodePool {pool} are on their way out or not "
                f"ready, the budgets for {why} allow {allowed}",
                position=entry.position,
                at=entry.at,
                subjects=names,
                command=("explain", RECORD, names[0], "--at", str(entry.position)),
            )
