"""A decision on the page: what was asked, what ruled instance types out, moves and verdicts, what brought it about and
what came of it; and the same decision made again.

All of it is in `kerf explain RECORD decision/POSITION` and `kerf verify RECORD --turn POSITION`. Here it stands in the
order in which the page draws it, with the commands' own sentences.
"""

from __future__ import annotations

from math import isfinite

import msgspec
from msgspec import Struct

from kerf.adapters.cli.render.explain.explanation import explanation_text
from kerf.adapters.cli.render.explain.placement import asked_words, kind_words
from kerf.adapters.cli.render.record import turn_report_text
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.rendered import LinesPrinter, TextLine
from kerf.engine.record.decisions import Move, MoveStepResult, ProposedMovesResult, Verdict
from kerf.engine.scheduling.explain.tracer import PricedType
from kerf.projections.prose.changes import budget_words
from kerf.projections.prose.drift import verdict_words
from kerf.projections.prose.funnels import cut_sentence, given_up_sentence, near_miss_sentence
from kerf.projections.prose.reasons import sentence
from kerf.projections.timeline.event import Event, event_sentence
from kerf.replay.explain.claim import ClaimExplanation
from kerf.replay.explain.decision import DecisionExplanation, PlanExplanation, explain_decision
from kerf.replay.explain.decision_links import LOOKED_AFTER
from kerf.replay.explain.funnels import KindAsked, PlacementExplanation, PoolFunnel
from kerf.replay.explain.pod import PodExplanation
from kerf.replay.explain.subject import Explanation
from kerf.replay.verify.decision_lines import decision_lines
from kerf.replay.verify.one_turn import verify_turn


class Choice(Struct, frozen=True):
    """An instance type that was left. `price` is in USD per hour, None for one that nobody sells."""

    instance_type: str
    price: float | None


class Step(Struct, frozen=True):
    """What ruled out `types` instance types, so that `left` remain."""

    text: str
    types: int
    left: int


class Funnel(Struct, frozen=True, kw_only=True):
    """How the types of a NodePool narrowed down. `reason` says why no node was opened here, "" if one was; `near` what
    would have let types through."""

    node_pool: str
    claim: str
    types: int
    steps: list[Step]
    left: int
    cheapest: list[Choice]
    near: list[str]
    reason: str


class Piece(Struct, frozen=True, kw_only=True):
    """A new node of the plan, pods on a node that is there, or pods without a place (`place` is "" then). `asked` has a
    line for each kind of its pods; the rest is about the kind that opened the node, or the first."""

    place: str
    pods: tuple[str, ...]
    asked: list[str]
    refused: list[str]
    funnels: list[Funnel]
    chosen: list[Choice]
    chosen_types: int
    reasons: list[str]


class MoveLine(Struct, frozen=True, kw_only=True):
    """A move: claims that go, for a reason, and what is launched first. `savings` is in USD per hour."""

    why: str
    claims: tuple[str, ...]
    replacements: list[Choice]
    savings: float


class VerdictLine(Struct, frozen=True):
    """What was concluded about a claim, as a sentence."""

    claim: str
    action: str
    text: str


class LinkedEvent(Struct, frozen=True, kw_only=True):
    """An event that belongs to the decision. `after` is the position of what it follows, 0 for a cause."""

    position: int
    at: int
    subject: str
    level: str
    text: str
    after: int = 0


class DecisionAnswer(Struct, frozen=True, kw_only=True):
    """A decision. `decided` is what it says, in a line each. `same`: whether today's engine decides the same, None
    where only `again` can tell. `raw` is the entry as it was recorded, as JSON."""

    position: int
    at: int
    decider: str
    decided: list[str]
    same: bool | None
    pieces: list[Piece]
    moves: list[MoveLine]
    verdicts: list[VerdictLine]
    budgets: list[str]
    causes: list[LinkedEvent]
    consequences: list[LinkedEvent]
    more: bool
    raw: str
    text: list[TextLine]
    command: str


class AgainAnswer(Struct, frozen=True):
    """What came of deciding again: "same", "differs" or "cannot"."""

    answer: str
    text: list[TextLine]
    command: str


