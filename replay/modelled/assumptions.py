"""Say what a modelled run takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from kerf.engine.model.missing_knowledge import words_of
from kerf.engine.nodeclaim.state_table import GOING
from kerf.projections.figures.lives import LivesFold
from kerf.projections.prose.amounts import count
from kerf.replay.modelled.figures import FiguresFold
from kerf.replay.modelled.workload import Comes, Lacks, Offering, Replicas, Strike, Workload


def assumptions(workload: Workload, recorded: FiguresFold, changed: FiguresFold | None, missed: int) -> Iterator[str]:
    """Give the assumptions, those about this record with their numbers."""
    yield "users and workload controllers do what they did, when they did it, whatever the nodes are"
    steps = [timed.step for timed in workload.steps if timed.changed is None]
    own = [step for step in steps if isinstance(step, Comes)]
    changes = count(sum(isinstance(step, Replicas) for step in steps), "change")
    alone = f"; {count(len(own), 'pod')} {_verb(own, 'comes and goes', 'come and go')} one by one" if own else ""
    yield f"replicas: {changes} of their numbers; what an eviction made is no arrival{alone}"
    ending = [step for step in own if step.runs]
    if ending:
        ends = _verb(ending, "ends by itself: it runs as long as it", "end by themselves: each runs as long as it")
        yield f"{count(len(ending), 'pod')} {ends} ran, from when it starts in the model"
    yield "kube-scheduler is the simulation's, and the cloud sells the cheapest offering that it has"
    yield from _cloud(workload, recorded.lives, changed)
    if missed:
        yield f"{count(missed, 'blow')} hit nothing with the change: there was no instance of that offering"
    yield from _beginning(workload)
    for what, number in workload.left_out.items():
        yield f"not repeated: {number} × {what}"


def _verb(subjects: Sized, one: str, several: str) -> str:
    return one if len(subjects) == 1 else several


def _cloud(workload: Workload, recorded: LivesFold, changed: FiguresFold | None) -> Iterator[str]:
    steps = [timed.step for timed in workload.steps if timed.changed is None]
    struck = sum(isinstance(step, Strike) for step in steps)
    if struck:
        yield f"{count(struck, 'blow')} of the cloud or a user: each hits one of the same offering, if there is one"
    lacking = sum(isinstance(step, Lacks) and not step.back for step in steps)
    if lacking:
        yield f"{count(lacking, 'span')} without capacity, from a minute before a refusal to the next success or asking"
    if changed is not None:
        known = _offerings(recorded)
        new = _offerings(changed.lives) - known
        if new:
            yield f"capacity of {count(len(new), 'offering')} that the record never bought is taken to be there"


def _offerings(lives: LivesFold) -> set[Offering]:
    return {
        Offering(life.instance_type, life.zone, life.capacity_type) for life in lives.lives.values() if life.launched
    }


def _beginning(workload: Workload) -> Iterator[str]:
    facts = workload.start.facts
    if facts.claims:
        going = sum(claim.state in GOING for claim in facts.claims.values())
        under_way = f", {going} of them on the way out, which drain on" if going else ""
        yield f"{count(len(facts.claims), 'node')} of the beginning taken over at today's prices{under_way}"
    if facts.moves:
        yield f"{count(len(facts.moves), 'move')} under way at the beginning, forgotten"
    if facts.settings.observe:
        yield "another controller decided in the record; in both runs of the model kerf does"
    if facts.imported is not None and facts.imported.lacks:
        yield f"the record is partial, and lacks {', '.join(words_of(code) for code in facts.imported.lacks)}"
