"""Changes of a problem that may help pods which topology keeps pending.

The planner places pods one after another, large ones first, and never moves one again. So it can learn too late that

* a pod keeps others away, or takes their only place: place the pending pods first;
* a pod is where its affinity partners have no room: place it first, together with them;
* a domain can hardly be filled, or pods that must follow the first one of their kind cannot go there: launch nothing in
  that domain;
* a node of some NodePool or type is where other pods cannot go, or keeps them away: leave the NodePool or type out.
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
"""How many NodePools, how many types, and how many domains are considered for being left out."""
LARGE_PROBLEM = 1_000
"""From this many pods on a problem is large: where a spread went wrong, its pods are not settled at once."""
MAX_VARIANTS = 4
"""How many choices among domains of equal rank there are, with the usual one."""
MAX_GROUPS_AHEAD = 3
"""For how many classes the pending pods are tried to be placed first."""
MAX_ROUNDS_AHEAD = 3
"""How often pending pods may be placed before those that came first the time before."""

OfferingKey = tuple[str, str, str]
"""An entry of `Problem.unavailable`: (capacity type, instance type, zone), "" for any."""


class ProblemChange(Struct, frozen=True):
    """How a problem is changed. `careful` and `variant`: see `Problem`. `ahead`: sets of pods (uids) that are placed
    first; the last set before the others. `pools` (names) and `offerings`: left out, so that nothing of them is
    launched."""

    careful: bool = False
    variant: int = 0
    ahead: tuple[frozenset[str], ...] = ()
    pools: frozenset[str] = frozenset()
    offerings: frozenset[OfferingKey] = frozenset()

    def of(self, problem: Problem) -> Problem:
        """The problem with this change."""
        ranks = {uid: rank for rank, uids in enumerate(self.ahead, start=1) for uid in uids}
        return replace(
            problem,
            careful=self.careful,
            variant=self.variant,
            pods=tuple(replace(pod, ahead=ranks.get(pod.uid, 0)) for pod in problem.pods) if ranks else problem.pods,
            pools=tuple(pool for pool in problem.pools if pool.pool.name not in self.pools),
            unavailable=problem.unavailable | self.offerings,
        )


def single_changes(problem: Problem, before: ProblemChange, planned: Plan) -> Iterator[ProblemChange]:
    """Changes that do one thing more than the change `before`, with which the plan was made. What may help most comes
    first."""
    if planned.uneven and len(problem.pods) < LARGE_PROBLEM:
        yield replace(before, careful=True)
    groups = _pending_groups(planned)
    if not groups:
        return
    if len(before.ahead) < MAX_ROUNDS_AHEAD:
        yield replace(before, ahead=(*before.ahead, frozenset().union(*groups)))
        for group in groups[:MAX_GROUPS_AHEAD] if len(groups) > 1 else ():
            yield replace(before, ahead=(*before.ahead, group))
        for each in groups[:MAX_GROUPS_AHEAD]:
            if partners := _with_affinity_partners(problem, each):
                yield replace(before, ahead=(*before.ahead, partners))
    for option in _to_leave_out(problem, before, planned):
        yield _leaving_out(before, (option,))
    for number in range(1, MAX_VARIANTS):
        yield replace(before, variant=number)


def _with_affinity_partners(problem: Problem, group: frozenset[str]) -> frozenset[str]:
    """All pods (uids) like these, and those that they must be with by required affinity; none if they have none."""
    first = next(pod for pod in problem.pods if pod.uid in group)
    selectors = required_affinity_selectors(problem.shapes[first.shape], first.namespace, problem.namespaces)
    if not selectors:
        return frozenset()
    shape_keys = {(pod.namespace, pod.shape) for pod in problem.pods}
    together = {key for key in shape_keys if any(s.selects(key[0], problem.shapes[key[1]].labels) for s in selectors)}
    together.add((first.namespace, first.shape))
    return frozenset(pod.uid for pod in problem.pods if (pod.namespace, pod.shape) in together)


def combined_changes(problem: Problem, before: ProblemChange, planned: Plan) -> Iterator[ProblemChange]:
    """Changes that leave out several things more than the change `before`, with which the plan was made."""
    options = _to_leave_out(problem, before, planned) if _pending_groups(planned) else []
    pools = {pool.pool.name for pool in usable_pools(problem.pools)}
    for count in range(2, len(options) + 1):
        for chosen in combinations(options, count):
            change = _leaving_out(before, chosen)
            if not change.pools.issuperset(pools):
                yield change


def _leaving_out(before: ProblemChange, chosen: Iterable[str | OfferingKey]) -> ProblemChange:
    pools = frozenset(each for each in chosen if isinstance(each, str))
    offerings = frozenset(each for each in chosen if not isinstance(each, str))
    return replace(before, pools=before.pools | pools, offerings=before.offerings | offerings)


def _to_leave_out(problem: Problem, before: ProblemChange, planned: Plan) -> list[str | OfferingKey]:
    """Some domains, NodePools (names) and types that may be left out besides."""
    pools = [pool.pool.name for pool in usable_pools(problem.pools) if pool.pool.name not in before.pools]
    types = dict.fromkeys(("", claim.instance_types[0], "") for claim in planned.claims)
    domains = [domain for domain in _domains_in_the_way(problem, planned) if domain not in before.offerings]
    return [
        *domains[:MAX_LEFT_OUT],
        *(pools[:MAX_LEFT_OUT] if len(pools) > 1 else ()),
        *list(types)[:MAX_LEFT_OUT],
    ]


def pending_by_topology(planned: Plan) -> frozenset[str]:
    """The pods (uids) that are pending because of topology: a node that meets their own demands could be had."""
    return frozenset().union(*_pending_groups(planned))


def _pending_groups(planned: Plan) -> list[frozenset[str]]:
    """The same pods (uids), by class and reasons; the largest group first."""
    groups = [
        each for each in planned.unplaced if any(reason.code == SchedulingCode.TOPOLOGY for reason in each.reasons)
    ]
    return [frozenset(each.pods) for each in sorted(groups, key=lambda each: (-len(each.pods), each.pods))]


def _domains_in_the_way(problem: Problem, planned: Plan) -> list[OfferingKey]:
    """The zones and capacity types that may be in the way.

    First those that reasons name: of a spread the domains with fewest pods, of other rules those with pods; sorted by
    how many pods wait. Then all other domains of the topology keys of these pods.
    """
    waiting: dict[OfferingKey, int] = {}
    keys: set[str] = set()
    shapes = {pod.uid: pod.shape for pod in problem.pods}
    for group in planned.unplaced:
        named = {offering: None for reason in group.reasons for offering in _domains_in_reason(reason)}
        for each in named:
            waiting[each] = waiting.get(each, 0) + len(group.pods)
        if any(reason.code == SchedulingCode.TOPOLOGY for reason in group.reasons):
            shape = problem.shapes[shapes[group.pods[0]]]
            keys.update(normalise(constraint.topology_key) for constraint in shape.spread)
            keys.update(normalise(term.topology_key) for term in (*shape.affinity, *shape.anti_affinity))
    for catalogue in problem.catalogues.values():
        for offer in (
            offer for instance_type in catalogue.types for offer in instance_type.offerings if offer.available
        ):
            if ZONE in keys:
                waiting.setdefault(("", "", offer.zone), 0)
            if CAPACITY_TYPE in keys:
                waiting.setdefault((offer.capacity_type, "", ""), 0)
    return sorted(waiting, key=lambda each: (-waiting[each], each))


def _domains_in_reason(reason: Reason) -> Iterator[OfferingKey]:
    """The domains that a reason names as too empty (of a spread) or occupied (of other rules)."""
    if reason.code != SchedulingCode.TOPOLOGY or reason.params["key"] not in (ZONE, CAPACITY_TYPE):
        return
    domains = reason.params["domains"]
    assert isinstance(domains, list)
    counts = {name: int(count) for name, equals, count in (domain.rpartition("=") for domain in domains) if equals}
    least = min(counts.values(), default=0)
    for name, count in counts.items():
        if count == least if reason.params["rule"] == "spread" else count:
            yield ("", "", name) if reason.params["key"] == ZONE else (name, "", "")
