"""How well plans keep the spreads of their pods, counted as the planner counts them (S-36, S-126, S-138, S-140).

kube-scheduler knows no zone without a node, and neither does its model. If all nodes are in one zone, it binds all pods
of a spread there. The planner counts every zone that there could be a node in, because that is what users ask for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.launchable.templates import Template
from kerf.engine.scheduling.optimizer.alternative_plans import with_bound
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import CompiledProblem
from kerf.engine.scheduling.pods.pod_requirements import spread_keys
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.topology.pod_counts import PodCount
from kerf.engine.scheduling.topology.rules import Domain, SpreadRule
from kerf.engine.scheduling.topology.topology import SavedCount

Kind = tuple[str, str, Requirements]
"""Pods that are alike: namespace, digest of the shape, and what they ask of new nodes besides."""
BoundPods = Counter[tuple[int, Domain | None]]
"""How many pods of a plan each rule (by number) binds in each domain; None: in one that is not known yet."""


NONE_BOUND: Mapping[str, str] = {}


class _Spreads(Struct, frozen=True):
    """What spreads have to do with the pods of one shape: the rules that bind them, and the counts that they enter."""

    rules: tuple[SpreadRule, ...]
    counts: tuple[PodCount, ...]


class SpreadJudge:
    """Compares the plans of one problem with its first plan. `bound`: pods (uids) that are on these nodes in every
    other plan, which names only where the others are. `keys`: the labels whose domains pods are spread over."""

    def __init__(self, problem: Problem, first: Plan, bound: Mapping[str, str] = NONE_BOUND) -> None:
        self._problem, self._first, self._bound = problem, first, bound
        shapes = {pod.shape for pod in problem.pods}
        self.keys = frozenset[str]().union(*[spread_keys(problem.shapes[digest]) for digest in shapes])

    def keeps(self, planned: Plan) -> bool:
        """Whether the plan breaks no spread more than the first plan does: no more pods are where their rule allows
        none, and no domain has more of them."""
        if not self.keys:
            return True
        whole = with_bound(self._problem, planned, self._bound) if self._bound else planned
        broken = zip(self._broken(whole), self._broken_at_first, strict=True)
        return all(
            pods <= pods_at_first and most <= most_at_first for (pods, most), (pods_at_first, most_at_first) in broken
        )

    @cached_property
    def _broken_at_first(self) -> list[tuple[int, int]]:
        return self._broken(self._first)

    def _broken(self, planned: Plan) -> list[tuple[int, int]]:
        """For each rule, how many of its pods are where it allows none, and how many of them in one domain at most."""
        topology, counts = self._compiled.topology, self._counts
        topology.restart(counts)
        bound = BoundPods()
        for node, kinds in self._filled(planned):
            for kind, pods in kinds.items():
                spreads = self._spreads[kind]
                node.enter(spreads.counts, pods)
                for rule in spreads.rules:
                    bound[rule.number, node.domain(rule.key)] += pods
        return [_broken(rule, bound) for rule in self._rules]

    def _filled(self, planned: Plan) -> Iterator[tuple[ExistingNode | _PlannedNode, Counter[Kind]]]:
        """The nodes of a plan that have pods with which spreads are concerned, and how many of these of each kind."""
        for placement in planned.placements:
            if kinds := self._kinds_of(placement.pods):
                yield self._nodes[placement.node], kinds
        for number, claim in enumerate(planned.claims):
            if kinds := self._kinds_of(claim.pods):
                yield _PlannedNode(number, claim, self._templates[claim.node_pool]), kinds

    def _kinds_of(self, uids: Iterable[str]) -> Counter[Kind]:
        known = self._kinds
        return Counter([known[uid] for uid in uids if uid in known])

    # ── what all plans share ──────────────────────────────────────

    @cached_property
    def _compiled(self) -> CompiledProblem:
        return CompiledProblem(self._problem)

    @cached_property
    def _counts(self) -> tuple[SavedCount, ...]:
        return self._compiled.topology.counted()

    @cached_property
    def _nodes(self) -> dict[str, ExistingNode]:
        return {node.name: node for node in self._compiled.nodes}

    @cached_property
    def _templates(self) -> dict[str, Template]:
        return {template.name: template for template in self._compiled.templates}

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        """The kinds of the pods (uids) with which spreads are concerned."""
        kinds = ((pod.uid, (*pod.shape_key, pod.of_new_nodes)) for pod in self._problem.pods)
        return {uid: kind for uid, kind in kinds if kind in self._spreads}

    @cached_property
    def _spreads(self) -> dict[Kind, _Spreads]:
        """The spreads of each kind of pods, if there are any. A soft one counts even if pods have given it up in a plan
        (S-33)."""
        kinds = dict.fromkeys((*pod.shape_key, pod.of_new_nodes) for pod in self._problem.pods)
        found = ((kind, self._spreads_of(*kind)) for kind in kinds)
        return {kind: spreads for kind, spreads in found if spreads.rules or spreads.counts}

    def _spreads_of(self, namespace: str, digest: str, of_new_nodes: Requirements) -> _Spreads:
        shape = self._problem.shapes[digest]
        topology = self._compiled.topology.of_class(namespace, shape, shape, of_new_nodes)
        rules = tuple(rule for rule in topology.rules if isinstance(rule, SpreadRule))
        return _Spreads(rules, tuple(count for count in topology.counted if count.filter is not None))

    @cached_property
    def _rules(self) -> list[SpreadRule]:
        rules = {rule.number: rule for spreads in self._spreads.values() for rule in spreads.rules}
        return [rules[number] for number in sorted(rules)]


class _PlannedNode:
    """A claim of a plan, as topology sees it once all its pods are there."""

    def __init__(self, number: int, claim: OpenedClaim, template: Template) -> None:
        self._number, self._template = number, template
        self._types = sum(1 << template.catalogue.numbers[name] for name in claim.instance_types)
        self._narrowed = template.at(Requirements(claim.constraints))

    def enter(self, counts: Iterable[PodCount], pods: int) -> None:
        """Add pods to the counts, in the domains of this node."""
        for count in counts:
            domain = self.domain(count.key)
            if domain is not None and count.admits_claim(self._template, self._narrowed):
                count.add(domain, pods)

    def domain(self, key: str) -> Domain | None:
        """The value of a label; for the hostname the number of the claim. None if it may still be one of several."""
        if key == HOSTNAME:
            return self._number
        domains = self._template.domains_of(self._narrowed, key, self._types)
        return domains.pop() if len(domains) == 1 else None


def _broken(rule: SpreadRule, bound: BoundPods) -> tuple[int, int]:
    """How many of the pods that the rule binds are where it allows none, and how many of them in one domain at most. A
    domain may hold more than that of other pods: these the rule counts, but binds to nothing."""
    allowed = rule.max_skew + (0 if rule.key == HOSTNAME else rule.least)
    astray, most = bound[rule.number, None], 0
    for domain, count in rule.count.counts.items():
        beyond = count - allowed
        if beyond > 0 and (rule.asked is None or rule.asked.has(str(domain))):
            there = bound[rule.number, domain]
            of_rule = min(beyond, there) if rule.own else there
            astray, most = astray + of_rule, max(most, of_rule)
    return astray, most
