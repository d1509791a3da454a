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
from kerf.engine.scheduling.matching.label_selectors import of_company
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import Code

MOST_LEFT_OUT = 8
"""So many NodePools, so many types, and so many domains are tried to be left out."""
LARGE = 1_000
"""Pods of problems with as many or more are not settled at once where a spread went wrong."""
VARIANTS = 4
"""So many choices among domains of equal rank."""
MOST_GROUPS = 3
"""Of so many classes of pods the pending ones are tried to be placed first."""
MOST_ROUNDS = 3
"""So often those that are pending come before those that came first."""

Offering = tuple[str, str, str]
"""As in `Problem.unavailable`."""


class Change(Struct, frozen=True):
    """`careful` and `variant`: see `Problem`; `ahead`: pods (uids) that are placed first, the last ones before the
    others; `pools` (names) and `offerings`: nothing is launched of these."""

    careful: bool = False
    variant: int = 0
    ahead: tuple[frozenset[str], ...] = ()
    pools: frozenset[str] = frozenset()
    offerings: frozenset[Offering] = frozenset()

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


def changes(problem: Problem, before: Change, made: Plan) -> Iterator[Change]:
    """One thing more than the change that the plan was made with, what may help most first."""
    if made.uneven and len(problem.pods) < LARGE:
        yield replace(before, careful=True)
    groups = _waiting(made)
    if not groups:
        return
    if len(before.ahead) < MOST_ROUNDS:
        yield replace(before, ahead=(*before.ahead, frozenset().union(*groups)))
        for each in groups[:MOST_GROUPS] if len(groups) > 1 else ():
            yield replace(before, ahead=(*before.ahead, each))
        for each in groups[:MOST_GROUPS]:
            if together := _with_company(problem, each):
                yield replace(before, ahead=(*before.ahead, together))
    for one in _things(problem, before, made):
        yield _without(before, (one,))
    for number in range(1, VARIANTS):
        yield replace(before, variant=number)


def _with_company(problem: Problem, group: frozenset[str]) -> frozenset[str]:
    """All pods (uids) of the class of these, and those that they must be with; none if these must be with nobody."""
    first = next(each for each in problem.pods if each.uid in group)
    selectors = of_company(problem.shapes[first.shape], first.namespace, problem.namespaces)
    if not selectors:
        return frozenset()
    pairs = {(each.namespace, each.shape) for each in problem.pods}
    wanted = {pair for pair in pairs if any(s.selects(pair[0], problem.shapes[pair[1]].labels) for s in selectors)}
    wanted.add((first.namespace, first.shape))
    return frozenset(each.uid for each in problem.pods if (each.namespace, each.shape) in wanted)


def further(problem: Problem, before: Change, made: Plan) -> Iterator[Change]:
    """Several things more that are left out."""
    things = _things(problem, before, made) if _waiting(made) else []
    pools = {each.pool.name for each in usable_pools(problem.pools)}
    for count in range(2, len(things) + 1):
        for chosen in combinations(things, count):
            change = _without(before, chosen)
            if not change.pools.issuperset(pools):
                yield change


def _without(before: Change, chosen: Iterable[str | Offering]) -> Change:
    pools = frozenset(each for each in chosen if isinstance(each, str))
    offerings = frozenset(each for each in chosen if not isinstance(each, str))
    return replace(before, pools=before.pools | pools, offerings=before.offerings | offerings)


def _things(problem: Problem, before: Change, made: Plan) -> list[str | Offering]:
    """Domains, NodePools and types that may be left out besides: some of each."""
    pools = [each.pool.name for each in usable_pools(problem.pools) if each.pool.name not in before.pools]
    types = dict.fromkeys(("", each.instance_types[0], "") for each in made.claims)
    domains = [each for each in _domains(problem, made) if each not in before.offerings]
    return [
        *domains[:MOST_LEFT_OUT],
        *(pools[:MOST_LEFT_OUT] if len(pools) > 1 else ()),
        *list(types)[:MOST_LEFT_OUT],
    ]


def kept_by_topology(made: Plan) -> frozenset[str]:
    """The pods (uids) that are pending and would not be by what they ask of a node alone."""
    return frozenset().union(*_waiting(made))


def _waiting(made: Plan) -> list[frozenset[str]]:
    """Those pods (uids), by class and reasons, most first."""
    groups = [each for each in made.unplaced if any(why.code == Code.TOPOLOGY for why in each.reasons)]
    return [frozenset(each.pods) for each in sorted(groups, key=lambda each: (-len(each.pods), each.pods))]


def _domains(problem: Problem, made: Plan) -> list[Offering]:
    """The zones and capacity types that stand in the way: of a spread those with the fewest pods, of other rules those
    with pods. Those that most pods wait for first, and then all others of the keys that these pods ask about."""
    found: dict[Offering, int] = {}
    keys: set[str] = set()
    shapes = {each.uid: each.shape for each in problem.pods}
    for group in made.unplaced:
        blamed = {offering: None for why in group.reasons for offering in _blamed(why)}
        for each in blamed:
            found[each] = found.get(each, 0) + len(group.pods)
        if any(why.code == Code.TOPOLOGY for why in group.reasons):
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


def _blamed(why: Reason) -> Iterator[Offering]:
    if why.code != Code.TOPOLOGY or why.params["key"] not in (ZONE, CAPACITY_TYPE):
        return
    domains = why.params["domains"]
    assert isinstance(domains, list)
    counts = {name: int(count) for name, equals, count in (each.rpartition("=") for each in domains) if equals}
    least = min(counts.values(), default=0)
    for name, count in counts.items():
        if count == least if why.params["rule"] == "spread" else count:
            yield ("", "", name) if why.params["key"] == ZONE else (name, "", "")
