"""Assertions about nodes: how many there are, of which types, bought how, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from kerf.engine.model.labels import SPOT
from kerf.engine.model.missing_knowledge import Missing
from kerf.projections.figures.lives import Life
from kerf.projections.figures.measures import HOUR, hour_of
from kerf.projections.prose.amounts import count, moment
from kerf.replay.partial_records import require
from kerf.replay.policies.evidence import Evidence
from kerf.replay.policies.found import RECORD, Asked, Found, groups, of_words
from kerf.replay.policies.outcomes import Breach
from kerf.replay.policies.selectors import fits

Fault = Callable[[list[Life]], str]
"""Says what is wrong with the nodes that are there at a time, "" for nothing."""


def max_launches(evidence: Evidence, asked: Asked) -> Found:
    """At most so many nodes are launched, in all or for each group."""
    most, per = int(asked.bound.most), asked.bound.per
    launched = [life for life in _selected(evidence, asked) if life.came and asked.is_within(life.came)]
    breaches = []
    for group, lives in groups(launched, lambda life: ", ".join(_group(life, name) for name in per)).items():
        if len(lives) > most:
            said = f" of {group}" if group else of_words(asked.selector)
            what = f"{count(len(lives), 'launch')}{said}, {most} may be"
            breaches.append(_launch(lives[most], f"{what}: {_named(lives[most])} is the next"))
    return Found(len(launched), breaches)


def only_types(evidence: Evidence, asked: Asked) -> Found:
    """Nodes are launched of the named instance types alone."""
    return _types(evidence, asked, "no other than {} may be", named=False)


def never_types(evidence: Evidence, asked: Asked) -> Found:
    """No node is launched of a named instance type."""
    return _types(evidence, asked, "{} may not be", named=True)


def min_nodes(evidence: Evidence, asked: Asked) -> Found:
    """At any time there are at least so many nodes."""
    least = int(asked.bound.most)

    def fault(lives: list[Life]) -> str:
        return f"{_counted(lives, asked)}, fewer than {least}" if len(lives) < least else ""

    return _at_any_time(evidence, asked, fault)


def max_nodes(evidence: Evidence, asked: Asked) -> Found:
    """At no time there are more nodes."""
    most = int(asked.bound.most)

    def fault(lives: list[Life]) -> str:
        return f"{_counted(lives, asked)}, more than {most}" if len(lives) > most else ""

    return _at_any_time(evidence, asked, fault)


def max_spot_share(evidence: Evidence, asked: Asked) -> Found:
    """At no time a greater share of the nodes is spot."""

    def fault(there: list[Life]) -> str:
        lives = [life for life in there if life.capacity_type]
        spot = sum(life.capacity_type == SPOT for life in lives)
        if not lives or spot <= asked.bound.most * len(lives):
            return ""
        return f"{_counted(lives, asked)}, {spot} of them spot, more than {asked.bound.most:.0%}"

    return _at_any_time(evidence, asked, fault, "capacity_type")


def zones_at_least(evidence: Evidence, asked: Asked) -> Found:
    """Whenever there are so many nodes, they are in at least so many zones."""
    least = int(asked.bound.most)

    def fault(there: list[Life]) -> str:
        lives = [life for life in there if life.zone]
        zones = sorted({life.zone for life in lives})
        if len(lives) < least or len(zones) >= least:
            return ""
        where = f"{count(len(zones), 'zone')} ({', '.join(zones)})"
        return f"{_counted(lives, asked)} in {where}, fewer than {least}"

    return _at_any_time(evidence, asked, fault, "zone")


def _selected(evidence: Evidence, asked: Asked) -> list[Life]:
    require(evidence.imported, Missing.NODES, "which nodes there were")
    return [life for life in evidence.launched() if asked.selector.selects(life.about())]


def _types(evidence: Evidence, asked: Asked, rule: str, *, named: bool) -> Found:
    lives = [life for life in _selected(evidence, asked) if life.came and asked.is_within(life.came)]
    said = rule.format(" or ".join(asked.bound.patterns))
    known = [life for life in lives if life.instance_type]
    wrong = [life for life in known if fits(life.instance_type, asked.bound.patterns) is named]
    breaches = [_launch(life, f"{_named(life)} was launched; {said}") for life in wrong]
    return Found(len(lives), breaches, _not_known(lives, "instance_type"))


def _at_any_time(evidence: Evidence, asked: Asked, fault: Fault, needs: str = "") -> Found:
    """Look at the nodes of each time between two changes. A stretch of times with a fault is one breach, at its
    first. `needs` is the field by which they are judged."""
    lives = _selected(evidence, asked)
    times = list(_changes(lives, asked))
    faults = [(at, there, fault(there)) for at, there in ((at, _there(lives, at)) for at in times)]
    breaches = []
    for faulty, stretch in groupby(faults, key=lambda found: bool(found[2])):
        if faulty:
            at, there, said = next(stretch)
            breaches.append(_status(evidence, at, there, said))
    return Found(len(lives), breaches, _not_known(lives, needs) if needs else "")


def _not_known(lives: list[Life], needs: str) -> str:
    """Say how many nodes could not be judged: an imported record may not tell what they are."""
    unknown = sum(not getattr(life, needs) for life in lives)
    what = needs.replace("_", " ")
    return f"{count(unknown, 'node')} not looked at: the record does not tell the {what}" if unknown else ""


def _changes(lives: list[Life], asked: Asked) -> Iterator[int]:
    ends = {at for life in lives for at in (life.launched, life.over) if at and asked.is_within(at)}
    yield from sorted({asked.window.since} | ends)


def _there(lives: list[Life], at: int) -> list[Life]:
    return [life for life in lives if life.launched <= at and (not life.over or at < life.over)]


def _group(life: Life, per: str) -> str:
    return f"the hour from {hour_of(life.came)}" if per == HOUR else f"{per} {life.about().get(per, '-')}"


def _counted(lives: list[Life], asked: Asked) -> str:
    return count(len(lives), "node") + of_words(asked.selector)


def _named(life: Life) -> str:
    """Name a node and what it is, as far as the record tells: an imported one may not."""
    capacity = f" ({life.capacity_type})" if life.capacity_type else ""
    zone = f" in {life.zone}" if life.zone else ""
    pool = f" of NodePool {life.node_pool}" if life.node_pool else ""
    return f"{life.claim}, a {life.instance_type or 'node'}{capacity}{zone}{pool}"


def _launch(life: Life, what: str) -> Breach:
    name = f"nodeclaim/{life.claim}"
    return Breach(
        what=what,
        position=life.position,
        at=life.came,
        subjects=(name,),
        command=("explain", RECORD, name),
    )


def _status(evidence: Evidence, at: int, lives: list[Life], what: str) -> Breach:
    return Breach(
        what=what,
        position=evidence.position_at(at),
        at=at,
        subjects=tuple(f"nodeclaim/{life.claim}" for life in lives),
        command=("status", RECORD, "--at", moment(at)),
    )
