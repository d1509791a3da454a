"""While the cloud refuses launches for hours, few nodes come for nobody, and few launches are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, owned_by
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from tests.support.invariants.launches import not_given

IDLE = 2
"""Nodes that may come and go as empty without a pod, hours after the last trouble."""
REFUSED = 200
"""Launches for one pod that may be refused in an hour: each way to buy each type of a zone, every three minutes."""
HOUR = 3_600_000


def refusals_taken_ill(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Broken invariants of an undisturbed time, as (name, what happened)."""
    found = list(entries)
    idle = list(_idle(found))
    if len(idle) > IDLE:
        yield "no nodes for nobody", f"{len(idle)} nodes came and went without a pod, {idle[0]} first"
    refused: Counter[tuple[str, int]] = Counter()
    asked = {e.payload.claim: e.payload.pods for e in found if isinstance(e.payload, ev.Requested)}
    for entry in found:
        event = entry.payload
        if isinstance(event, ev.LaunchFailed) and event.kind == "insufficient-capacity":
            refused.update((uid, entry.at // HOUR) for uid in asked.get(event.claim, ()))
    for (uid, _), times in refused.items():
        if times > REFUSED:
            yield "few launches while the cloud refuses", f"{times} launches for {uid} were refused in an hour"


def _idle(entries: list[Entry]) -> Iterator[str]:
    """The claims that were launched, and ended as empty without a pod of their own. Those that did not get what they
    asked for are bounded elsewhere (`launches`)."""
    asked = {e.payload.claim: e.payload for e in entries if isinstance(e.payload, ev.Requested)}
    launches = [e.payload for e in entries if isinstance(e.payload, ev.Launched)]
    launched = {each.claim for each in launches if each.claim not in asked or not not_given(asked[each.claim], each)}
    nodes = {e.payload.claim: e.payload.node for e in entries if isinstance(e.payload, ev.Registered)}
    pods = (e.payload for e in entries if isinstance(e.payload, Pod))
    used = {pod.node for pod in pods if pod.node and not owned_by(pod, DAEMONSET)}
    for entry in entries:
        end = entry.payload
        ended = end.claim if isinstance(end, ev.Terminated) and end.why == "empty" else ""
        if ended in launched and nodes.get(ended) not in used:
            yield ended
