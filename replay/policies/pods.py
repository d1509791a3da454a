"""Assertions about pods: who is evicted, and who waits for a node."""

from __future__ import annotations

from math import ceil

from kerf.engine.model.missing_knowledge import Missing
from kerf.projections.figures.measures import HOUR, HOUR_MS, hour_of
from kerf.projections.figures.waits import Wait
from kerf.projections.prose.amounts import count, duration, moment
from kerf.replay.partial_records import require
from kerf.replay.policies.evidence import Eviction, Evidence
from kerf.replay.policies.forms import WHOLE
from kerf.replay.policies.found import RECORD, Asked, Found, groups, of_words
from kerf.replay.policies.outcomes import Breach


def never_evicts(evidence: Evidence, asked: Asked) -> Found:
    """No pod that is selected is made to leave its node."""
    pods = _pods(evidence, asked)
    return Found(pods, [_evicted(eviction, "") for eviction in _evictions(evidence, asked)])


def max_evictions(evidence: Evidence, asked: Asked) -> Found:
    """At most so many pods are made to leave their nodes, in all or for each group."""
    most, per = int(asked.bound.most), asked.bound.per
    breaches = []
    found = groups(_evictions(evidence, asked), lambda eviction: ", ".join(_group(eviction, name) for name in per))
    for group, evictions in found.items():
        if len(evictions) > most:
            over = f"{count(len(evictions), 'eviction')}{f' of {group}' if group else of_words(asked.selector)}"
            breaches.append(_evicted(evictions[most], f", one more than {most} ({over})"))
    return Found(_pods(evidence, asked), breaches)


def pending_at_most(evidence: Evidence, asked: Asked) -> Found:
    """No pod, or no more than the rest of a share, waits longer for a node."""
    require(evidence.imported, Missing.PODS, "how long pods waited")
    require(evidence.imported, Missing.BINDINGS, "how long pods waited")
    end = min(evidence.lives.at, asked.window.until)
    waits = [wait for wait in evidence.waits.waits if asked.is_within(wait.since) and _waits(evidence, asked, wait)]
    late = [wait for wait in waits if wait.waited(end) > asked.bound.most]
    allowed = len(waits) - ceil(round(asked.bound.share * len(waits), 6))
    if len(late) <= allowed:
        return Found(len(waits), [])
    rule = f"longer than {duration(int(asked.bound.most))}"
    if asked.bound.share < WHOLE:
        rule += f" ({len(late)} of {count(len(waits), 'pod')} do, {allowed} may)"
    return Found(len(waits), [_late(evidence, asked, found, rule) for found in groups(late, _workload).values()])


def _late(evidence: Evidence, asked: Asked, late: list[Wait], rule: str) -> Breach:
    """Name the pod of a workload that waited longest, at the time from which on it waited too long."""
    end = min(evidence.lives.at, asked.window.until)
    longest = max(late, key=lambda wait: wait.waited(end))
    at = min(longest.since + int(asked.bound.most), end)
    still = "" if longest.until else ", and still waits"
    most = f"{longest.pod} waited {duration(longest.waited(end))} for a node{still}"
    others = f", the longest of {count(len(late), 'pod')} of {longest.workload}" if len(late) > 1 else ""
    return Breach(
        what=f"{most}{others}, {rule}",
        position=evidence.position_at(at),
        at=at,
        subjects=tuple(f"pod/{wait.pod}" for wait in late),
        command=("explain", RECORD, f"pod/{longest.pod}", "--at", moment(at)),
    )


def _workload(wait: Wait) -> str:
    return wait.workload


def _waits(evidence: Evidence, asked: Asked, wait: Wait) -> bool:
    about = {"pod": wait.pod, "workload": wait.workload, "namespace": wait.namespace}
    return asked.selector.selects(about, _labels(evidence, asked, wait.shape))


def _labels(evidence: Evidence, asked: Asked, shape: str) -> dict[str, str]:
    return dict(evidence.labels(shape)) if asked.selector.labels and shape else {}


def _pods(evidence: Evidence, asked: Asked) -> int:
    """How many pods of the record are selected by their names: an assertion about none is worth a note."""
    selector = asked.selector.of_pods
    return sum(selector.selects(pod.about, _labels(evidence, asked, pod.shape)) for pod in evidence.pods.values())


def _evictions(evidence: Evidence, asked: Asked) -> list[Eviction]:
    require(evidence.imported, Missing.EVICTIONS, "which pods were evicted")
    return [
        eviction
        for eviction in evidence.evictions
        if asked.is_within(eviction.at)
        and asked.selector.selects(eviction.about, _labels(evidence, asked, eviction.shape))
    ]


def _group(eviction: Eviction, per: str) -> str:
    if per == HOUR:
        return f"the hour from {hour_of(eviction.at // HOUR_MS * HOUR_MS)}"
    return f"{per} {eviction.about.get(per, '-')}"


def _evicted(eviction: Eviction, more: str) -> Breach:
    about = eviction.about
    why = f": {about['reason']}" if about.get("reason") else ""
    return Breach(
        what=f"{about['pod']} of {about['workload']} was evicted from {about['node']}{why}{more}",
        position=eviction.position,
        at=eviction.at,
        subjects=(f"pod/{about['pod']}", f"nodeclaim/{about['node']}"),
        command=("explain", RECORD, f"nodeclaim/{about['node']}", "--at", str(eviction.position)),
    )
