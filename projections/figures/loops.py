"""Find nodes that go round in circles: replaced again and again, launched again as soon as they are gone, launched for
nobody, drifted or expired as soon as they are there, or launched in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import fsum
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.projections.figures.churn import main_workload
from kerf.projections.figures.evictions import EvictedAgain
from kerf.projections.figures.lives import FOR_PODS, Life, LivesFold

CHAIN, UNUSED, DRIFTS_AT_ONCE, LAUNCH_FAILURES = (
    "replacement-chain",
    "launched-for-nobody",
    "drifts-at-once",
    "launch-failures",
)
EVICTED_AGAIN, LAUNCHED_AGAIN, EXPIRES_SOON = "evicted-again", "launched-again", "expires-soon"
MIN_REPLACEMENTS = 2
"""So many replacements in a row make a chain."""
AT_ONCE = 600_000
"""A node that has drifted within this time (ms) of its initialization has drifted at once."""
MIN_REPEATED = 2
"""So many nodes that drift at once, or serve nobody, make a loop."""
MIN_FAILURES = 3
"""So many failed launches for the same pods make one."""
BRIEF = 1_800_000
"""A node that goes within this time (ms) of its launch was there briefly. One that is launched within it of the end of
such a one is launched again."""
EXPIRES_WITHIN = 14_400_000
"""A node that expires within this time (ms) expires soon. Most who set expireAfter set days."""
PAYS_TO_GO = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
MIN_ROUNDS = 3
"""So many rounds of nodes, each launched when those of the round before went, make a loop."""


class Loop(Struct, frozen=True, kw_only=True):
    """One loop. `about` is its NodePool or workload, `claims` are in the order of their launch.

    `since` and `until` are ms since the epoch. `nodes` were launched, or asked for, beyond the first; `evicted` pods
    had to leave; `cost` is what the nodes cost in USD. `same_type` counts replacements of the type, zone and capacity
    type that was there before. `reasons` are why the nodes went, or why launches failed, the most frequent first.
    `differs` is by what nodes had drifted, the most frequent first. `rounds` counts how often nodes came when others of
    the loop had gone, and `lasted` is how long they were there until they had to go, in the median (ms).
    """

    kind: str
    about: str
    claims: tuple[str, ...]
    since: int
    until: int
    nodes: int
    evicted: int
    cost: float
    same_type: int = 0
    reasons: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    rounds: int = 0
    lasted: int = 0


def find_loops(fold: LivesFold, since: int, until: int, again: Iterable[EvictedAgain] = ()) -> list[Loop]:
    """Return the loops with a launch between two times, the worst first: by nodes and evictions, then by cost.

    `again` are pods that had come for evicted ones and were evicted themselves.
    """
    lives = [life for _, life in sorted(fold.lives.items()) if since <= (life.launched or life.requested) <= until]
    evictions = [eviction for eviction in again if since <= eviction.at <= until]
    loops = [
        *_chains(fold, lives),
        *_unused(fold, lives),
        *_drifting(fold, lives),
        *_failures(fold, lives),
        *_evicted_again(fold, evictions),
        *_launched_again(fold, lives),
        *_expiring(fold, lives),
    ]
    return sorted(loops, key=lambda loop: (-(loop.nodes + loop.evicted), -loop.cost, loop.kind, loop.claims))


def _chains(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    """Follow each node that replaced none to its last replacement, by the longest way. A chain each of whose nodes went
    for a reason of its own, such as one change of a NodeClass after the other, is none."""
    after = _next_in_chain(fold)
    for first in lives:
        if first.replaces or not first.replaced_by:
            continue
        chain = [first.claim]
        while chain[-1] in after:
            chain.append(after[chain[-1]])
        found = [fold.lives[claim] for claim in chain]
        if len(chain) > MIN_REPLACEMENTS and _repeats(found[:-1]):
            same = sum(_kind(one) == _kind(other) for one, other in pairwise(found))
            yield _loop(fold, CHAIN, main_workload(first) or first.node_pool, found, same_type=same)


def _repeats(replaced: Iterable[Life]) -> bool:
    """Whether two of the nodes went for the same: those that drifted, by the same difference."""
    causes = Counter((life.why, life.differs if life.why == DisruptionReason.DRIFTED else "") for life in replaced)
    return max(causes.values()) > 1


def _next_in_chain(fold: LivesFold) -> dict[str, str]:
    """For each node, that of its replacements from which the most follow. A replacement is always asked for later."""
    length: dict[str, int] = {}
    after: dict[str, str] = {}
    for life in sorted(fold.lives.values(), key=lambda life: (-life.position, life.claim)):
        followed = [claim for claim in life.replaced_by if claim in length]
        if followed:
            after[life.claim] = max(followed, key=lambda claim: length[claim])
        length[life.claim] = 1 + length.get(after.get(life.claim, ""), 0)
    return after


def _kind(life: Life) -> tuple[str, str, str]:
    return life.instance_type, life.zone, life.capacity_type


def _unused(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    """Nodes that were launched for pods, by NodePool and workload, and went without one."""
    groups: dict[str, list[Life]] = {}
    for life in lives:
        if life.launched and life.over and not life.served and life.launched_for == FOR_PODS:
            groups.setdefault(life.node_pool, []).append(life)
    yield from (_loop(fold, UNUSED, pool, found) for pool, found in groups.items() if len(found) >= MIN_REPEATED)


def _drifting(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    groups: dict[str, list[Life]] = {}
    for life in lives:
        if life.drifted and life.initialized and 0 <= life.drifted - life.initialized <= AT_ONCE:
            groups.setdefault(life.node_pool, []).append(life)
    for pool, found in groups.items():
        if len(found) >= MIN_REPEATED:
            yield _loop(fold, DRIFTS_AT_ONCE, pool, found)


def _failures(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    """Launches that failed for the same workload, or the same NodePool where its pods are not known."""
    groups: dict[str, list[Life]] = {}
    for life in lives:
        if life.failed and not life.launched:
            groups.setdefault(life.asked_by or life.node_pool, []).append(life)
    for about, found in groups.items():
        if len(found) >= MIN_FAILURES:
            yield _loop(fold, LAUNCH_FAILURES, about, found)


def _evicted_again(fold: LivesFold, evictions: Iterable[EvictedAgain]) -> Iterator[Loop]:
    """Workloads whose pods go from node to node, each of which has to go soon."""
    groups: dict[str, list[EvictedAgain]] = {}
    for eviction in evictions:
        groups.setdefault(eviction.workload, []).append(eviction)
    for workload, found in groups.items():
        if len(found) >= MIN_REPEATED:
            claims = list(dict.fromkeys(eviction.claim for eviction in found))
            loop = _loop(fold, EVICTED_AGAIN, workload, [fold.lives[claim] for claim in claims])
            yield replace(loop, since=found[0].at, until=found[-1].at, evicted=len(found))


def _launched_again(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    """Nodes that come for pods of a workload and go as soon as these go, only to be launched again for the next."""
    groups: dict[tuple[str, str], list[Life]] = {}
    for life in lives:
        brief = life.launched and life.over and life.over - life.launched <= BRIEF
        if brief and life.served and life.launched_for == FOR_PODS and not life.replaced_by and life.why in PAYS_TO_GO:
            groups.setdefault((life.node_pool, main_workload(life)), []).append(life)
    for (_, workload), found in groups.items():
        for rounds in _in_a_row(_rounds(found)):
            yield _of_rounds(fold, LAUNCHED_AGAIN, workload, rounds)


def _expiring(fold: LivesFold, lives: Iterable[Life]) -> Iterator[Loop]:
    groups: dict[str, list[Life]] = {}
    for life in lives:
        if life.launched and life.why == DisruptionReason.EXPIRED and _lasted(life) <= EXPIRES_WITHIN:
            groups.setdefault(life.node_pool, []).append(life)
    for pool, found in groups.items():
        rounds = _rounds(found)
        if len(rounds) >= MIN_ROUNDS:
            yield _of_rounds(fold, EXPIRES_SOON, pool, rounds)


def _rounds(lives: Iterable[Life]) -> list[list[Life]]:
    """Split lives, by launch: a round begins with a node that is launched when one of the round before has to go."""
    rounds: list[list[Life]] = []
    for life in sorted(lives, key=lambda life: (life.launched, life.claim)):
        if not rounds or life.launched >= min(earlier.tainted for earlier in rounds[-1]):
            rounds.append([])
        rounds[-1].append(life)
    return rounds


def _in_a_row(rounds: list[list[Life]]) -> Iterator[list[list[Life]]]:
    """Split rounds where nothing was launched for a while after one, and leave out what is too short for a loop."""
    row: list[list[Life]] = []
    for found in rounds:
        if row and found[0].launched - max(life.over for life in row[-1]) > BRIEF:
            if len(row) >= MIN_ROUNDS:
                yield row
            row = []
        row.append(found)
    if len(row) >= MIN_ROUNDS:
        yield row


def _of_rounds(fold: LivesFold, kind: str, about: str, rounds: list[list[Life]]) -> Loop:
    lives = [life for found in rounds for life in found]
    lasted = int(median(map(_lasted, lives)))
    return replace(_loop(fold, kind, about, lives), rounds=len(rounds), lasted=lasted)


def _lasted(life: Life) -> int:
    """Return the time (ms) from when a node was asked for, from which expireAfter counts, until it had to go."""
    return life.tainted - min(life.requested, life.came)


def _loop(fold: LivesFold, kind: str, about: str, lives: list[Life], *, same_type: int = 0) -> Loop:
    lives = sorted(lives, key=lambda life: (life.launched or life.requested, life.claim))
    reasons = [life.failed if kind == LAUNCH_FAILURES else life.why for life in lives]
    return Loop(
        kind=kind,
        about=about,
        claims=tuple(life.claim for life in lives),
        since=min(life.launched or life.requested for life in lives),
        until=max(life.over or fold.at for life in lives),
        nodes=len(lives) - (kind == CHAIN),
        evicted=sum(life.evicted for life in lives),
        cost=fsum(fold.cost.paid[life.claim].cost(fold.at) for life in lives if life.claim in fold.cost.paid),
        same_type=same_type,
        reasons=_most_frequent_first(reasons),
        differs=_most_frequent_first(life.differs for life in lives),
    )


def _most_frequent_first(words: Iterable[str]) -> tuple[str, ...]:
    counted = Counter(filter(None, words))
    return tuple(sorted(counted, key=lambda word: (-counted[word], word)))
