"""Pods that topology keeps pending whatever is changed about a plan: who is placed first, and what is left out.

Each pass that finds pods pending would ask again whether a change helps, at several times the cost of its plan. That
nothing can is seen here from the rules alone, with nothing remembered from pass to pass:

* pods that keep each other away from zones or capacity types: no more than there are of these;
* pods that are spread over more of these than there are (`minDomains`): in none of them more than `maxSkew`;
* pods that must be with pods of which there are none.

What there is is told from all NodePools, offerings and nodes, so that there is no more of it where some are left out.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE, normalise
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey
from kerf.engine.scheduling.matching.label_selectors import (
    PodSelector,
    required_affinity_selectors,
    spread_selector,
    term_selector,
)
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import pending_by_topology
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD, alternatives_of
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem

DOMAIN_KEYS = ZONE, CAPACITY_TYPE
"""Every new node is in one domain of these, and there are only as many as there are offerings in."""


class SeparatedPods(Struct, frozen=True):
    """Pods that all ask the same of each other: of those that `selects` takes, no domain of `key` may hold more than
    `most`. `among`: the nodes that are looked at for that, None for all."""

    selects: PodSelector
    key: str
    most: int
    among: Hashable = None


class PlacementLimit(Struct, frozen=True):
    """Of these pods no more than `most` can be placed."""

    pods: tuple[PendingPod, ...]
    most: int


class UnplaceablePods:
    """What is known of one problem, however it is put: those that are pending for other reasons in its own plan are
    taken to be in all others."""

    def __init__(self, problem: Problem, own: Plan) -> None:
        self._problem = problem
        self._pods: dict[ShapeKey, list[PendingPod]] = defaultdict(list)
        for each in problem.pods:
            self._pods[each.namespace, each.shape].append(each)
        self._pending = _PodsByLabel(problem, self._pods)
        self._bound = _PodsByLabel(problem, {(e.namespace, e.shape) for e in problem.bound if not e.terminating})
        self._domains = {key: _domains(problem, key) for key in DOMAIN_KEYS}
        self._limits = list(self._all_limits())
        self._alone = self._without_company(own.placed | pending_by_topology(own))

    def of(self, made: Plan) -> frozenset[str]:
        """Those of the pods (uids) pending in a plan that topology keeps pending in every other, too."""
        kept = pending_by_topology(made)
        if not kept:
            return kept
        placed = made.placed
        found = set(kept & self._alone)
        for limit in self._limits:
            waiting = [each for each in limit.pods if each.uid in kept]
            if waiting and self._reached(limit, [each for each in limit.pods if each.uid in placed], waiting):
                found.update(each.uid for each in waiting)
        return frozenset(found)

    def _reached(self, limit: PlacementLimit, placed: Iterable[PendingPod], waiting: Iterable[PendingPod]) -> bool:
        """Whether as many are placed as can be, and none of a lower priority than one that waits."""
        ranks = [self._rank(each) for each in placed]
        return len(ranks) >= limit.most and max(ranks, default=(False, -math.inf)) <= min(map(self._rank, waiting))

    def _rank(self, pod: PendingPod) -> tuple[bool, float]:
        return pod.virtual, -self._problem.shapes[pod.shape].priority

    # ── with pods of which there are none ──────────────────────────────────────

    def _without_company(self, possible: frozenset[str]) -> frozenset[str]:
        """Those (uids) that must be with others of which none is bound, and none of these (uids) is one."""
        there = {pair for pair, pods in self._pods.items() if any(each.uid in possible for each in pods)}
        wanted = {pair: self._sought(pair) for pair in there}
        found: set[ShapeKey] = set()
        while more := {pair for pair in there if any(there.isdisjoint(each) for each in wanted[pair])}:
            found |= more
            there -= more
        return frozenset(each.uid for pair in found for each in self._pods[pair])

    def _sought(self, pair: ShapeKey) -> list[list[ShapeKey]]:
        """For each term of affinity that no bound pod meets, those who do."""
        selectors = required_affinity_selectors(self._problem.shapes[pair[1]], pair[0], self._problem.namespaces)
        return [self._pending.selected(each) for each in selectors if not self._bound.selected(each)]

    # ── in domains of which there are too few ──────────────────────────────────────

    def _all_limits(self) -> Iterator[PlacementLimit]:
        crowds: dict[SeparatedPods, list[ShapeKey]] = defaultdict(list)
        for pair in self._pods:
            for crowd in dict.fromkeys(self._crowds(pair)):
                crowds[crowd].append(pair)
        on_nodes: dict[ShapeKey, Counter[str]] = defaultdict(Counter)
        for each in self._problem.bound if crowds else ():
            if not each.terminating:
                on_nodes[each.namespace, each.shape][each.node] += 1
        nodes = {each.name: each for each in (*self._problem.nodes, *self._problem.leaving)}
        for crowd, pairs in crowds.items():
            pods = tuple(each for pair in pairs for each in self._pods[pair])
            there = Counter[str]()
            for pair in self._bound.selected(crowd.selects):
                for node in (nodes[name] for name in on_nodes[pair] if name in nodes):
                    if crowd.among is None or _counted_by_every_policy(node, self._problem.shapes[pairs[0][1]]):
                        there[node.labels.get(crowd.key, "")] += on_nodes[pair][node.name]
            most = sum(max(0, crowd.most - there[domain]) for domain in self._open(crowd.key, pairs))
            if most < len(pods):
                yield PlacementLimit(pods, most)

    def _crowds(self, pair: ShapeKey) -> Iterator[SeparatedPods]:
        namespace, shape = pair[0], self._problem.shapes[pair[1]]
        for term in shape.anti_affinity:
            key = normalise(term.topology_key)
            if not term.weight and self._domains.get(key) is not None:
                selector = term_selector(term, namespace, shape.labels, self._problem.namespaces)
                if selector.selects(namespace, shape.labels):
                    yield SeparatedPods(selector, key, 1)
        for each in shape.spread:
            key = normalise(each.topology_key)
            known = self._domains.get(key)
            if each.when_unsatisfiable == HARD_SPREAD and known is not None and len(known) < (each.min_domains or 0):
                selector = spread_selector(each, namespace, shape.labels)
                if selector.selects(namespace, shape.labels):
                    asked = alternatives_of(shape), shape.tolerations, _spread_keys(shape)
                    yield SeparatedPods(
                        selector, key, each.max_skew, (asked, each.node_affinity_policy, each.node_taints_policy)
                    )

    def _open(self, key: str, pairs: Iterable[ShapeKey]) -> set[str]:
        """The domains that one of these may go to."""
        known = self._domains[key] or frozenset()
        asked = [each for pair in pairs for each in alternatives_of(self._problem.shapes[pair[1]])]
        return {domain for domain in known if any(each.get(key).has(domain) for each in asked)}


class _PodsByLabel:
    """Pods by their labels, for selectors to be compared with few."""

    def __init__(self, problem: Problem, pairs: Iterable[ShapeKey]) -> None:
        self._shapes = problem.shapes
        self._all = sorted(pairs)
        self._by_label: dict[tuple[str, str], list[ShapeKey]] = defaultdict(list)
        for pair in self._all:
            for label in self._shapes[pair[1]].labels.items():
                self._by_label[label].append(pair)
        self._known: dict[PodSelector, list[ShapeKey]] = {}

    def selected(self, selector: PodSelector) -> list[ShapeKey]:
        found = self._known.get(selector)
        if found is None:
            these = self._by_label.get(selector.labels[0], []) if selector.labels else self._all
            found = [pair for pair in these if selector.selects(pair[0], self._shapes[pair[1]].labels)]
            self._known[selector] = found
        return found


def _domains(problem: Problem, key: str) -> frozenset[str] | None:
    """Of one of `DOMAIN_KEYS`, all in which there may be nodes; None where a node may be in none of them."""
    found = set()
    for each in problem.nodes:
        if key not in each.labels:
            return None
        found.add(each.labels[key])
    for pool in usable_pools(problem.pools):
        asked = Requirements.of_specs(pool.pool.requirements).get(key)
        types = problem.catalogues[pool.catalogue].types if pool.catalogue else ()
        for offer in (offer for each in types for offer in each.offerings if offer.available):
            domain = offer.zone if key == ZONE else offer.capacity_type
            if domain not in found and asked.has(domain):
                found.add(domain)
    return frozenset(found)


def _counted_by_every_policy(node: NodeInput, shape: PodShape) -> bool:
    """Whether every spread of the pod looks at the node, whatever its policies."""
    return (
        not (node.taints or shape.node_selector or shape.required_terms) and _spread_keys(shape) <= node.labels.keys()
    )


def _spread_keys(shape: PodShape) -> frozenset[str]:
    return frozenset(normalise(each.topology_key) for each in shape.spread) - {HOSTNAME}
