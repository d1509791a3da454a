"""The explanation of a pod, as text."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from kerf.adapters.cli.render.explain.not_asked import not_asked_text
from kerf.adapters.cli.render.explain.placement import CUT_SINCE, launch_text, placement_text
from kerf.adapters.cli.render.explain.selectors import selector_words
from kerf.adapters.cli.render.figures.tables import common_words
from kerf.adapters.cli.render.notes import note_sentence
from kerf.adapters.cli.render.output import Printer
from kerf.projections.prose.amounts import count, duration, moment
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.reasons import sentence
from kerf.projections.prose.refused_offerings import refused_in_words
from kerf.replay.explain.counted_pods import CountedPods
from kerf.replay.explain.pod import UNBOUND, WAITING, LostLaunches, PodExplanation
from kerf.replay.history.displacement import Displacement
from kerf.replay.history.pod_histories import PodDecision

_BRIEF = {"new-claim": "planned onto a new node", "existing-node": "planned onto a node that was there"}
NOT_ASKED_FOR = "kube-scheduler has not asked for a node: scheduling gates hold it, or it is another scheduler's"
FIRST_SHOWN, LATEST_SHOWN = 3, 5
"""How many lines of decisions about a pod are shown at most."""
_RESULTS = {
    "new-claim": "planned onto the new node {place}",
    "existing-node": "planned onto {place}",
    "no-place": "no place",
    "ignored": "not looked at",
    "later": "may not leave its node yet",
    "not-reached": "not reached within the effort limit",
}


def pod_text(printer: Printer, explained: PodExplanation) -> None:
    printer.line(
        f"pod {explained.pod}: {_where(explained)}, as of position {explained.position} ({moment(explained.at)})",
        "title",
    )
    if explained.waited:
        was = "has been" if explained.status in (WAITING, UNBOUND) else "was"
        printer.line(f"it {was} without a node for {duration(explained.waited)}")
    if explained.came_for is not None:
        printer.line(came_for_text(explained.came_for, explained.node))
    if explained.left is not None:
        printer.line(left_text(explained.left))
    _decisions(printer, explained.looks)
    if explained.look_again:
        printer.line(f"decision {explained.look_again} came to the same result again")
    if explained.lost is not None:
        printer.line(_lost(explained.lost), "warning")
    if explained.expected:
        printer.line(f"the plan meant it for {explained.expected}: kube-scheduler chose {explained.node}", "warning")
    refused = dict(zip(map(id, explained.reasons), explained.refused, strict=False))
    crowding = dict(zip(map(id, explained.reasons), explained.crowding, strict=False))
    for reason in explained.reasons:
        more = daemonsets_in_words(crowding.get(id(reason))) + refused_in_words(reason, refused.get(id(reason)))
        printer.line(f"no place: {sentence(reason)}{more}", "warning")
    for note in explained.mistyped:
        printer.line(note_sentence(note), "warning")
    for counted in explained.counted:
        printer.line(f"its {counted.rule} over {counted.key} counts {_counted(counted)}")
    not_asked_text(printer, explained.not_asked)
    for reason in explained.kept:
        printer.line(f"it stays for now: {sentence(reason)}")
    if explained.how is not None:
        placement_text(printer, explained.how)
    elif explained.shortened:
        printer.line(CUT_SINCE)
    elif not explained.looks and explained.came_for is None:
        printer.line("no provisioning decision was about it" + _unasked(explained))
    if explained.launch is not None:
        launch_text(printer, explained.launch)


def came_for_text(origin: Displacement, node: str) -> str:
    """Says of a pod in whose place it came."""
    left = "ended with" if origin.how == "ended" else f"{origin.how} from"
    origin_text = f"it came in the place of {origin.pod}, {left} {origin.node}, which had to go: {origin.why}"
    if not origin.planned:
        return origin_text
    where = "this node" if origin.planned == node else origin.planned
    return f"{origin_text}; the move {origin.move} had {where} in mind for it"


def left_text(end: Displacement) -> str:
    """Says of a pod why it left its node."""
    after = f"; {end.pod} came in its place" if end.pod else "; nothing came in its place"
    return f"it was {end.how} from {end.node}, which had to go: {end.why}{after}"


def _decisions(printer: Printer, looks: tuple[PodDecision, ...]) -> None:
    """The decisions about the pod. Consecutive ones with the same result share a line. Of many lines the first and the
    latest are shown."""
    runs = [(key, list(alike)) for key, alike in groupby(looks, key=lambda look: (look.result, look.place))]
    for number, ((result, place), (first, *rest)) in enumerate(runs):
        if len(runs) > FIRST_SHOWN + LATEST_SHOWN and FIRST_SHOWN <= number < len(runs) - LATEST_SHOWN:
            if number == FIRST_SHOWN:
                printer.line(_left_out([alike for _, alike in runs[FIRST_SHOWN:-LATEST_SHOWN]]))
            continue
        again = f" (and {count(len(rest), 'time')} more, last by decision {rest[-1].position})" if rest else ""
        printer.line(f"decision {first.position} at {moment(first.at)}: {_RESULTS[result].format(place=place)}{again}")


def _lost(lost: LostLaunches) -> str:
    said = f"{count(lost.nodes, 'node')} planned for it could not be launched: {', '.join(lost.reasons)}"
    if not lost.refused:
        return said
    shared = f", all with {common_words(lost.shared)}" if lost.shared else ""
    return f"{said}; {count(lost.refused, 'refusal')}{shared}"


def _left_out(runs: list[list[PodDecision]]) -> str:
    """Count by result the decisions that are not shown, the most frequent first."""
    results = Counter(look.result for alike in runs for look in alike)
    counts = ", ".join(f"{times} times {_BRIEF.get(what, _RESULTS[what])}" for what, times in results.most_common())
    return f"… {sum(results.values())} more: {counts}"


def _counted(counted: CountedPods) -> str:
    where = f", in namespace {', '.join(counted.namespaces)}" if counted.namespaces else ""
    least = f"; with fewer than {counted.min_domains} domains (minDomains) the fewest pods of one count as 0"
    return selector_words(counted.selector, everything="all pods") + where + least * (counted.min_domains > 1)


def _where(explained: PodExplanation) -> str:
    return f"{explained.status} to {explained.node}" if explained.status == "bound" else explained.status


def _unasked(explained: PodExplanation) -> str:
    if explained.status == "bound":
        return ": kube-scheduler found room on a node that was there"
    if explained.status == "unbound":
        return f": {NOT_ASKED_FOR}"
    return ": the window may still be open" if explained.status == "waiting" else ""
