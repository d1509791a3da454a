"""Alternative plans: what could take the place of the first plan, and whether it may.

An alternative plan may replace the first plan only if nothing gets worse but, within bounds, its price (`may_replace`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.matching.label_selectors import shape_selectors
from kerf.engine.scheduling.optimizer.partial_problems import limits_used
from kerf.engine.scheduling.optimizer.pods_by_label import PodsByLabel
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import PoolInput, Problem, ShapeKey, by_name

TOLERANCE = 1e-9
"""Prices that differ by less are equal, USD per hour."""


class CandidateClaim(Struct, frozen=True):
    """A claim of an alternative plan.

    `base_number`: its number in the base plan, -1 if the claim was planned alone. `problem`: the problem of
    this claim alone, None if only the base plan has it. `narrow`: it was planned with fewer types than there are.
    """

    claim: OpenedClaim
    base_number: int
    problem: Problem | None = None
    narrow: bool = False


class AlternativePlan(Struct, frozen=True):
    """A plan in parts: the placements of a base plan, and claims that are of the base plan or were planned alone.

    `problem`: the problem of the base plan. `moved`: pods that other pods look at are on other nodes than the planner
    put them.
    """

    problem: Problem
    base: Plan
    claims: tuple[CandidateClaim, ...]
    moved: bool = False

    @property
    def opened(self) -> tuple[OpenedClaim, ...]:
        """The claims as the planner made them."""
        return tuple(part.claim for part in self.claims)

    @property
    def price(self) -> float:
        """USD per hour."""
        return total_price(self.opened)


def candidate_of_plan(problem: Problem, planned: Plan, *, narrow: bool = False) -> AlternativePlan:
    """A plan of a problem, in the parts of an alternative plan. `narrow`: see `CandidateClaim`."""
    claims = (CandidateClaim(claim, number, narrow=narrow) for number, claim in enumerate(planned.claims))
    return AlternativePlan(problem, planned, tuple(claims))


def total_price(claims: Iterable[OpenedClaim]) -> float:
    """What the claims cost together, each as its cheapest type, USD per hour."""
    return math.fsum(claim.price for claim in claims)


def assembled(candidate: AlternativePlan, first: Plan) -> Plan:
    """The alternative plan as one plan. Why pods have no place is what the first plan says."""
    plan = Plan(candidate.opened, candidate.base.placements, (), first.ignored, first.truncated)
    return replace(plan, unplaced=_still_unplaced(first.unplaced, plan.placed))


def placements(problem: Problem, places: Mapping[str, str | int]) -> tuple[Placement, ...]:
    """The pods on existing nodes. `places`: by uid, the node of each pod (by name), or any other place."""
    claims = {node.name: node.claim for node in problem.nodes}
    pods_on: dict[str, list[str]] = defaultdict(list)
    for pod in sorted(problem.pods, key=by_name):
        node = places.get(pod.uid)
        if isinstance(node, str) and node in claims:
            pods_on[node].append(pod.uid)
    return tuple(Placement(node, claims[node], tuple(uids)) for node, uids in sorted(pods_on.items()))


def with_bound(problem: Problem, planned: Plan, node_of: Mapping[str, str]) -> Plan:
    """A plan with these pods (uids) on existing nodes besides."""
    return replace(planned, placements=placements(problem, {**planned.places, **node_of}))


def _still_unplaced(groups: tuple[Unplaced, ...], placed: frozenset[str]) -> tuple[Unplaced, ...]:
    left = (Unplaced(tuple(uid for uid in group.pods if uid not in placed), group.reasons) for group in groups)
    return tuple(group for group in left if group.pods)


# ── what must not get worse ──────────────────────────────────────


def may_replace(
    problem: Problem, first: Plan, other: Plan, own: Mapping[str, NodePool] | None = None, *, by_pod: bool = True
) -> bool:
    """Whether a plan may replace the first one.

    It must leave no pod pending that the first plan places, keep all limits and reservations, and lower minValues no
    further. With `by_pod` it must also open no node for pods whose `own` NodePools (by uid; those of the first plan)
    are all of more weight.
    """
    return (
        _all_pods(first) == _all_pods(other)
        and _left_over(other) <= _left_over(first)
        and sum(claim.min_values_relaxed for claim in other.claims) <= sum(e.min_values_relaxed for e in first.claims)
        and (not by_pod or _keeps_weights(problem, _pools_of(problem, first) if own is None else own, other))
        and all(_keeps_limits(problem, pool, first, other) for pool in problem.pools)
        and _keeps_reservations(problem, first, other)
    )


def _left_over(planned: Plan) -> frozenset[str]:
    groups = (*planned.unplaced, *planned.ignored)
    return frozenset([*planned.truncated, *(uid for group in groups for uid in group.pods)])


def _all_pods(planned: Plan) -> list[str]:
    on_new = [uid for claim in planned.claims for uid in claim.pods]
    on_old = [uid for placement in planned.placements for uid in placement.pods]
    return sorted([*on_new, *on_old, *_left_over(planned)])


def _pools_of(problem: Problem, planned: Plan) -> dict[str, NodePool]:
    """The NodePool of each pod (uid) that a plan puts on a new node."""
    return {uid: problem.pool_of[claim.node_pool].pool for claim in planned.claims for uid in claim.pods}


def _keeps_weights(problem: Problem, own: Mapping[str, NodePool], other: Plan) -> bool:
    """Whether each node holds a pod whose own NodePool has no more weight. Other pods may share the node with it,
    because the planner, too, fills nodes with whatever fits. Pods of one kind may change with one another: the lightest
    of their NodePools go to the lightest nodes, one to each before any node has a second."""
    weights = {name: pool_input.pool.weight for name, pool_input in problem.pool_of.items()}
    on_nodes = [(weights[claim.node_pool], claim.pods) for claim in other.claims]
    if all(min(own[uid].weight if uid in own else weight for uid in uids) <= weight for weight, uids in on_nodes):
        return True
    seats: dict[ShapeKey, list[tuple[int, int, int]]] = defaultdict(list)
    weights_of: dict[ShapeKey, list[int]] = defaultdict(list)
    kept: set[int] = set()
    for number, (weight, uids) in enumerate(on_nodes):
        before = Counter[ShapeKey]()
        for uid in uids:
            kind = problem.pod_of[uid].shape_key
            if uid in own:
                seats[kind].append((before[kind], weight, number))
                weights_of[kind].append(own[uid].weight)
                before[kind] += 1
            else:
                kept.add(number)
    for kind, places in seats.items():
        taken = zip(sorted(places), sorted(weights_of[kind]), strict=True)
        kept |= {number for (_, weight, number), lightest in taken if lightest <= weight}
    return len(kept) == len(on_nodes)


def _keeps_limits(problem: Problem, pool: PoolInput, first: Plan, other: Plan) -> bool:
    """Whether the plan keeps the NodePool's limits or, if the first plan does not, exceeds them no further."""
    after = limits_used(problem, pool, other.claims)
    return all(after[name] <= most for name, most in limits_for(problem, pool, first).items())


