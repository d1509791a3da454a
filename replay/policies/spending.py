"""Assertions about what the nodes cost."""

from __future__ import annotations

from math import fsum

from kerf.engine.model.missing_knowledge import Missing
from kerf.projections.figures.cost import COST, WORKLOAD, cost_measures
from kerf.projections.figures.measures import HOUR, HOUR_MS, Measure, hour_of
from kerf.projections.prose.amounts import dollars, moment
from kerf.replay.partial_records import require
from kerf.replay.policies.evidence import Evidence
from kerf.replay.policies.found import RECORD, Asked, Found, groups, of_words
from kerf.replay.policies.outcomes import Breach

NODE = "node"


def max_cost(evidence: Evidence, asked: Asked) -> Found:
    """All nodes together cost no more."""
    by = WORKLOAD if WORKLOAD in asked.selector.names else NODE
    measures = _measures(evidence, asked, by)
    total = fsum(measure.amounts[COST] for measure in measures)
    if total <= asked.bound.most:
        return Found(len(measures), [])
    what = f"{dollars(total)}{of_words(asked.selector)}, more than {dollars(asked.bound.most)}"
    return Found(len(measures), [_breach(evidence, what, measures, (asked.window.since, asked.window.until), by)])


def max_hourly_cost(evidence: Evidence, asked: Asked) -> Found:
    """No hour of the clock costs more."""
    measures = _measures(evidence, asked, HOUR)
    breaches = []
    for hour, found in groups(measures, lambda measure: hour_of(measure.at)).items():
        cost = fsum(measure.amounts[COST] for measure in found)
        if cost > asked.bound.most:
            begin = min(measure.at for measure in found) // HOUR_MS * HOUR_MS
            span = max(begin, asked.window.since), min(begin + HOUR_MS, asked.window.until)
            said = f"the hour from {hour} cost {dollars(cost)}{of_words(asked.selector)}"
            what = f"{said}, more than {dollars(asked.bound.most)}"
            breaches.append(_breach(evidence, what, found, span))
    return Found(len(measures), sorted(breaches, key=lambda breach: breach.at))


def _measures(evidence: Evidence, asked: Asked, by: str) -> list[Measure]:
    require(evidence.imported, Missing.PRICES, "what the nodes cost")
    usage = evidence.usage if by == WORKLOAD else None
    found = cost_measures(evidence.lives, by, asked.window.since, asked.window.until, usage)
    return [measure for measure in found if asked.selector.selects(measure.about)]


def _breach(evidence: Evidence, what: str, measures: list[Measure], span: tuple[int, int], by: str = NODE) -> Breach:
    """Name the dearest nodes first. `by`: what the rows of the command that explains it are."""
    since, until = span
    nodes = groups(measures, lambda measure: measure.about["node"])
    dearest = sorted(nodes, key=lambda node: (-fsum(measure.amounts[COST] for measure in nodes[node]), node))
    return Breach(
        what=what,
        position=evidence.position_at(since),
        at=since,
        subjects=tuple(f"nodeclaim/{node}" for node in dearest),
        command=("cost", RECORD, "--by", by, "--since", moment(since), "--until", moment(until)),
    )