def decision(reader: RecordReader, position: int) -> DecisionAnswer:
    """A decision: what was asked, what ruled types out, moves, verdicts, its causes and consequences, and the entry."""
    named = reader.named(min(position + LOOKED_AFTER, reader.store.last_position()))
    found, printer = explain_decision(reader.store, position, named), LinesPrinter()
    explanation_text(printer, found)
    entry = next(reader.store.scan(position - 1, position))
    moves, verdicts = _moves(found)
    links = found.links
    return DecisionAnswer(
        position=position,
        at=entry.at,
        decider=found.decider,
        decided=decision_lines(found.result),
        same=found.same,
        pieces=[_piece(plan) for plan in found.plans],
        moves=[_move(move) for move in moves],
        verdicts=[
            VerdictLine(verdict.claim, verdict.action, verdict_words(verdict.reason, verdict.differences))
            for verdict in verdicts
        ],
        budgets=[budget_words(budget) for budget in found.budgets],
        causes=[_linked(event) for event in links.causes],
        consequences=[_linked(came.event, came.after) for came in links.consequences],
        more=links.more,
        raw=msgspec.json.format(msgspec.json.encode(entry)).decode(),
        text=printer.lines,
        command=f"kerf explain {reader.quoted} decision/{position}",
    )


def again(reader: RecordReader, position: int) -> AgainAnswer:
    """Decide the turn of a position again, on the state that the record had before it: the same, or what differs."""
    report, printer = verify_turn(reader.store, position), LinesPrinter()
    turn_report_text(printer, report)
    return AgainAnswer(report.answer, printer.lines, f"kerf verify {reader.quoted} --turn {position}")


def funnels_of(explained: Explanation) -> list[Funnel]:
    """Return the funnels of a pod, or of a node when it was launched."""
    how = explained.how if isinstance(explained, PodExplanation | ClaimExplanation) else None
    return _funnels(how) if how is not None else []


def _moves(found: DecisionExplanation) -> tuple[tuple[Move, ...], tuple[Verdict, ...]]:
    result = found.result
    if isinstance(result, ProposedMovesResult):
        return result.proposed, result.verdicts
    if isinstance(result, MoveStepResult):
        return (result.begun,) if result.begun is not None else (), result.verdicts
    return (), getattr(result, "verdicts", ())


def _move(move: Move) -> MoveLine:
    replacements = [Choice(new.instance_types[0] if new.instance_types else "", new.price) for new in move.replacements]
    return MoveLine(why=move.why, claims=move.claims, replacements=replacements, savings=move.savings)


def _piece(plan: PlanExplanation) -> Piece:
    how = plan.how
    return Piece(
        place=plan.claim,
        pods=plan.pods,
        asked=_asked(how, plan.kinds) if how is not None else [],
        refused=[_refused(how, number) for number in range(len(how.refused))] if how is not None else [],
        funnels=_funnels(how) if how is not None else [],
        chosen=[_choice(chosen) for chosen in how.chosen] if how is not None else [],
        chosen_types=how.chosen_types if how is not None else 0,
        reasons=[sentence(reason) for reason in plan.reasons],
    )


def _asked(how: PlacementExplanation, kinds: tuple[KindAsked, ...]) -> list[str]:
    """A line for each kind of pods; several kinds are named by their pods."""
    asked = [kind_words(kind) for kind in kinds] if len(kinds) > 1 else [asked_words(how, each=how.pods > 1)]
    return [*asked, *(f"gave up {given_up_sentence(gone)}" for gone in how.gave_up)]


def _refused(how: PlacementExplanation, number: int) -> str:
    refused = how.refused[number]
    others = f" and {refused.count - 1} more" if refused.count > 1 else ""
    return f"not on {refused.example}{others}: {sentence(refused.reason)}"


def _funnels(how: PlacementExplanation) -> list[Funnel]:
    pools = [pool for pool, before in zip(how.pools, (None, *how.pools), strict=False) if pool != before]
    return [_funnel(pool, how) for pool in pools]


def _funnel(pool: PoolFunnel, how: PlacementExplanation) -> Funnel:
    left, steps = pool.types, list[Step]()
    for cut in pool.cuts:
        left -= cut.types
        steps.append(Step(cut_sentence(cut), cut.types, left))
    if pool.reason is None and pool.left > how.chosen_types:
        steps.append(Step("too small for all pods that share the node", pool.left - how.chosen_types, how.chosen_types))
    return Funnel(
        node_pool=pool.node_pool,
        claim=pool.claim,
        types=pool.types,
        steps=steps,
        left=steps[-1].left if steps else left,
        cheapest=[_choice(choice) for choice in pool.cheapest],
        near=[near_miss_sentence(miss) for miss in pool.near] if pool.reason is not None else [],
        reason=sentence(pool.reason) if pool.reason is not None else "",
    )


def _choice(choice: PricedType) -> Choice:
    return Choice(choice.instance_type, choice.price if isfinite(choice.price) else None)


def _linked(event: Event, after: int = 0) -> LinkedEvent:
    return LinkedEvent(
        position=event.position,
        at=event.at,
        subject=event.subject,
        level=event.level,
        text=event_sentence(event),
        after=after,
    )