def limits_for(problem: Problem, pool: PoolInput, first: Plan) -> Resources:
    """How much of each limit of the NodePool a plan may use: what is left, or what the first plan uses."""
    before = limits_used(problem, pool, first.claims)
    return {name: max(most - pool.usage.get(name, 0), before[name]) for name, most in (pool.pool.limits or {}).items()}


def _keeps_reservations(problem: Problem, first: Plan, other: Plan) -> bool:
    """Whether no reservation is held by more claims than it has launches left (S-112, S-113). That may happen because
    each claim that was planned alone had all reservations to itself."""
    before, after = _reservations_held(first), _reservations_held(other)
    left: dict[str, int] = {}
    for catalogue in problem.catalogues.values() if after else ():
        for offer in catalogue.on_offer():
            if offer.reservation_id in after:
                known = left.get(offer.reservation_id, offer.reservation_capacity)
                left[offer.reservation_id] = min(known, offer.reservation_capacity)
    return all(count <= max(left.get(name, 0), before[name]) for name, count in after.items())


def _reservations_held(planned: Plan) -> Counter[str]:
    return Counter(name for claim in planned.claims for name in claim.reservations)


# ── pods and what they demand ──────────────────────────────────────


def independent_pods(problem: Problem) -> frozenset[ShapeKey]:
    """The waiting pods, by shape key, that have no rules about other pods and that no rule of other pods selects. They
    may be moved without looking at anything but the nodes."""
    pending = problem.pods_of_kind.keys()
    present = pending | {pod.shape_key for pod in problem.bound}
    selectors = {
        selector
        for namespace, digest in present
        for selector in shape_selectors(problem.shapes[digest], namespace, problem.namespaces)
    }
    by_label = PodsByLabel(problem, pending)
    selected = {key for selector in selectors for key in by_label.selected(selector)}
    return frozenset(key for key in pending - selected if _is_independent(problem.shapes[key[1]]))


def _is_independent(shape: PodShape) -> bool:
    return not (shape.spread or shape.affinity or shape.anti_affinity or shape.volumes or shape.resource_claims)
