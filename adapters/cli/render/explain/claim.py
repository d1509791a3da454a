"""The explanation of a NodeClaim, as text: first why it goes or stays, then what it was launched for, and its life."""

from __future__ import annotations

from kerf.adapters.cli.render.explain.node import methods_text, removal_text
from kerf.adapters.cli.render.explain.placement import CUT_SINCE, launch_text, placement_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.engine.model.missing_knowledge import Missing, words_of
from kerf.engine.nodeclaim.state_table import TERMINATED
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.changes import WHAT_WOULD_FREE_IT
from kerf.projections.prose.drift import verdict_words as judged_words
from kerf.projections.prose.overlaid_prices import overlaid_words
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.claim import ClaimExplanation, Staying
from kerf.replay.explain.last_pod_change import PodChange

MAX_DRAINED_PODS_SHOWN = 10
"""How many of the pods that hold up a drain are named."""


def claim_text(printer: Printer, explained: ClaimExplanation) -> None:
    node = f", node {explained.node}" if explained.node else ""
    printer.line(
        f"NodeClaim {explained.claim}{node}: {explained.state}, "
        f"as of position {explained.position} ({moment(explained.at)}), {_cost(explained)}",
        "title",
    )
    if explained.waiting is not None:
        printer.line(f"it waits: {sentence(explained.waiting)}")
    _leaving(printer, explained)
    if explained.removal is not None:
        removal_text(printer, explained.removal, explained.removed)
    if explained.staying is not None:
        _staying(printer, explained.staying)
    if explained.disturbed is not None:
        printer.line(f"its pods last changed at {moment(explained.disturbed.at)}{_changed(explained.disturbed)}")
    if explained.overlaid is not None:
        printer.line(f"it is {overlaid_words(explained.overlaid)}")
    methods_text(printer, explained.methods)
    _origin(printer, explained)
    printer.line("its life:", "title")
    for step in explained.steps:
        detail = f" ({step.detail})" if step.detail else ""
        printer.line(f"  {moment(step.at)}  +{duration(step.took):<9} {step.position:>7}  {step.type}{detail}")
    if explained.verdicts and not explained.methods:  # which have their own histories
        printer.line("what was found about removing it:", "title")
    for judged in () if explained.methods else explained.verdicts:
        verdict = judged.verdict
        text = f"{verdict.action}: {judged_words(verdict.reason, verdict.differences)}"
        printer.line(f"  {moment(judged.at)}             {judged.position:>7}  {text}")
    if explained.unknown:
        printer.line(f"not known, for the record is partial: {', '.join(map(words_of, explained.unknown))}")


def _origin(printer: Printer, explained: ClaimExplanation) -> None:
    """Print what it was launched for, and how it became what it is."""
    if explained.adopted and explained.unknown:
        printer.line("it was there before the record begins", "title")
    elif explained.adopted:
        printer.line("it was found in the cluster without a record, and adopted", "title")
    elif explained.launched_for:
        who = some(explained.launched_for, MAX_NAMES_SHOWN)
        printer.line(f"launched for {who}, by decision {explained.decision}", "title")
    elif explained.decider == "static":
        size = f"so that NodePool {explained.node_pool} keeps its size"
        printer.line(f"launched {size}, by decision {explained.decision}", "title")
    if explained.replaces:
        printer.line(f"it came in the place of {some(explained.replaces, MAX_NAMES_SHOWN)}")
    if explained.how is not None:
        placement_text(printer, explained.how)
    elif explained.shortened:
        printer.line(CUT_SINCE)
    if explained.launch is not None:
        launch_text(printer, explained.launch)


def _cost(explained: ClaimExplanation) -> str:
    if Missing.PRICES in explained.unknown:
        return "its cost is not known"
    return f"{dollars(explained.cost)} {'in all' if explained.state == TERMINATED else 'so far'}"


def _leaving(printer: Printer, explained: ClaimExplanation) -> None:
    """Print the pods that hold up a drain, why, and until when."""
    for pod in explained.leaving[:MAX_DRAINED_PODS_SHOWN]:
        tries = f" ({count(pod.attempts, 'attempt')})" if pod.attempts > 1 else ""
        printer.line(f"  {pod.pod}: {sentence(pod.reason)}{tries}", "warning")
    if len(explained.leaving) > MAX_DRAINED_PODS_SHOWN:
        printer.line(f"  and {len(explained.leaving) - MAX_DRAINED_PODS_SHOWN} more", "warning")
    if explained.leaving and explained.forced_at:
        printer.line(f"  those still there are deleted by force, to be gone by {moment(explained.forced_at)}")
    elif explained.leaving:
        printer.line("  without a terminationGracePeriod it waits for as long as they stay")


def _changed(change: PodChange) -> str:
    told = [
        f"{some(who, MAX_NAMES_SHOWN)} {what}" for who, what in ((change.came, "came"), (change.left, "left")) if who
    ]
    return f": {', '.join(told)}" if told else ""


def _staying(printer: Printer, staying: Staying) -> None:
    printer.line(f"it is still here: {sentence(staying.reason)}", "title")
    if staying.pods:
        more = f" and {staying.pods - len(staying.held_by)} more" if staying.pods > len(staying.held_by) else ""
        printer.line(f"  {count(staying.pods, 'pod')} on it to move: {', '.join(staying.held_by)}{more}")
    change = WHAT_WOULD_FREE_IT.get(staying.reason.code)
    if change is not None:
        printer.line(f"  it may go when {change}")
    if staying.again:
        printer.line(f"  something cheaper was refused when last asked for: tried again at {moment(staying.again)}")
    if staying.due:
        printer.line(f"  it is looked at again at {moment(staying.due)} at the latest")
