"""Changes of a problem that may help pods which topology keeps pending.

The planner places pods one after another, large ones first, and never moves one again. So it can learn too late that

* a pod keeps others away, or takes their only place: place the pending pods first;
* pods find no room beside those that they must be with: place all of both first, or one of these, then its followers,
  then the next one;
* a domain can hardly be filled, or pods that must follow the first one of their kind cannot go there: leave the domain
  out;
* a node of some NodePool or type is where other pods cannot go, or keeps them away: leave the NodePool or type out.

What is left out is left out for the pending pods and the pods that are related to them, and not for others (S-63,
S-88). Only if that does not help, a domain is left out for all. In the end each kind of pods gets back what it need not
lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS, Requirements, requirement
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.optimizer.first_plan.affinity_partners import affinity_partners, in_turn, pods_alike
from kerf.engine.scheduling.optimizer.first_plan.related_pods import problem_of_related_pods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.pods.pod_requirements import topology_keys
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import BY_TOPOLOGY, SchedulingCode

MAX_LEFT_OUT = 8
"""How many NodePools, how many types, and how many domains are considered for being left out."""
LARGE_PROBLEM = 1_000
"""From this many pods on a problem is large: where a spread went wrong, its pods are not settled at once."""
MAX_GROUPS_CONCERNED = 8
"""For how many classes of pending pods, and the pods related to them, something is left out. So many, too, may follow
one partner in turn."""
MAX_GROUPS_AHEAD = 3
"""For how many classes the pending pods are tried to be placed first."""
MAX_ROUNDS_AHEAD = 3
"""How often pending pods may be placed before those that came first the time before."""


class LeftOut(Struct, frozen=True):
    """A NodePool, type, zone or capacity type, by label and value: no node of it is launched for these pods (uids)."""

    key: str
    value: str
    uids: frozenset[str]


class ProblemChange(Struct, frozen=True):
    """How a problem is changed. `careful`: see `Problem`. `ahead`: sets of pods (uids) that are placed
    first; the last set before the others. `rounds`: how often pending pods were put there."""

    careful: bool = False
    ahead: tuple[frozenset[str], ...] = ()
    rounds: int = 0
    left_out: frozenset[LeftOut] = frozenset()

    def with_ahead(self, uids: frozenset[str]) -> ProblemChange:
        """The change with these pods before all others."""
        return replace(self, ahead=(*self.ahead, uids), rounds=self.rounds + 1)

    def with_next(self, *sets: frozenset[str]) -> ProblemChange:
        """The change with these pods after those that come ahead already, and before all others."""
        before = (uids.difference(*sets) for uids in self.ahead)
        return replace(self, ahead=(*sets, *filter(None, before)), rounds=self.rounds + 1)

    def leaving_out(self, *options: LeftOut) -> ProblemChange:
        """The change that leaves out these, too."""
        return replace(self, left_out=self.left_out.union(options))

    def of(self, problem: Problem) -> Problem:
        """The problem with this change."""
        ranks = {uid: rank for rank, uids in enumerate(self.ahead, start=1) for uid in uids}
        asked = self._of_new_nodes()
        pods = problem.pods
        if ranks or asked:
            pods = tuple(
                replace(pod, ahead=ranks.get(pod.uid, 0), of_new_nodes=asked.get(pod.uid, NO_REQUIREMENTS))
                for pod in pods
            )
        return replace(problem, careful=self.careful, pods=pods)

    @property
    def options(self) -> list[LeftOut]:
        """What is left out, sorted."""
        return sorted(self.left_out, key=lambda option: (option.key, option.value, sorted(option.uids)))

    def without(self, option: LeftOut, group: frozenset[str]) -> ProblemChange:
        """The change that leaves out one thing less for a group, and still leaves it out for others."""
        rest = LeftOut(option.key, option.value, option.uids - group)
        return replace(self, left_out=self.left_out - {option} | {rest})

    def _of_new_nodes(self) -> dict[str, Requirements]:
        """What each pod (uid) for which something is left out asks of new nodes."""
        values: dict[str, dict[str, list[str]]] = {}
        for option in self.options:
            for uid in option.uids:
                values.setdefault(uid, {}).setdefault(option.key, []).append(option.value)
        return {
            uid: Requirements(requirement(key, "NotIn", tuple(by_key[key])) for key in by_key)
            for uid, by_key in values.items()
        }


def single_changes(problem: Problem, before: ProblemChange, planned: Plan) -> Iterator[ProblemChange]:
    """Changes that do one thing more than the change `before`, with which the plan was made. What may help most comes
    first."""
    if planned.uneven and len(problem.pods) < LARGE_PROBLEM:
        yield replace(before, careful=True)
        for key, value in sorted(_domains_on_offer(problem))[:MAX_LEFT_OUT]:
            yield before.leaving_out(LeftOut(key, value, frozenset(problem.pod_of)))
    groups = _pending_groups(planned)
    if not groups:
        return
    if before.rounds < MAX_ROUNDS_AHEAD:
        yield before.with_ahead(frozenset().union(*groups))
        for group in groups[:MAX_GROUPS_AHEAD] if len(groups) > 1 else ():
            yield before.with_ahead(group)
        for group in groups[:MAX_GROUPS_AHEAD]:
            if partners := affinity_partners(problem, group):
                already = frozenset().union(*before.ahead)
                yield before.with_ahead(partners | pods_alike(problem, group))
                if sets := in_turn(problem, planned, groups[:MAX_GROUPS_CONCERNED], partners, already):
                    yield before.with_next(*sets)
    for option in chain(*_options_to_leave_out(problem, before, planned)):
        yield before.leaving_out(option)


def combined_changes(problem: Problem, before: ProblemChange, planned: Plan) -> Iterator[ProblemChange]:
    """Changes that leave out several things more than the change `before`, with which the plan was made."""
    pools = {pool.pool.name for pool in usable_pools(problem.pools)}
    for options in _options_to_leave_out(problem, before, planned):
        for count in range(2, len(options) + 1):
            for chosen in combinations(options, count):
                change, of_pool = before.leaving_out(*chosen), (NODEPOOL, chosen[0].uids)
                if not pools.issubset(each.value for each in change.left_out if (each.key, each.uids) == of_pool):
                    yield change


def groups_concerned(problem: Problem, planned: Plan) -> list[frozenset[str]]:
    """The pods (uids) that are pending because of topology, each group with the pods that are related to it; groups
    with pods in common are one."""
    concerned: list[frozenset[str]] = []
    for group in _pending_groups(planned)[:MAX_GROUPS_CONCERNED]:
        if not any(group <= other for other in concerned):
            related = _with_related(problem, group)
            joined = related.union(*(other for other in concerned if not other.isdisjoint(related)))
            concerned = [*(other for other in concerned if other.isdisjoint(related)), joined]
    return concerned


def kinds(problem: Problem) -> list[frozenset[str]]:
    """The pods (uids) of each kind, those of the largest kind first."""
    by_kind = (frozenset(pod.uid for pod in pods) for pods in problem.pods_of_kind.values())
    return sorted(by_kind, key=lambda uids: (-len(uids), min(uids)))


def _with_related(problem: Problem, uids: frozenset[str]) -> frozenset[str]:
    return frozenset(pod.uid for pod in problem_of_related_pods(problem, uids).pods)


def _options_to_leave_out(problem: Problem, before: ProblemChange, planned: Plan) -> Iterator[list[LeftOut]]:
    """What may be left out besides: for all groups concerned, and in the end domains for all pods. (kube-scheduler
    counts a domain for a spread as soon as it has a node, for whichever pods that was launched.)"""
    pending = pending_by_topology(planned)
    if not pending:
        return
    concerned = _with_related(problem, pending)
    pools = [LeftOut(NODEPOOL, pool.pool.name, concerned) for pool in usable_pools(problem.pools)]
    left = [pool for pool in pools if pool not in before.left_out]
    claims = (claim for claim in planned.claims if not concerned.isdisjoint(claim.pods))
    types = dict.fromkeys(LeftOut(INSTANCE_TYPE, claim.instance_types[0], concerned) for claim in claims)
    yield [
        *_domains_to_leave_out(problem, before, planned, concerned),
        *(left[:MAX_LEFT_OUT] if len(left) > 1 else ()),
        *list(types)[:MAX_LEFT_OUT],
    ]
    everyone = frozenset(problem.pod_of)
    if concerned != everyone:
        yield _domains_to_leave_out(problem, before, planned, everyone)


def _domains_to_leave_out(
    problem: Problem, before: ProblemChange, planned: Plan, uids: frozenset[str]
) -> list[LeftOut]:
    domains = (LeftOut(key, value, uids) for key, value in _domains_in_the_way(problem, planned, uids))
    return [domain for domain in domains if domain not in before.left_out][:MAX_LEFT_OUT]


def pending_by_topology(planned: Plan) -> frozenset[str]:
    """The pods (uids) that are pending because of topology: a node that meets their own demands could be had."""
    return frozenset().union(*_pending_groups(planned))


def _pending_groups(planned: Plan) -> list[frozenset[str]]:
    """The same pods (uids), by class and reasons; the largest group first."""
    groups = [group for group in planned.unplaced if any(reason.code in BY_TOPOLOGY for reason in group.reasons)]
    return [frozenset(group.pods) for group in sorted(groups, key=lambda each: (-len(each.pods), each.pods))]


def _domains_in_the_way(problem: Problem, planned: Plan, uids: frozenset[str]) -> list[tuple[str, str]]:
    """The zones and capacity types (label and value) that may be in the way of those of these pods that are pending.

    First those that reasons name: of a spread the domains with fewest pods, of other rules those with pods; sorted by
    how many pods wait. Then all other domains of the topology keys of these pods.
    """
    waiting = Counter[tuple[str, str]]()
    keys: set[str] = set()
    for group in planned.unplaced:
        if uids.isdisjoint(group.pods):
            continue
        named = {domain for reason in group.reasons for domain in _domains_in_reason(reason)}
        waiting.update(dict.fromkeys(named, len(group.pods)))
        if any(reason.code in BY_TOPOLOGY for reason in group.reasons):
            keys |= topology_keys(problem.shapes[problem.pod_of[group.pods[0]].shape])
    waiting.update(dict.fromkeys((domain for domain in _domains_on_offer(problem) if domain[0] in keys), 0))
    return sorted(waiting, key=lambda domain: (-waiting[domain], domain))


def _domains_on_offer(problem: Problem) -> set[tuple[str, str]]:
    """The zones and capacity types (label and value) in which nodes may be launched."""
    offers = (offer for catalogue in problem.catalogues.values() for offer in catalogue.on_offer())
    return {domain for offer in offers for domain in ((ZONE, offer.zone), (CAPACITY_TYPE, offer.capacity_type))}


def _domains_in_reason(reason: Reason) -> Iterator[tuple[str, str]]:
    """The domains (label and value) that a reason names as too empty (of a spread) or occupied (of other rules)."""
    key = reason.params.get("key")
    if reason.code != SchedulingCode.TOPOLOGY or key not in (ZONE, CAPACITY_TYPE):
        return
    domains = reason.params["domains"]
    assert isinstance(domains, list)
    counts = {name: int(count) for name, equals, count in (domain.rpartition("=") for domain in domains) if equals}
    least = min(counts.values(), default=0)
    for name, count in counts.items():
        if count == least if reason.params["rule"] == "spread" else count:
            yield str(key), name
