"""How a question may be put otherwise where topology keeps pods pending: who is placed first, and what is left out.

Four things are known too late when pods are placed one after another, the large ones first:

* that a pod keeps away several others, or takes their only place: those that are pending go first;
* that a pod is where there is no room for those that must be with it: it goes first, with those;
* that a domain can hardly be filled, or is where those that follow the first pod of their kind cannot go: nothing is
  launched there;
* that a node of a NodePool, or of a type, is where those cannot go, or keeps them away: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.labels import CAPACITY_TYPE, ZONE, normalise
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.label_selectors import required_affinity_selectors
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import SchedulingCode

MAX_LEFT_OUT = 8
"""So many NodePools, so many types, and so many domains are tried to be left out."""
LARGE_PROBLEM = 1_000
"""Pods of problems with as many or more are not settled at once where a spread went wrong."""
MAX_VARIANTS = 4
"""So many choices among domains of equal rank."""
MAX_GROUPS_AHEAD = 3
"""Of so many classes of pods the pending ones are tried to be placed first."""
MAX_ROUNDS_AHEAD = 3
"""So often those that are pending come before those that came first."""

OfferingKey = tuple[str, str, str]
"""As in `Problem.unavailable`."""


class ProblemChange(Struct, frozen=True):
    """`careful` and `variant`: see `Problem`; `ahead`: pods (uids) that are placed first, the last ones before the
    others; `pools` (names) and `offerings`: nothing is launched of these."""

    careful: bool = False
    variant: int = 0
    ahead: tuple[frozenset[str], ...] = ()
    pools: frozenset[str] = frozenset()
    offerings: frozenset[OfferingKey] = frozenset()

    def of(self, problem: Problem) -> Problem:
        """The question with this change."""
        ranks = {uid: rank for rank, uids in enumerate(self.ahead, start=1) for uid in uids}
        return replace(
            problem,
            careful=self.careful,
            variant=self.variant,
            pods=tuple(replace(each, ahead=ranks.get(each.uid, 0)) for each in problem.pods) if ranks else problem.pods,
            pools=tuple(each for each in problem.pools if each.pool.name not in self.pools),
            unavailable=problem.unavailable | self.offerings,
        )


def single_changes(problem: Problem, before: ProblemChange, made: Plan) -> Iterator[ProblemChange]:
    """One thing more than the change that the plan was made with, what may help most first."""
    if made.uneven and len(problem.pods) < LARGE_PROBLEM:
        yield replace(before, careful=True)
    groups = _pending_groups(made)
    if not groups:
        return
    if len(before.ahead) < MAX_ROUNDS_AHEAD:
        yield replace(before, ahead=(*before.ahead, frozenset().union(*groups)))
        for each in groups[:MAX_GROUPS_AHEAD] if len(groups) > 1 else ():
            yield replace(before, ahead=(*before.ahead, each))
        for each in groups[:MAX_GROUPS_AHEAD]:
            if together := _with_affinity_partners(problem, each):
                yield replace(before, ahead=(*before.ahead, together))
    for one in _to_leave_out(problem, before, made):
        yield _leaving_out(before, (one,))
    for number in range(1, MAX_VARIANTS):
        yield replace(before, variant=number)


def _with_affinity_partners(problem: Problem, group: frozenset[str]) -> frozenset[str]:
    """All pods (uids) of the class of these, and those that they must be with; none if these must be with nobody."""
    first = next(each for each in problem.pods if each.uid in group)
    selectors = required_affinity_selectors(problem.shapes[first.shape], first.namespace, problem.namespaces)
    if not selectors:
        return frozenset()
    pairs = {(each.namespace, each.shape) for each in problem.pods}
    wanted = {pair for pair in pairs if any(s.selects(pair[0], problem.shapes[pair[1]].labels) for s in selectors)}
    wanted.add((first.namespace, first.shape))
    return frozenset(each.uid for each in problem.pods if (each.namespace, each.shape) in wanted)


def combined_changes(problem: Problem, before: ProblemChange, made: Plan) -> Iterator[ProblemChange]:
    """Several things more that are left out."""
    things = _to_leave_out(problem, before, made) if _pending_groups(made) else []
    pools = {each.pool.name for each in usable_pools(problem.pools)}
    for count in range(2, len(things) + 1):
        for chosen in combinations(things, count):
            change = _leaving_out(before, chosen)
            if not change.pools.issuperset(pools):
                yield change


def _leaving_out(before: ProblemChange, chosen: Iterable[str | OfferingKey]) -> ProblemChange:
    pools = frozenset(each for each in chosen if isinstance(each, str))
    offerings = frozenset(each for each in chosen if not isinstance(each, str))
    return replace(before, pools=before.pools | pools, offerings=before.offerings | offerings)


def _to_leave_out(problem: Problem, before: ProblemChange, made: Plan) -> list[str | OfferingKey]:
    """Domains, NodePools and types that may be left out besides: some of each."""
    pools = [each.pool.name for each in usable_pools(problem.pools) if each.pool.name not in before.pools]
    types = dict.fromkeys(("", each.instance_types[0], "") for each in made.claims)
    domains = [each for each in _domains_in_the_way(problem, made) if each not in before.offerings]
    return [
        *domains[:MAX_LEFT_OUT],
        *(pools[:MAX_LEFT_OUT] if len(pools) > 1 else ()),
        *list(types)[:MAX_LEFT_OUT],
    ]


def pending_by_topology(made: Plan) -> frozenset[str]:
    """The pods (uids) that are pending and would not be by what they ask of a node alone."""
    return frozenset().union(*_pending_groups(made))


def _pending_groups(made: Plan) -> list[frozenset[str]]:
    """Those pods (uids), by class and reasons, most first."""
    groups = [each for each in made.unplaced if any(why.code == SchedulingCode.TOPOLOGY for why in each.reasons)]
    return [frozenset(each.pods) for each in sorted(groups, key=lambda each: (-len(each.pods), each.pods))]


def _domains_in_the_way(problem: Problem, made: Plan) -> list[OfferingKey]:
    """The zones and capacity types that stand in the way: of a spread those with the fewest pods, of other rules those
    with pods. Those that most pods wait for first, and then all others of the keys that these pods ask about."""
    found: dict[OfferingKey, int] = {}
    keys: set[str] = set()
    shapes = {each.uid: each.shape for each in problem.pods}
    for group in made.unplaced:
        blamed = {offering: None for why in group.reasons for offering in _domains_in_reason(why)}
        for each in blamed:
            found[each] = found.get(each, 0) + len(group.pods)
        if any(why.code == SchedulingCode.TOPOLOGY for why in group.reasons):
            shape = problem.shapes[shapes[group.pods[0]]]
            keys.update(normalise(each.topology_key) for each in shape.spread)
            keys.update(normalise(each.topology_key) for each in (*shape.affinity, *shape.anti_affinity))
    for catalogue in problem.catalogues.values():
        for offer in (offer for each in catalogue.types for offer in each.offerings if offer.available):
            if ZONE in keys:
                found.setdefault(("", "", offer.zone), 0)
            if CAPACITY_TYPE in keys:
                found.setdefault((offer.capacity_type, "", ""), 0)
    return sorted(found, key=lambda each: (-found[each], each))


def _domains_in_reason(why: Reason) -> Iterator[OfferingKey]:
    if why.code != SchedulingCode.TOPOLOGY or why.params["key"] not in (ZONE, CAPACITY_TYPE):
        return
    domains = why.params["domains"]
    assert isinstance(domains, list)
    counts = {name: int(count) for name, equals, count in (each.rpartition("=") for each in domains) if equals}
    least = min(counts.values(), default=0)
    for name, count in counts.items():
        if count == least if why.params["rule"] == "spread" else count:
            yield ("", "", name) if why.params["key"] == ZONE else (name, "", "")
