"""Write decisions in one line each: what is launched, kept and removed, and which pods have no place."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kerf.engine.record.decisions import (
    Decision,
    DeletePod,
    DisruptResult,
    EvictPod,
    Intent,
    Move,
    MoveStepResult,
    PlannedClaim,
    ProposedMovesResult,
    ProvisionResult,
    Result,
    StaticResult,
    Unplaced,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.projections.prose.amounts import count, first_names
from kerf.projections.prose.drift import verdict_words
from kerf.projections.prose.reasons import sentence, sentences

MIN_SAVINGS_SHOWN = 0.00005
"""Savings below this would be shown as zero. USD per hour."""


def decided_lines(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Write the decisions among these entries, in their order."""
    return tuple(
        line
        for entry in entries
        if isinstance(entry.payload, Decision)
        for line in (*decision_lines(entry.payload.result), *_evictions(entry.payload.intents))
    )


def _evictions(intents: Iterable[Intent]) -> list[str]:
    """Write which pods are to leave."""
    pods = [f"{order.namespace}/{order.name}" for order in intents if isinstance(order, EvictPod | DeletePod)]
    return [f"evict {first_names(pods)}"] if pods else []


def decision_lines(result: Result) -> list[str]:
    if isinstance(result, ProvisionResult):
        return _provisioned(result)
    if isinstance(result, DisruptResult):
        return _verdicts(result.verdicts)
    if isinstance(result, ProposedMovesResult):
        return [*map(_proposed, result.proposed), *_verdicts(result.verdicts)] or ["nothing to do"]
    if isinstance(result, MoveStepResult):
        lines = _begun(result.begun) if result.begun is not None else [f"{result.step}: {sentence(result.reason)}"]
        return [*lines, *_verdicts(result.verdicts)]
    if isinstance(result, StaticResult):
        return _static(result)
    return [f"{result.claim}: {sentence(result.reason)}"]


def _static(result: StaticResult) -> list[str]:
    size = f"NodePool {result.node_pool} has {result.running} of {count(result.replicas, 'node')}"
    lines = [f"{size}: {sentence(result.reason)}"]
    lines += [_launched(claim) for claim in result.claims]
    return lines + [f"remove {name}" for name in result.removed]


def _verdicts(verdicts: Iterable[Verdict]) -> list[str]:
    return [f"{v.action} {v.claim}: {verdict_words(v.reason, v.differences)}" for v in verdicts]


def _proposed(move: Move) -> str:
    first = f", {count(len(move.replacements), 'new node')} first" if move.replacements else ""
    return f"propose to remove {', '.join(move.claims)} ({move.why}{first}){_saved(move.savings)}"


def _saved(amount: float) -> str:
    """What a move saves or costs in an hour. A move by drift is no matter of money: it may do neither."""
    if abs(amount) < MIN_SAVINGS_SHOWN:
        return ""
    return f", to save ${amount:.4f}/h" if amount > 0 else f", for ${-amount:.4f}/h more"


def _begun(move: Move) -> list[str]:
    return [
        *map(_launched, move.replacements),
        *(f"{count(len(p.pods), 'pod')} onto {p.node}" for p in move.placements),
    ]


def _provisioned(result: ProvisionResult) -> list[str]:
    if result.repeats:
        return [f"nothing new: the same result as the decision at {result.repeats}"]
    lines = [_launched(claim) for claim in result.claims]
    lines += _gained(result)
    lines += [f"{count(len(p.pods), 'pod')} onto {p.node}" for p in result.placements]
    lines += [_left(unplaced, "without a place") for unplaced in result.unplaced]
    lines += [_left(ignored, "not looked at") for ignored in result.ignored]
    lines += [_left(later, "planned for later") for later in result.later]
    if result.truncated:
        lines.append(f"{count(len(result.truncated), 'pod')} not looked at: the steps of the pass were used up")
    return lines or ["nothing to do"]


def _gained(result: ProvisionResult) -> list[str]:
    """Say what the optimizer's effort gained, if anything."""
    price = math.fsum(claim.price for claim in result.claims)
    saved = result.first_price - price
    lines = [f"${saved:.4f}/h less than the first plan; no nodes can cost less than ${result.lower_bound:.4f}/h"]
    lines = lines if saved >= MIN_SAVINGS_SHOWN else []
    if result.unbound:
        lines.append(f"{count(result.unbound, 'pod')} may find no place there at first")
    return lines


def _launched(claim: PlannedClaim) -> str:
    types = claim.instance_types
    more = f" or {count(len(types) - 1, 'other type')}" if len(types) > 1 else ""
    first = types[0] if types else "no type"
    return f"launch {claim.name}: {first}{more}, from ${claim.price:.4f}/h, for {count(len(claim.pods), 'pod')}"


def _left(group: Unplaced, how: str) -> str:
    return f"{count(len(group.pods), 'pod')} {how}: {sentences(group.reasons)}"
