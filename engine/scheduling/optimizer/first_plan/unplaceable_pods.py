"""Pods that topology keeps pending whatever changes: who is placed first, and which types or NodePools are left out.

Without this, each pass with pending pods would try all changes again, which takes several times as long as the plan.
That nothing can help is seen from the rules alone, in four cases:

* pods that must be spread over a label that no node has, or would have, as where its key is misspelt;
* pods that keep each other out of a zone or capacity type: there are no more places than zones or capacity types;
* pods that must be spread over more zones or capacity types than there are (`minDomains`): at most `maxSkew` in each;
* pods that must be with pods of which there are none.

The zones and capacity types are those of all NodePools, offerings and nodes, so leaving some of these out adds none.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import CAPACITY_TYPE, HOSTNAME, WELL_KNOWN, ZONE, normalise
from kerf.engine.scheduling.launchable.templates import PLANNING_ONLY_LABELS
from kerf.engine.scheduling.matching.label_selectors import (
    PodSelector,
    required_affinity_selectors,
    spread_selector,
    term_selector,
)
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import pending_by_topology
from kerf.engine.scheduling.optimizer.pods_by_label import PodsByLabel
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD, alternatives_of, hard_keys, spread_keys
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem, ShapeKey

DOMAIN_KEYS = ZONE, CAPACITY_TYPE
"""The topology keys with a fixed set of domains: each new node is in one for which there is an offering."""


class SeparatedPods(Struct, frozen=True):
    """A rule that some pods share: no domain of `key` may hold more than `max_per_domain` of the pods that `selects`
    takes. `counted_nodes`: tells apart which nodes count for it; None: all do."""

    selects: PodSelector
    key: str
    max_per_domain: int
    counted_nodes: Hashable = None


class PlacementLimit(Struct, frozen=True):
    """At most `most` of these pods can be placed."""

    pods: tuple[PendingPod, ...]
    most: int


class UnplaceablePods:
    """What no change of one problem can place. Pods that are pending in its own plan for other reasons than topology
    are taken to be pending in every plan."""

    def __init__(self, problem: Problem, own: Plan) -> None:
        """`own`: the planner's plan of the unchanged problem."""
        self._problem = problem
        self._pods = problem.pods_of_kind
        self._waiting_by_label = PodsByLabel(problem, self._pods)
        bound = {pod.shape_key for pod in problem.bound if not pod.terminating}
        self._bound_by_label = PodsByLabel(problem, bound)
        self._domains = {key: _domains(problem, key) for key in DOMAIN_KEYS}
        self._limits = list(self._all_limits())
        self._without_domain = self._pods_without_domain(pending_by_topology(own))
        possible = (own.placed | pending_by_topology(own)) - self._without_domain
        self._without_partner = self._pods_without_partner(possible)

    def of(self, plan: Plan) -> frozenset[str]:
        """The pods (uids) that topology keeps pending in this plan and would in every other."""
        pending = pending_by_topology(plan)
        if not pending:
            return pending
        placed = plan.placed
        unplaceable = set(pending & (self._without_domain | self._without_partner))
        for limit in self._limits:
            waiting = [pod for pod in limit.pods if pod.uid in pending]
            if waiting and self._is_reached(limit, [pod for pod in limit.pods if pod.uid in placed], waiting):
                unplaceable.update(pod.uid for pod in waiting)
        return frozenset(unplaceable)

    def _is_reached(self, limit: PlacementLimit, placed: Iterable[PendingPod], waiting: Iterable[PendingPod]) -> bool:
        """Whether as many pods are placed as can be, none of them with a lower priority than one that waits."""
        ranks = [self._rank(pod) for pod in placed]
        return len(ranks) >= limit.most and max(ranks, default=(False, -math.inf)) <= min(map(self._rank, waiting))

    def _rank(self, pod: PendingPod) -> tuple[bool, float]:
        return pod.virtual, -self._problem.shapes[pod.shape].priority

    # ── pods that must be spread over a label that nothing has ──────────────────────────────────────

    def _pods_without_domain(self, pending: frozenset[str]) -> frozenset[str]:
        """Those of these pods (uids) that must be spread over a label which no node has, or would have (S-117)."""
        keys = {key: _hard_spread_keys(self._problem.shapes[key[1]]) for key in self._pods}
        if not any(keys.values()):
            return frozenset()
        known = _known_labels(self._problem)
        without = (pods for key, pods in self._pods.items() if not keys[key] <= known)
        return pending.intersection(pod.uid for pods in without for pod in pods)

    # ── pods that must be with pods of which there are none ──────────────────────────────────────

    def _pods_without_partner(self, possible: frozenset[str]) -> frozenset[str]:
        """The pods (uids) that must be with others of which none is bound and none is `possible` (uids). Pods whose
        partners are found to be without partner themselves are among them."""
        remaining = {key for key, pods in self._pods.items() if any(pod.uid in possible for pod in pods)}
        partners = {key: self._partners(key) for key in remaining}
        without: set[ShapeKey] = set()
        while more := {key for key in remaining if any(remaining.isdisjoint(partner) for partner in partners[key])}:
            without |= more
            remaining -= more
        return frozenset(pod.uid for key in without for pod in self._pods[key])

    def _partners(self, shape_key: ShapeKey) -> list[list[ShapeKey]]:
        """For each required affinity term that no bound pod meets, the waiting pods that do."""
        shape = self._problem.shapes[shape_key[1]]
        selectors = required_affinity_selectors(shape, shape_key[0], self._problem.namespaces)
        return [
            self._waiting_by_label.selected(selector)
            for selector in selectors
            if not self._bound_by_label.selected(selector)
        ]

    # ── pods that are too many for the domains ──────────────────────────────────────

    def _all_limits(self) -> Iterator[PlacementLimit]:
        rules: dict[SeparatedPods, list[ShapeKey]] = defaultdict(list)
        for shape_key in self._pods:
            for rule in dict.fromkeys(self._separation_rules(shape_key)):
                rules[rule].append(shape_key)
        pods_on: dict[ShapeKey, Counter[str]] = defaultdict(Counter)
        for pod in self._problem.bound if rules else ():
            if not pod.terminating:
                pods_on[pod.shape_key][pod.node] += 1
        nodes = {node.name: node for node in (*self._problem.nodes, *self._problem.leaving)}
        for rule, shape_keys in rules.items():
            pods = tuple(pod for shape_key in shape_keys for pod in self._pods[shape_key])
            taken = Counter[str]()
            for bound in self._bound_by_label.selected(rule.selects):
                for node in (nodes[name] for name in pods_on[bound] if name in nodes):
                    shape = self._problem.shapes[shape_keys[0][1]]
                    if rule.counted_nodes is None or _counted_by_every_policy(node, shape):
                        taken[node.labels.get(rule.key, "")] += pods_on[bound][node.name]
            domains = self._possible_domains(rule.key, shape_keys)
            most = sum(max(0, rule.max_per_domain - taken[domain]) for domain in domains)
            if most < len(pods):
                yield PlacementLimit(pods, most)

    def _separation_rules(self, shape_key: ShapeKey) -> Iterator[SeparatedPods]:
        """The rules by which such pods keep apart from pods like themselves."""
        namespace, shape = shape_key[0], self._problem.shapes[shape_key[1]]
        for term in shape.anti_affinity:
            key = normalise(term.topology_key)
            if not term.weight and self._domains.get(key) is not None:
                selector = term_selector(term, namespace, shape.labels, self._problem.namespaces)
                if selector.selects(namespace, shape.labels):
                    yield SeparatedPods(selector, key, 1)
        for constraint in shape.spread:
            key = normalise(constraint.topology_key)
            domains = self._domains.get(key)
            too_few = domains is not None and len(domains) < (constraint.min_domains or 0)
            if constraint.when_unsatisfiable == HARD_SPREAD and too_few:
                selector = spread_selector(constraint, namespace, shape.labels)
                if selector.selects(namespace, shape.labels):
                    asked = alternatives_of(shape), shape.tolerations, spread_keys(shape) - {HOSTNAME}
                    counted_nodes = asked, constraint.node_affinity_policy, constraint.node_taints_policy
                    yield SeparatedPods(selector, key, constraint.max_skew, counted_nodes)

    def _possible_domains(self, key: str, shape_keys: Iterable[ShapeKey]) -> set[str]:
        """The domains that one of these pods may go to."""
        domains = self._domains[key] or frozenset()
        asked = [
            alternative
            for shape_key in shape_keys
            for alternative in alternatives_of(self._problem.shapes[shape_key[1]])
        ]
        return {domain for domain in domains if any(alternative.get(key).has(domain) for alternative in asked)}


