"""Make rows of decisions and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LifecycleResult,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    Result,
    StaticResult,
    Unplaced,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.projections.prose.reasons import sentence
from kerf.projections.tables.rows import DecisionRow, VerdictRow


class DecisionsFold:
    """Folds decisions. `node_pool` gives the NodePool of a claim."""

    def __init__(self, node_pool: Callable[[str], str]) -> None:
        self._node_pool = node_pool
        self.decisions: list[DecisionRow] = []
        self._said: list[tuple[int, int, Verdict]] = []  # position, time (ms since the epoch)
        self._followed: dict[int, int] = {}  # of one of them, by its place: when another verdict followed
        self._latest: dict[tuple[str, str], int] = {}

    def apply(self, entry: Entry) -> None:
        if isinstance(entry.payload, Decision):
            self.decisions.append(_row(entry, entry.payload))
            self._verdicts(entry, entry.payload.result)

    def _verdicts(self, entry: Entry, result: Result) -> None:
        """Each method of forced disruption has verdicts of its own. Those of all the others follow one another."""
        if isinstance(result, DisruptResult | ProposedMovesResult | MoveStepResult):
            for verdict in result.verdicts:
                line = verdict.claim, verdict.method if isinstance(result, DisruptResult) else ""
                if line in self._latest:
                    self._followed[self._latest[line]] = entry.at
                self._latest[line] = len(self._said)
                self._said.append((entry.position, entry.at, verdict))

    def verdicts(self, until: int, going: Callable[[str], int]) -> Iterator[VerdictRow]:
        """The verdicts up to a time. `going` tells when a claim began to go, 0 for not yet (ms since the epoch)."""
        for place, (position, at, verdict) in enumerate(self._said):
            ends = [end for end in (self._followed.get(place, 0), going(verdict.claim)) if end]
            end = max(at, min(ends)) if ends else 0
            yield VerdictRow(
                position=position, time=at, claim=verdict.claim, node_pool=self._node_pool(verdict.claim),
                method=verdict.method, action=verdict.action, reason=verdict.reason.code,
                because=sentence(verdict.reason), until=end, seconds=((end or until) - at) / 1000,
            )  # fmt: skip


def _row(entry: Entry, decision: Decision) -> DecisionRow:
    result = decision.result
    provision = result if isinstance(result, ProvisionResult) else ProvisionResult()
    placed = [planned.pods for planned in provision.claims] + [place.pods for place in provision.placements]
    waiting: tuple[Unplaced, ...] = (*provision.unplaced, *provision.later)
    reason = _reason(result)
    return DecisionRow(
        position=entry.position, time=entry.at, decider=decision.decider, version=decision.version,
        looked_at=decision.looked_at, subject=_subject(result),
        step=result.step if isinstance(result, MoveStepResult) else "",
        reason=reason.code if reason is not None else "", because=sentence(reason) if reason is not None else "",
        repeats=provision.repeats, new_claims=_new_claims(result),
        pods_placed=sum(map(len, placed)),
        pods_without_place=sum(len(group.pods) for group in waiting) + len(provision.truncated),
        moves_proposed=len(result.proposed) if isinstance(result, ProposedMovesResult) else 0,
        intents=len(decision.intents), touches=provision.touches,
    )  # fmt: skip


def _subject(result: Result) -> str:
    match result:
        case LifecycleResult():
            return result.claim
        case StaticResult():
            return result.node_pool
        case MoveStepResult():
            return result.move
        case DisruptResult() if len(result.verdicts) == 1:
            return result.verdicts[0].claim
    return ""


def _reason(result: Result) -> Reason | None:
    return result.reason if isinstance(result, LifecycleResult | StaticResult | MoveStepResult) else None


def _new_claims(result: Result) -> int:
    if isinstance(result, ProvisionResult | StaticResult):
        return len(result.claims)
    return len(result.begun.replacements) if isinstance(result, MoveStepResult) and result.begun is not None else 0
