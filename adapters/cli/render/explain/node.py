"""Why a node was removed, and why it is still here, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import quantities
from kerf.adapters.cli.render.text import MAX_NAMES_SHOWN, some
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.changes import budget_words, change_words
from kerf.projections.prose.drift import difference_words, not_compared_words, verdict_words
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.method_verdicts import MethodVerdict
from kerf.replay.history.removal import Cause, DrainedPod, Removal, RemovalMove, ReplacementNode
from kerf.replay.what_if.node import PodsNeed, WhatWouldChange, WouldGo

MAX_VERDICTS_SHOWN = 10
"""How many verdicts of one method are printed, the latest among them."""


def removal_text(printer: Printer, removal: Removal, short: str) -> None:
    printer.line(f"it had to go because of: {short} (position {removal.position})", "title")
    printer.line(f"  {sentence(removal.reason)}")
    for difference in removal.differences:
        printer.line(f"    {difference_words(difference)}")
    if removal.move is not None:
        _move(printer, removal.move)
    _causes(printer, removal.causes)
    _pods(printer, removal.pods)


def _move(printer: Printer, move: RemovalMove) -> None:
    together = len(move.claims) > 1
    saves = "together they save" if together else "it saves"
    saved = f"{saves} {dollars(move.savings)}/h; " if move.savings else ""
    if together:
        printer.line(f"  {count(len(move.claims), 'node')} went together: {some(move.claims, MAX_NAMES_SHOWN)}")
    again = f", looked at again {duration(move.looked_again)} later" if move.looked_again else ""
    printer.line(f"  {saved}proposed by decision {move.proposed}{again}, started by decision {move.started}")
    for use in move.budgets:
        printer.line(f"  {budget_words(use)}")
    for new in move.replacements:
        printer.line(f"  before it, {_successor(new)}")
    if not move.replacements:
        printer.line("  nothing was launched in its place")


def _successor(new: ReplacementNode) -> str:
    if not new.instance_type:
        return f"{new.claim} was asked for"
    where = f"{new.claim} was launched: a {new.instance_type} in {new.zone} at {dollars(new.price)}/h"
    return f"{where}, as node {new.node} in service at {moment(new.ready)}" if new.ready else where


def _causes(printer: Printer, causes: Sequence[Cause]) -> None:
    printer.line("  how it came about:")
    for cause in causes:
        printer.line(f"    {moment(cause.at)} {cause.position:>7}  {sentence(cause.reason)}")


def _pods(printer: Printer, pods: Sequence[DrainedPod]) -> None:
    if pods:
        printer.line(f"  {count(len(pods), 'pod')} on it when its drain began:")
    for (how, held, came, node), alike in groupby(pods, key=_went):
        who = list(alike)
        if how == "there":
            went = ""
        elif came:
            where = f" on {node}" if node else ", without a node so far"
            went = f"; in their place {some([pod.successor for pod in who], MAX_NAMES_SHOWN)}{where}"
        else:
            went = "; nothing in their place"
        kept = f" ({held})" if held else ""
        printer.line(f"    {how}{kept}: {some([pod.pod for pod in who], MAX_NAMES_SHOWN)}{went}")


def _went(pod: DrainedPod) -> tuple[str, str, bool, str]:
    """What pods share that are told in one line: how they went, what had kept them, and where others came."""
    return pod.how, sentence(pod.held) if pod.held is not None else "", bool(pod.successor), pod.node


def methods_text(printer: Printer, methods: Sequence[MethodVerdict]) -> None:
    if methods:
        printer.line("what each method says of it now:", "title")
    for method in methods:
        drifted = f"{verdict_words(method.drifted, method.differences)}; " if method.drifted is not None else ""
        printer.line(f"  {method.method:<13} {drifted}{sentence(method.reason)}{_until(method)}")
        if method.not_compared:
            printer.line(f"    not compared, since one side is not known: {not_compared_words(method.not_compared)}")
        if method.way is not None:
            _way(printer, method.way, method.acts)
        _history(printer, method)


def _until(method: MethodVerdict) -> str:
    return f"; that may change at {moment(method.due)}" if method.due else ""


def _way(printer: Printer, way: WhatWouldChange, acts: bool) -> None:
    """What follows "if A, and if B" needs both; what the method says after A alone is in `way.between`."""
    conditions = ", and if ".join(change_words(change) for change in way.changes)
    if way.goes is not None:
        start = "it would go" if acts or not conditions else f"it would go if {conditions}"
        printer.line(f"    {start}: {_goes(way.goes)}")
    elif conditions and way.stays is not None and way.stays.code != "goes-as-empty":
        printer.line(f"    if {conditions}, it would still stay: {sentence(way.stays)}")
    if way.alone is not None:
        printer.line(f"    by itself it could go: {_goes(way.alone)}; the moves that save most together leave it")
    if way.need is not None:
        printer.line(f"    {_need(way.need)}")
        for reason in way.need.nowhere:
            printer.line(f"      no place: {sentence(reason)}")
    for goes, alike in groupby(way.without, key=lambda each: _goes(each.goes)):
        who = [without.pod for without in alike]
        pods = who[0] if len(who) == 1 else f"any one of {', '.join(who)}"
        printer.line(f"    without {pods} it would go: {goes}")


def _goes(goes: WouldGo) -> str:
    parts = []
    if len(goes.claims) > 1:
        parts.append(f"together with {len(goes.claims) - 1} more")
    if goes.replacements:
        kinds = Counter(goes.replacements).items()
        new = " and ".join(f"a {kind}" if number == 1 else f"{number} {kind}" for kind, number in kinds)
        parts.append(f"for {new} at {dollars(goes.price)}/h")
    if goes.onto:
        parts.append(f"its pods to {some(goes.onto, MAX_NAMES_SHOWN)}")
    if abs(goes.savings) >= 0.00005:
        parts.append(f"{'saving' if goes.savings > 0 else 'costing'} {dollars(abs(goes.savings))}/h")
    return ", ".join(parts) or "nothing in its place"


def _need(need: PodsNeed) -> str:
    asked = quantities({name: amount for name, amount in need.requests.items() if name != "pods"}) or "nothing"
    asks = f"its {count(need.pods, 'pod')} to move {'asks' if need.pods == 1 else 'ask'} for {asked}"
    if need.instance_type:
        cheapest = f"a {need.instance_type} at {dollars(need.price)}/h"
        return f"{asks}; the cheapest new node for what finds no room elsewhere is {cheapest}"
    return f"{asks}; it would take {count(need.nodes, 'new node')}" if need.nodes else asks


def _history(printer: Printer, method: MethodVerdict) -> None:
    if not method.history:
        return
    latest = method.history[-1]
    if latest.verdict.reason in (method.reason, method.drifted):
        printer.line(f"    so since {moment(latest.at)} (position {latest.position})")
    else:
        said = verdict_words(latest.verdict.reason, latest.verdict.differences)
        printer.line(f"    when last recorded, {moment(latest.at)} (position {latest.position}): {said}")
    for earlier in reversed(method.history[-MAX_VERDICTS_SHOWN:-1]):
        verdict = earlier.verdict
        printer.line(
            f"      before, {moment(earlier.at)} (position {earlier.position}): "
            f"{verdict_words(verdict.reason, verdict.differences)}"
        )
