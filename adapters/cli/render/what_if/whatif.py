"""The answer of a what-if as a plan."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.text import some
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets
from kerf.projections.prose.amounts import count, dollars, duration, moment
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.reasons import sentence, sentences
from kerf.replay.what_if.comparison import Difference
from kerf.replay.what_if.outcome import LeavingNode, NewNode, Outcome
from kerf.replay.what_if.whatif import WhatIf

_PASSES = {
    "provision": "a provisioning pass",
    "moves": "a disruption pass (what it proposes is looked at again before it starts)",
    "move": "the start of a move",
    "disrupt": "a disruption that leaves no choice",
    "static": "the size of a static NodePool",
}
EXACT = "Exact is this one decision. What the cluster would have done after it, the record cannot know."
_STYLES = {"+": "good", "-": "error", "~": "warning"}


def whatif_text(printer: Printer, answer: WhatIf) -> None:
    printer.line(f"What if, at {moment(answer.at)} (position {answer.position}):", "title")
    for change in answer.changes:
        printer.line(f"  {change}")
    for line in left_out_lines(answer):
        printer.line(f"  {line}", "warning")
    printer.line()
    printer.line(f"Without the change: {decision_words(answer.unchanged, answer)}")
    if not answer.as_recorded:
        printer.line(
            "                    The record has another decision there: kerf verify says how they differ.", "warning"
        )
    printer.line(f"With the change:    {decision_words(answer.changed, answer)}")
    printer.line()
    if not answer.differences:
        same = "The change makes no difference to the next decision."
        printer.line(same if answer.changed.deciders else "Nothing is decided because of the change.")
    for difference in answer.differences:
        first, *rest = list(difference_lines(difference))
        printer.line(f"  {difference.sign} {first}", _STYLES[difference.sign])
        for line in rest:
            printer.line(f"      {line}")
    if answer.differences:
        printer.line()
    _sums(printer, answer)
    if answer.going:
        printer.line(f"  not counted, as on the way out already: {some(answer.going)}")
    if answer.then is not None:
        _then(printer, answer.then, answer)
    for decider in answer.older:
        printer.line(f"The record has another version of a decider ({decider}): both decisions are today's.")
    printer.line(EXACT)


def left_out_lines(answer: WhatIf) -> Iterator[str]:
    """Say what the record changes of the same objects up to the decision: with the change it does not come."""
    for left_out in answer.left_out:
        when = f"+{duration(left_out.at - answer.at)}, position {left_out.position}"
        yield f"The record changes {left_out.kind}/{left_out.name} later ({when}). With the change that is left out."


def decision_words(outcome: Outcome, answer: WhatIf) -> str:
    """Say what is decided, when, and what comes of it in numbers."""
    if not outcome.deciders:
        return f"nothing is decided up to {moment(outcome.at)} (+{duration(outcome.at - answer.at)})"
    passes = " and ".join(_PASSES.get(decider, decider) for decider in outcome.deciders)
    where = f", as recorded at position {outcome.position}" if outcome.position else ""
    return f"{passes} at {moment(outcome.at)} (+{duration(outcome.at - answer.at)}){where}: {_sum_of(outcome)}"


def _sum_of(outcome: Outcome) -> str:
    waiting = sum(len(group.pods) for group in outcome.waiting)
    rounds = f" ({outcome.beyond_budget} of them once the budgets have room)" if outcome.beyond_budget else ""
    parts = [
        f"{count(len(outcome.launched), 'node')} launched" if outcome.launched else "",
        f"{count(len(outcome.leaving), 'node')} to go{rounds}" if outcome.leaving else "",
        f"{count(len(outcome.places), 'pod')} placed" if outcome.places else "",
        f"{count(waiting, 'pod')} without a place" if waiting else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing to do"


def _then(printer: Printer, then: Outcome, answer: WhatIf) -> None:
    """Where the pods of nodes that go would be planned to: no part of the plan, since it is not exact."""
    printer.line(f"Then, if nothing else happened (not exact): {decision_words(then, answer)}")
    for node in then.launched:
        printer.line(f"      {node.name}: {_node(node)}, for {count(len(node.pods), 'pod')}")
    for group in then.waiting:
        printer.line(
            f"      without a place: {count(len(group.pods), 'pod')}: {_no_place(group.reasons, group.crowding)}"
        )


def _no_place(reasons: tuple[Reason, ...], crowding: tuple[CrowdingDaemonSets | None, ...]) -> str:
    behind = dict(zip(map(id, reasons), crowding, strict=False))
    return sentences(reasons, lambda reason: daemonsets_in_words(behind.get(id(reason))))


def _sums(printer: Printer, answer: WhatIf) -> None:
    old, new = answer.unchanged, answer.changed
    if not answer.compared:
        printer.line(
            "The decision without the change is still to come then: the plan shows what the change alone brings about."
        )
        printer.line(f"cost: {dollars(answer.price)}/h → {dollars(new.price)}/h; evictions: {new.evictions}")
        return
    more = new.price - old.price
    sign = "the same" if abs(more) < 0.00005 else f"{dollars(abs(more))}/h {'more' if more > 0 else 'less'}"
    printer.line(
        f"cost after it: {dollars(old.price)}/h without, {dollars(new.price)}/h with the change ({sign}); "
        f"evictions: {old.evictions} without, {new.evictions} with"
    )


def difference_lines(difference: Difference) -> Iterator[str]:
    """One line that says what, and more that say why."""
    old, new, pods = difference.old, difference.new, difference.pods
    name = difference.name
    if isinstance(old, NewNode) and isinstance(new, NewNode):
        # names follow from the position of a decision: by the old one the record and the lines on pods know the node
        other_name = f", as {name}" if name != old.name else ""
        yield f"{old.name} is launched otherwise{other_name}: {_change_of(old, new)}"
    elif isinstance(new, NewNode):
        yield f"{name} is launched: {_node(new)}"
        yield _for(pods)
    elif isinstance(old, NewNode):
        yield f"{name} is not launched: {_node(old)}"
        yield _for(pods)
    elif isinstance(new, LeavingNode) and isinstance(old, LeavingNode):
        why = sentence(new.why) if old.why == new.why else f"{sentence(old.why)} → {sentence(new.why)}"
        yield f"{_leaving(new)} goes otherwise: {why}"
        yield f"evicts {count(len(old.evicted), 'pod')} → {count(len(new.evicted), 'pod')}"
    elif isinstance(new, LeavingNode):
        yield f"{_leaving(new)} goes: {sentence(new.why)}"
        if pods:
            yield f"evicts {count(len(pods), 'pod')}: {some(pods)}"
    elif isinstance(old, LeavingNode):
        why = f": {sentences(difference.reasons)}" if difference.reasons else ""
        yield f"{_leaving(old)} stays{why}"
    else:
        yield _pods(difference)


def _node(node: NewNode) -> str:
    capacity = " or ".join(node.capacity_types)
    return f"{node.instance_type} ({capacity}) of NodePool {node.node_pool}, from {dollars(node.price)}/h"


def _change_of(old: NewNode, new: NewNode) -> str:
    parts = [
        ("type", old.instance_type, new.instance_type),
        ("capacity", " or ".join(old.capacity_types), " or ".join(new.capacity_types)),
        ("price from", f"{dollars(old.price)}/h", f"{dollars(new.price)}/h"),
        ("pods", str(len(old.pods)), str(len(new.pods))),
        ("in place of", ", ".join(old.replaces) or "none", ", ".join(new.replaces) or "none"),
    ]
    changed = [f"{what} {was} → {now}" for what, was, now in parts if was != now]
    return ", ".join(changed) or f"other pods: {some(new.pods)}"


def _for(pods: tuple[str, ...]) -> str:
    return f"for {count(len(pods), 'pod')}: {some(pods)}" if pods else "for no pod that waits"


def _leaving(node: LeavingNode) -> str:
    place = f" (node {node.node})" if node.node else ""
    return f"{node.name}{place}, {node.instance_type or 'not launched'} at {dollars(node.price)}/h,"


def _pods(difference: Difference) -> str:
    pods = f"{count(len(difference.pods), 'pod')} ({some(difference.pods)})"
    if difference.what == "placed":
        return f"{pods} on {difference.new}"
    if difference.what == "placed-elsewhere":
        return f"{pods}: {difference.old} → {difference.new}"
    if difference.what in ("no-place", "still-no-place"):
        still = "still " if difference.what == "still-no-place" else ""
        return f"{pods} {still}without a place: {_no_place(difference.reasons, difference.crowding)}"
    return f"{pods} not planned for" + (f"; without the change on {difference.old}" if difference.old else "")