def _hard_spread_keys(shape: PodShape) -> frozenset[str]:
    """The labels that the pod must be spread over, but for those that nodes may have unlisted."""
    return hard_keys(shape) - WELL_KNOWN - {*PLANNING_ONLY_LABELS}


def _known_labels(problem: Problem) -> frozenset[str]:
    """The labels that nodes have, or that NodePools, NodeClasses or instance types give or allow new ones."""
    nodes = (*problem.nodes, *problem.leaving)
    known = {key for node in nodes for key in (*node.labels, *(wanted.key for wanted in node.requirements))}
    for pool in (pool.pool for pool in problem.pools):
        known |= {pool.node_class.label, *pool.labels, *(wanted.key for wanted in pool.requirements)}
    types = (kind for catalogue in problem.catalogues.values() for kind in catalogue.types)
    known.update(key for kind in types for key in kind.requirements)
    return frozenset(map(normalise, known))


def _domains(problem: Problem, key: str) -> frozenset[str] | None:
    """All domains of one of `DOMAIN_KEYS` in which there may be nodes; None if a node may be in none."""
    domains = set()
    for node in problem.nodes:
        if key not in node.labels:
            return None
        domains.add(node.labels[key])
    for pool in usable_pools(problem.pools):
        asked = Requirements.of_specs(pool.pool.requirements).get(key)
        for offering in problem.catalogues[pool.catalogue].on_offer() if pool.catalogue else ():
            domain = offering.zone if key == ZONE else offering.capacity_type
            if domain not in domains and asked.has(domain):
                domains.add(domain)
    return frozenset(domains)


def _counted_by_every_policy(node: NodeInput, shape: PodShape) -> bool:
    """Whether every spread of the pod counts the node's pods, whatever its node policies are."""
    asks_nothing = not (node.taints or shape.node_selector or shape.required_terms)
    return asks_nothing and spread_keys(shape) - {HOSTNAME} <= node.labels.keys()
