"""PodTopologySpread and InterPodAffinity: how many pods of which sort are in each domain, and which nodes that leaves.

Both the filters and the scores of the two plugins read these counts, which change with every pod that is bound. The
rules that they serve are compiled in `interpod_rules`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules, PodCountRule, SpreadRule
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.scores import INTERPOD_AFFINITY_WEIGHT, POD_TOPOLOGY_SPREAD_WEIGHT
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey

DomainRule = tuple[Sequence[str | None], Mapping[str | None, int], float, float, bool]
"""What a filter asks of a node now: the domain of each node (by number), how many pods each domain counts, the least
and the most of them for a node to pass, and whether a node without a domain fails."""


class _DomainCounts:
    """One count as it stands. `domain_of`: the domain of each node; `counting`: whether its pods count (None: all)."""

    __slots__ = ("_least", "_least_at", "by_domain", "counting", "domain_of", "domains", "total")

    def __init__(
        self,
        domain_of: list[str | None],
        counting: list[bool] | None,
        by_domain: dict[str | None, int],
        domains: frozenset[str],
    ) -> None:
        self.domain_of = domain_of
        self.counting = counting
        self.by_domain = by_domain
        self.domains = domains
        self.total = sum(by_domain.values())
        self._least = 0
        self._least_at = -1  # the total for which `_least` was computed

    def add(self, node: int, pods: int = 1) -> None:
        """Count so many more pods on a node."""
        domain = self.domain_of[node]
        if domain is not None and (self.counting is None or self.counting[node]):
            self.by_domain[domain] = self.by_domain.get(domain, 0) + pods
            self.total += pods

    def copy(self) -> _DomainCounts:
        return _DomainCounts(self.domain_of, self.counting, dict(self.by_domain), self.domains)

    @property
    def least(self) -> int:
        """The fewest pods in any domain."""
        if self.total < len(self.domains):
            return 0
        if self._least_at != self.total:
            self._least_at = self.total
            self._least = min((self.by_domain.get(domain, 0) for domain in self.domains), default=0)
        return self._least

    def at(self, node: int) -> int:
        """The pods in the domain of a node."""
        domain = self.domain_of[node]
        return 0 if domain is None else self.by_domain.get(domain, 0)


class InterpodCounts:
    """The counts on some nodes, with the pods that are bound there already. Nodes have numbers, in their order.

    `with_nodes` makes counts with further nodes, `copy` counts to go on from; both share what does not change.
    """

    def __init__(self, problem: Problem, rules: InterpodRules, nodes: Iterable[NodeInfo]) -> None:
        self._rules = rules
        self._counts_on: dict[tuple[int, int], bool] = {}
        self._domain_of: dict[str, list[str | None]] = {rule.key: [] for rule in rules.counts}
        self._counts = [_DomainCounts(self._domain_of[rule.key], None, {}, frozenset()) for rule in rules.counts]
        infos = tuple(nodes)
        self._append(infos)
        numbers = {info.name: number for number, info in enumerate(infos)}
        for pod in problem.bound:
            if pod.node in numbers:
                self.add_pod((pod.namespace, pod.shape), numbers[pod.node])

    def with_nodes(self, nodes: Iterable[NodeInfo]) -> InterpodCounts:
        """The same counts with further nodes, which get the next numbers."""
        counts = InterpodCounts.__new__(InterpodCounts)
        counts._rules, counts._counts_on = self._rules, self._counts_on
        counts._domain_of, counts._counts = self._domain_of, self._counts
        counts._append(tuple(nodes))
        return counts

    def copy(self) -> InterpodCounts:
        """The same counts, to be changed apart from these."""
        counts = InterpodCounts.__new__(InterpodCounts)
        counts._rules, counts._counts_on, counts._domain_of = self._rules, self._counts_on, self._domain_of
        counts._counts = [count.copy() for count in self._counts]
        return counts

    # ── filters ──────────────────────────────────────

    def domain_rules(self, shape_key: ShapeKey) -> list[DomainRule]:
        """What the filters ask of a node now, for a pod of this shape."""
        rules, counts = self._rules.by_shape[shape_key], self._counts
        asked = [self._spread_rule(spread) for spread in rules.hard_spreads]
        if rules.anti_affinity:
            avoided = [counts[number] for number in rules.anti_affinity]
            asked += [(count.domain_of, count.by_domain, 0, 0, False) for count in avoided]
        if rules.affinity:
            wanted = [counts[number] for number in rules.affinity]
            least = 0 if rules.may_be_first and not any(count.total for count in wanted) else 1
            asked += [(count.domain_of, count.by_domain, least, math.inf, True) for count in wanted]
        return asked

    def feasible(self, shape_key: ShapeKey, nodes: Iterable[int]) -> list[int]:
        """Those of these nodes that the filters let through."""
        passing = list(nodes)
        for domain_of, pods_in, least, most, needed in self.domain_rules(shape_key):
            passing = [
                node
                for node in passing
                if (least <= pods_in.get(domain, 0) <= most if (domain := domain_of[node]) is not None else not needed)
            ]
        return passing

    def allows(self, shape_key: ShapeKey, node: int) -> bool:
        """Whether the filters let this node through."""
        return passes(self.domain_rules(shape_key), node)

    def _spread_rule(self, spread: SpreadRule) -> DomainRule:
        count = self._counts[spread.count]
        least = 0 if len(count.domains) < spread.min_domains else count.least
        return count.domain_of, count.by_domain, 0, least + spread.max_skew - spread.own, True

    # ── what an order of binding looks at ──────────────────────────────────────

    def contention(self, shape_key: ShapeKey, node: int, spreads: Sequence[int]) -> tuple[bool, int]:
        """How much binding such a pod there would hinder pods with these spreads. Sort by it, the least hindrance last.

        `spreads`: numbers of counts. The answer: whether the pod enters none of them, and how many pods those that it
        enters count in its domains.
        """
        entered = self._rules.counts_entered(shape_key)
        counts = [number for number in spreads if number in entered]
        return not counts, sum([self._counts[number].at(node) for number in counts])

    def filter_key(self, shape_key: ShapeKey, node: int) -> Hashable:
        """Equal for pods on nodes that the filters never tell apart, whatever else is bound."""
        rules = self._rules.by_shape[shape_key]
        numbers = [*(hard_spread.count for hard_spread in rules.hard_spreads), *rules.affinity, *rules.anti_affinity]
        domains = tuple([self._counts[number].domain_of[node] for number in numbers])
        return rules.hard_spreads, rules.affinity, rules.anti_affinity, rules.may_be_first, domains

    def level(self, number: int, node: int) -> tuple[int, bool]:
        """Of a count: the fewest pods in any domain, and whether there is one in the domain of a node.

        A pod that the filters refused can pass only after one of the two rose, in a count of a spread or of a required
        affinity term.
        """
        count = self._counts[number]
        return count.least, count.at(node) > 0

    # ── binding ──────────────────────────────────────

    def add_pod(self, shape_key: ShapeKey, node: int) -> None:
        """A pod is bound to a node."""
        for number in self._rules.counts_entered(shape_key):
            self._counts[number].add(node)

    def remove_pod(self, shape_key: ShapeKey, node: int) -> None:
        """A pod that was bound to a node is there no more. Call it before any filter or score is asked for."""
        for number in self._rules.counts_entered(shape_key):
            self._counts[number].add(node, -1)

    # ── scores ──────────────────────────────────────

    def scored_counts(self, shape_key: ShapeKey) -> int:
        """How many counts make one feasible node better than another for such a pod."""
        rules = self._rules.by_shape[shape_key]
        return len(rules.soft_spreads) + len(rules.preferred)

    def scores(self, shape_key: ShapeKey, nodes: Sequence[int]) -> list[float]:
        """PodTopologySpread and InterPodAffinity of each feasible node: weighted, 0 to 400 together."""
        rules, counts = self._rules.by_shape[shape_key], self._counts
        scores = [0.0] * len(nodes)
        if rules.soft_spreads:
            uneven = self._unevenness(rules.soft_spreads, nodes)
            known = [value for value in uneven if value is not None]
            most, least = max(known, default=0), min(known, default=0)
            scores = [
                0.0
                if value is None
                else POD_TOPOLOGY_SPREAD_WEIGHT * (100.0 if not most else 100 * (most + least - value) // most)
                for value in uneven
            ]
        if rules.preferred:
            welcome = [0] * len(nodes)
            for number, weight in rules.preferred:
                domain_of, pods_in = counts[number].domain_of, counts[number].by_domain
                if pods_in:
                    welcome = [
                        before + weight * pods_in.get(domain_of[node], 0)
                        for before, node in zip(welcome, nodes, strict=True)
                    ]
            low, high = min(welcome, default=0), max(welcome, default=0)
            if high > low:
                scores = [
                    score + INTERPOD_AFFINITY_WEIGHT * int(100 * ((affinity - low) / (high - low)))
                    for score, affinity in zip(scores, welcome, strict=True)
                ]
        return scores

    def _unevenness(self, spreads: Sequence[SpreadRule], nodes: Sequence[int]) -> list[float | None]:
        """How far each node is from evenly spread, by all soft spreads; None if it lacks one of their labels."""
        uneven = [0.0] * len(nodes)
        without_label: set[int] = set()
        for spread in spreads:
            domain_of, pods_in = self._counts[spread.count].domain_of, self._counts[spread.count].by_domain
            domains = [domain_of[node] for node in nodes]
            weight, more = math.log(len({*domains} - {None}) + 2), spread.max_skew - 1
            uneven = [
                before + (pods_in.get(domain, 0) * weight + more)
                for before, domain in zip(uneven, domains, strict=True)
            ]
            without_label.update(position for position, domain in enumerate(domains) if domain is None)
        return [None if number in without_label else float(round(value)) for number, value in enumerate(uneven)]

    # ── nodes ──────────────────────────────────────

    def _append(self, nodes: tuple[NodeInfo, ...]) -> None:
        self._domain_of = {key: [*old, *(node.domain(key) for node in nodes)] for key, old in self._domain_of.items()}
        self._counts = [
            self._extended(rule, old, nodes) for rule, old in zip(self._rules.counts, self._counts, strict=True)
        ]

    def _extended(self, rule: PodCountRule, old: _DomainCounts, nodes: tuple[NodeInfo, ...]) -> _DomainCounts:
        domain_of = self._domain_of[rule.key]
        new = domain_of[len(domain_of) - len(nodes) :]
        counting = None
        if not rule.on_every_node:
            counted = [self._is_counted(rule, node) for node in nodes]
            new = [domain for domain, counts in zip(new, counted, strict=True) if counts]
            counting = [*(old.counting or ()), *counted]
        domains = old.domains.union(domain for domain in new if domain is not None)
        return _DomainCounts(domain_of, counting, dict(old.by_domain), domains)

    def _is_counted(self, rule: PodCountRule, node: NodeInfo) -> bool:
        if node.kind < 0:
            return rule.counts_on(node)
        key = rule.number, node.kind
        if key not in self._counts_on:
            self._counts_on[key] = rule.counts_on(node)
        return self._counts_on[key]


def passes(rules: Iterable[DomainRule], node: int) -> bool:
    """Whether a node keeps all of these rules."""
    for domain_of, pods_in, least, most, needed in rules:
        domain = domain_of[node]
        if domain is None:
            if needed:
                return False
        elif not least <= pods_in.get(domain, 0) <= most:
            return False
    return True
