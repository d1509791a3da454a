"""The explanation of a decision, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.adapters.cli.render.explain.placement import CUT_SINCE, is_kind, kind_words, placement_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, dollars, some
from kerf.engine.record.decisions import ProvisionResult
from kerf.projections.prose.amounts import count, moment
from kerf.projections.prose.changes import budget_words
from kerf.projections.prose.reasons import sentence
from kerf.projections.timeline.event import Event, event_sentence
from kerf.replay.explain.decision import DecisionExplanation
from kerf.replay.explain.tried_sets import TriedSet

MAX_SETS_SHOWN = 12
"""Of the sets of nodes that a disruption pass tried, so many are shown."""


def decision_text(printer: Printer, explained: DecisionExplanation, lines: list[str]) -> None:
    printer.line(f"decision {explained.position} ({explained.decider}) at {moment(explained.now)}", "title")
    printer.line(
        f"it looked at the record up to position {explained.looked_at}; decision version {explained.version}, "
        f"today's is {explained.version_today}; {count(explained.intents, 'intent')}"
    )
    for line in lines:
        printer.line(f"  {line}")
    if not isinstance(explained.result, ProvisionResult):
        printer.line("kerf verify tells whether it would be decided so today")
    elif explained.shortened:
        printer.line(CUT_SINCE)
    for plan in explained.plans:
        target = f"{plan.claim}: " if plan.claim else "no place: "
        printer.line(target + some(plan.pods, MAX_NAMES_SHOWN), "title")
        for reason in plan.reasons:
            printer.line(f"  {sentence(reason)}", "warning")
        if plan.how is not None:
            placement_text(printer, plan.how)
            for kind in plan.kinds:
                if not is_kind(plan.how, kind):
                    printer.line(f"  another kind: {kind_words(kind)}")
    if explained.tried:
        _tried(printer, explained.tried)
    for budget in explained.budgets:
        printer.line(f"budgets: {budget_words(budget)}")
    _events(printer, "what brought it about", explained.links.causes)
    _events(printer, "what came of it", [came.event for came in explained.links.consequences])


def _tried(printer: Printer, tried: Sequence[TriedSet]) -> None:
    """The sets of nodes that a pass tried. Single nodes that cannot go come last: the verdicts tell of them, too."""
    printer.line(f"it tried {count(len(tried), 'set')} of nodes", "title")
    for one in tried[:MAX_SETS_SHOWN]:
        printer.line(f"  {some(one.nodes, MAX_NAMES_SHOWN)}: {_outcome(one)}")
    more = len(tried) - MAX_SETS_SHOWN
    if more > 0:
        printer.line(f"  {more:,} more: --json has them all")


def _outcome(tried: TriedSet) -> str:
    if tried.reason is not None:
        return sentence(tried.reason)
    how = "removing them" if len(tried.nodes) > 1 else "removing it"
    how = how.replace("removing", "replacing") if tried.action == "replace" else how
    saved = f"{how} saves {dollars(tried.savings)}/h, with {count(tried.evictions, 'eviction')}"
    return f"chosen: {saved}" if tried.chosen else f"{saved}; other sets were chosen"


def _events(printer: Printer, title: str, events: Iterable[Event]) -> None:
    for number, event in enumerate(events):
        if not number:
            printer.line(title, "title")
        printer.line(f"  {moment(event.at)}, position {event.position}: {event_sentence(event)}", event.level)
