"""A judge of spreads that shares no code with the planner: how many pods each spread constraint of a plan has too many.

It counts as users would: pods in every domain that has a node, or in which one could be launched for such a pod. A
domain without a node counts 0 there (S-126, S-138). For the hostname the least is 0, because a node can be added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Expression, PodShape, SpreadConstraint
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import PoolInput, Problem
from tests.support.judges.labels import Host, Kind, expression_holds, of_offer, tolerates, wants_node
from tests.support.judges.plans import Judge

Owner = tuple[Kind, int]
"""Pods that are alike, and the place of one of their spread constraints."""


class Excess(Struct, frozen=True):
    """Of one constraint: how many of its pods are beyond what it allows in some domain, or where nobody knows the
    domain yet; how many are beyond it in the worst domain; and all counted pods by domain, to be read."""

    pods: int
    worst: int
    by_domain: dict[str, int]

    def worse_than(self, other: Excess) -> bool:
        return self.pods > other.pods or self.worst > other.worst


def worse_spreads(problem: Problem, first: Plan, other: Plan) -> list[str]:
    """The spreads that the other plan breaks more than the first one; empty if there are none."""
    before, after = excesses(problem, first), excesses(problem, other)
    return [
        f"{problem.shapes[owner[0][1]].labels}: {problem.shapes[owner[0][1]].spread[owner[1]].topology_key} "
        f"{before[owner].by_domain} became {found.by_domain}"
        for owner, found in after.items()
        if found.worse_than(before[owner])
    ]


def excesses(problem: Problem, planned: Plan) -> dict[Owner, Excess]:
    """What each spread constraint of the waiting pods finds in a plan."""
    judge = Judge(problem, planned)
    found = {}
    for kind in sorted({(pod.namespace, pod.shape) for pod in problem.pods}):
        for place, constraint in enumerate(problem.shapes[kind[1]].spread):
            if constraint.when_unsatisfiable == "DoNotSchedule" or problem.settings.preference_policy == "Respect":
                found[kind, place] = _excess(judge, kind, constraint)
    return found


def _excess(judge: Judge, owner: Kind, constraint: SpreadConstraint) -> Excess:
    key, shape = lbl.normalise(constraint.topology_key), judge.shapes[owner[1]]
    counts: Counter[str] = Counter()
    owners: Counter[str] = Counter()
    unsettled = 0
    for host in judge.hosts:
        domain = host.domain(key)
        if domain is None:
            unsettled += host.planned[owner]
            continue
        owners[domain] += host.planned[owner]
        if _looks_at(host, shape, constraint):
            here = host.bound + host.planned
            counts[domain] += sum(pods for kind, pods in here.items() if judge._matches(kind, owner, constraint))
    eligible = {value for value in _domains(judge.problem, judge.hosts, shape, constraint) if _asked(shape, key, value)}
    enough = len(eligible) >= (constraint.min_domains or 0)
    least = min((counts[value] for value in eligible), default=0) if enough and key != lbl.HOSTNAME else 0
    beyond = {
        domain: max(0, counts[domain] - least - constraint.max_skew)
        for domain in (counts if key == lbl.HOSTNAME else eligible)
    }
    counts_itself = judge._matches(owner, owner, constraint)  # else its pods may only be where few others are
    beyond = {
        domain: min(over, owners[domain]) if counts_itself else owners[domain] if over else 0
        for domain, over in beyond.items()
    }
    return Excess(sum(beyond.values()) + unsettled, max(beyond.values(), default=0), dict(sorted(counts.items())))


def _looks_at(host: Host, shape: PodShape, constraint: SpreadConstraint) -> bool:
    """Whether the constraint counts the pods on a node (S-122)."""
    hard = [rule.topology_key for rule in shape.spread if rule.when_unsatisfiable == "DoNotSchedule"]
    if constraint.when_unsatisfiable == "DoNotSchedule" and any(None in host.values(key) for key in hard):
        return False
    if constraint.node_taints_policy == "Honor" and not tolerates(shape, host.taints):
        return False
    return constraint.node_affinity_policy != "Honor" or all(wants_node(shape, labels) for labels in host.labels)


def _asked(shape: PodShape, key: str, domain: str) -> bool:
    """Whether the pod itself could be in a domain, going by what it asks of that label alone."""
    own = [Expression(name, "In", (value,)) for name, value in shape.node_selector.items()]
    terms = [required_term.expressions for required_term in shape.required_terms] or [()]
    return any(
        all(
            expression_holds(expression, {key: domain})
            for expression in (*own, *term)
            if lbl.normalise(expression.key) == key
        )
        for term in terms
    )


def _domains(problem: Problem, hosts: list[Host], shape: PodShape, constraint: SpreadConstraint) -> set[str]:
    """The domains that have a node, or in which one could be launched for such a pod."""
    key = lbl.normalise(constraint.topology_key)
    present = {host.domain(key) for host in hosts if not host.leaving and _looks_at(host, shape, constraint)}
    launchable = {
        value
        for pool in problem.pools
        if pool.pool.ready
        and not pool.pool.deleting
        and pool.pool.replicas is None
        and tolerates(shape, pool.pool.taints)
        for labels in _launchable(problem, pool)
        if wants_node(shape, labels) and (value := labels.get(key)) is not None
    }
    return {domain for domain in (*present, *launchable) if domain is not None}


def _takes_part(pool: NodePool) -> bool:
    return pool.ready and not pool.deleting and pool.replicas is None


def _launchable(problem: Problem, pool: PoolInput) -> Iterator[dict[str, str]]:
    """The labels of every node that the NodePool could launch."""
    wanted = [
        Expression(requirement.key, requirement.operator, requirement.values) for requirement in pool.pool.requirements
    ]
    for given in problem.catalogues[pool.catalogue].types:
        own = {key: values[0] for key, values in given.requirements.items() if len(values) == 1}
        for offer in given.offerings:
            gone = {(c, t, z) for c in (offer.capacity_type, "") for t in (given.name, "") for z in (offer.zone, "")}
            labels = {**own, **of_offer(offer), **pool.pool.labels, lbl.NODEPOOL: pool.pool.name}
            named = {lbl.normalise(key): value for key, value in labels.items()}
            if offer.available and not gone & problem.unavailable and all(expression_holds(e, named) for e in wanted):
                yield named
