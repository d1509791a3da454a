"""The explanation of a PodDisruptionBudget, as text: what it allows, for which pods, and what it holds."""

from __future__ import annotations

from kerf.adapters.cli.render.explain.selectors import selector_words
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.projections.prose.amounts import count, duration, moment
from kerf.projections.prose.few_words import few_words
from kerf.replay.explain.user_objects.budget import GONE, BudgetExplanation, HeldNode


def budget_text(printer: Printer, explained: BudgetExplanation) -> None:
    printer.line(
        f"PodDisruptionBudget {explained.budget}: {_allows(explained)}, as of position {explained.position} "
        f"({moment(explained.at)})",
        "title",
    )
    if explained.status == GONE:
        return
    printer.line(f"it asks for {_terms(explained)}, of {selector_words(explained.selector)}")
    _state(printer, explained)
    if explained.allows_none_since:
        since = f"it has allowed none since {moment(explained.allows_none_since)}"
        printer.line(f"{since}, for {duration(explained.at - explained.allows_none_since)}", "warning")
    if explained.for_good:
        growth = ", or its workload has more pods" if explained.growth_helps else ""
        printer.line(f"none of its pods may go until it is changed{growth}", "warning")
    if explained.overlaps:
        names = some(explained.overlaps, MAX_NAMES_SHOWN)
        said = "some of its pods are also under PodDisruptionBudget"
        printer.line(f"{said} {names}: the API server evicts no pod that is under several", "warning")
    _pods(printer, explained)
    _held(printer, explained)


def _allows(explained: BudgetExplanation) -> str:
    if explained.status == GONE:
        return "gone"
    return f"allows {count(explained.allowed, 'eviction')} now" if explained.allowed else "allows no eviction now"


def _terms(explained: BudgetExplanation) -> str:
    parts = (("maxUnavailable", explained.max_unavailable), ("minAvailable", explained.min_available))
    asked = [f"{name} {text}" for name, text in parts if text is not None]
    unhealthy = ["unhealthyPodEvictionPolicy AlwaysAllow"] if explained.always_allow_unhealthy else []
    return ", ".join(asked + unhealthy) or "minAvailable 1"


def _state(printer: Printer, explained: BudgetExplanation) -> None:
    if not explained.pods:
        printer.line("no pod is selected by it", "warning")
        return
    must = f"; {explained.desired} of {explained.expected} must be" if explained.expected else ""
    printer.line(f"{explained.healthy} of its {count(len(explained.pods), 'pod')} are healthy{must}")


def _pods(printer: Printer, explained: BudgetExplanation) -> None:
    for own in explained.workloads:
        printer.line(f"  {count(own.pods, 'pod')} of {own.kind} {own.workload}, {own.healthy} healthy")
    if explained.nodes:
        where = [f"{node} ({number})" for node, number in explained.nodes.items()]
        printer.line(f"  on {some(where, MAX_NAMES_SHOWN)}")


def _held(printer: Printer, explained: BudgetExplanation) -> None:
    if not explained.drains and not explained.stays:
        printer.line("it holds no node now")
    for held in explained.drains:
        went = f"the drain of {held.node} ({few_words(held.why)}) waits for {_who(held)}"
        printer.line(f"{went}, since {_since(held, explained.at)}", "warning")
        asked = f"  asked {count(held.attempts, 'time')}" if held.attempts else "  not asked yet"
        forced = f"; deleted by force at {moment(held.forced_at)}" if held.forced_at else "; nothing ends the wait"
        printer.line(asked + forced)
        if held.move:
            printer.line(f"  the move {held.move} waits with it")
    for held in explained.stays:
        drifted = f"; it drifted {duration(explained.at - held.drifted_since)} ago" if held.drifted_since else ""
        printer.line(f"{held.node} stays for {_who(held)}: not to be moved since {_since(held, explained.at)}{drifted}")


def _who(held: HeldNode) -> str:
    return f"{count(len(held.pods), 'pod')} ({some(held.pods)})"


def _since(held: HeldNode, now: int) -> str:
    return f"{moment(held.since)}, for {duration(now - held.since)}"
