"""The topology of one pass: which pods are counted where, and which rules bind which pods (S-117…S-137).

All counts exist before the first pod is placed: those that constraints and terms of pending pods ask for, and those of
required anti-affinity of bound pods. So a pod placed early is counted for pods placed late, and for pods that give up
preferences (unlike S-133).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS, Requirement, Requirements
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, SpreadConstraint
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.made_once import once
from kerf.engine.scheduling.matching.label_selectors import PodSelector, spread_selector, term_selector
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.pods.pod_requirements import HARD_SPREAD, alternatives_of, hard_keys, requirements_of
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod, Problem
from kerf.engine.scheduling.topology.pod_counts import NodeFilter, PodCount
from kerf.engine.scheduling.topology.rules import AffinityRule, AntiAffinityRule, Domain, Rule, SpreadRule

Selectors = tuple[PodSelector, ...]
"""Of which a pod must match all."""


_Kind = TypeVar("_Kind", bound=Hashable)
_Pod = TypeVar("_Pod", bound=PendingPod | BoundPod)

SavedCount = tuple[PodCount, dict[Domain, int], int]
"""A count, with its domains and its total at some time."""

Share = tuple[PodCount, Domain, int]
"""How many of the pods of a count some pods in a domain are."""


class ClassTopology(Struct, frozen=True):
    """The topology of one class: the rules that bind its pods, the counts that they add to, and those of these counts
    that affinity terms look at (`sought`)."""

    rules: tuple[Rule, ...] = ()
    counted: tuple[PodCount, ...] = ()
    sought: tuple[PodCount, ...] = ()


class _SelectorCounts(Struct):
    """The counts of the pods that some selectors match, and of the pods that want to be apart from these (`avoid`)."""

    number: int
    counts: dict[int, PodCount] = {}
    sought: dict[int, PodCount] = {}
    avoid: dict[int, PodCount] = {}


_encoder = msgspec.msgpack.Encoder(order="deterministic")


def _looked_at(shape: PodShape) -> bytes:
    """What topology looks at in a shape: all but its requests."""
    return once(shape, "topology", lambda: _encoder.encode(replace(shape, requests={})))


def first_pods(pods: Iterable[tuple[_Kind, _Pod]]) -> dict[_Kind, _Pod]:
    """The first pod of each kind, in the order of these pods by namespace, name and uid. Pods of a kind have one
    namespace.

    Rules and counts are numbered in this order, which pseudonyms keep. They do not keep that of the shapes' digests.
    """
    found: dict[_Kind, _Pod] = {}
    for kind, pod in pods:
        known = found.get(kind)
        if known is None or pod.name < known.name or (pod.name == known.name and pod.uid < known.uid):
            found[kind] = pod
    return dict(sorted(found.items(), key=lambda each: (each[1].namespace, each[1].name, each[1].uid)))


class Topology:
    """All counts and rules of one pass."""

    def __init__(
        self,
        problem: Problem,
        templates: Iterable[Template],
        nodes: Iterable[ExistingNode],
        leaving: Iterable[ExistingNode] = (),
    ) -> None:
        """`leaving`: nodes whose pods count like those of `nodes`. Alone they keep no domain known, because it goes
        with them (S-71, S-129)."""
        self._careful = problem.careful
        self._respect = problem.settings.preference_policy == "Respect"
        self._namespaces = problem.namespaces
        self._templates = tuple(templates)
        self._places = tuple(sorted(nodes, key=lambda node: node.name))
        self._nodes = {node.name: node for node in (*self._places, *leaving)}
        self._counts: dict[Hashable, PodCount] = {}
        self._rules: dict[Hashable, Rule] = {}
        self._domains: dict[tuple[str, NodeFilter], dict[str, None]] = {}
        self._held: dict[tuple[str, str, NodeFilter], set[str]] = {}  # domains that only these nodes keep known
        self._selected: dict[Selectors, _SelectorCounts] = {}
        self._by_label: dict[tuple[str, str] | None, list[Selectors]] = {}
        self._classes: dict[Hashable, ClassTopology] = {}
        seen: set[Hashable] = set()
        waiting = first_pods(((pod.namespace, pod.shape, pod.of_new_nodes), pod) for pod in problem.pods)
        for namespace, digest, of_new_nodes in waiting:
            shape = problem.shapes[digest]
            key = namespace, _looked_at(shape), of_new_nodes
            if key not in seen:
                seen.add(key)
                self._own_rules(namespace, shape, shape, of_new_nodes)
                self._owned(namespace, shape)
        apart = {digest for digest, shape in problem.shapes.items() if shape.anti_affinity}
        keep_apart = (pod for pod in problem.bound if pod.shape in apart) if apart else ()
        for namespace, digest in first_pods(((pod.namespace, pod.shape), pod) for pod in keep_apart):
            self._owned(namespace, problem.shapes[digest])
        self._entered: dict[tuple[str, str], tuple[list[PodCount], list[PodCount]]] = {}
        self.count(problem.bound, problem.shapes)
        self._spreads = [count for count in self._counts.values() if count.filter is not None and count.key != HOSTNAME]
        self._of_all_nodes = [
            count for count in self._spreads if count.hard and count.filter is not None and not count.filter.by_affinity
        ]

    def of_class(
        self, namespace: str, original_shape: PodShape, shape: PodShape, of_new_nodes: Requirements = NO_REQUIREMENTS
    ) -> ClassTopology:
        """The topology of pods with this original shape that have been relaxed to `shape`. What pods request does not
        matter to it. `of_new_nodes`: see `PendingPod`."""
        asked = _looked_at(original_shape)
        key = namespace, asked, asked if shape is original_shape else _looked_at(shape), of_new_nodes
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = self._new_class(namespace, original_shape, shape, of_new_nodes)
        return known

    def _new_class(
        self, namespace: str, original_shape: PodShape, shape: PodShape, of_new_nodes: Requirements
    ) -> ClassTopology:
        rules = self._own_rules(namespace, original_shape, shape, of_new_nodes)
        matching = self._matching(namespace, original_shape.labels)
        if not rules and not matching:
            return ClassTopology()
        counted = {count.number: count for selected in matching for count in selected.counts.values()}
        sought = {count.number: count for selected in matching for count in selected.sought.values()}
        for selected in matching:
            rules += [self._anti_affinity_rule(count) for count in selected.avoid.values()]
        bound_by = {rule.count.number for rule in rules}
        sought |= {n: count for n, count in counted.items() if count.evened and n not in bound_by}
        for owned in self._owned(namespace, original_shape):
            counted[owned.number] = owned
        return ClassTopology(
            tuple(sorted({rule.number: rule for rule in rules}.values(), key=lambda each: each.number)),
            tuple(count for _, count in sorted(counted.items())),
            tuple(count for _, count in sorted(sought.items())),
        )

    def settled(self, template: Template, narrowed: NarrowedTemplate) -> None:
        """Make the domains of a node that is on its way known to the spreads (S-129)."""
        for count in self._spreads:
            domain = narrowed.settled(count.key)
            if domain is not None and domain not in count.counts and count.admits_claim(template, narrowed):
                count.open(domain)

    def finished(self, template: Template, narrowed: NarrowedTemplate, types: int) -> None:
        """Make known the domain of a node that takes no more pods, where its remaining types leave only one."""
        for count in self._of_all_nodes:
            domains = template.domains_of(narrowed, count.key, types)
            if len(domains) == 1 and not domains & count.counts.keys() and count.admits_claim(template, narrowed):
                count.open(domains.pop())

    @property
    def uneven(self) -> bool:
        """See `Plan.uneven`."""
        return any(count.uneven for count in self._spreads if count.late)

    # ── rules ──────────────────────────────────────

    def _own_rules(
        self, namespace: str, original_shape: PodShape, shape: PodShape, of_new_nodes: Requirements
    ) -> list[Rule]:
        """The rules of the pod's own constraints and terms (S-118)."""
        labels = original_shape.labels
        rules: list[Rule] = [
            self._spread(constraint, namespace, original_shape, shape, of_new_nodes)
            for constraint in shape.spread
            if self._respect or constraint.when_unsatisfiable == HARD_SPREAD
        ]
        required = [term for term in shape.affinity if not term.weight]
        preferred = [(term,) for term in shape.affinity if term.weight and self._respect]
        everyone = tuple(self._of_term(term, namespace, labels) for term in required)
        rules += [self._affinity_rule(term, everyone, namespace, labels) for term in required]
        for (term,) in preferred:
            rules.append(self._affinity_rule(term, (self._of_term(term, namespace, labels),), namespace, labels))
        for term in shape.anti_affinity:
            if self._respect or not term.weight:
                selectors = (self._of_term(term, namespace, labels),)
                soft = term.weight > 0
                rules.append(
                    self._anti_affinity_rule(self._counting(selectors, term.topology_key, possible=soft), soft)
                )
        return rules

    def _of_term(self, term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> PodSelector:
        return term_selector(term, namespace, labels, self._namespaces)

    def _spread(
        self,
        constraint: SpreadConstraint,
        namespace: str,
        original_shape: PodShape,
        shape: PodShape,
        of_new_nodes: Requirements,
    ) -> Rule:
        """The rule of a spread constraint. As in kube-scheduler, a hard constraint looks at the nodes of every required
        term; a soft one, which costs money to keep, only at those of the term that is tried now. Under policy Ignore a
        hard one looks at all nodes (unlike S-138)."""
        selector = spread_selector(constraint, namespace, original_shape.labels)
        key = normalise(constraint.topology_key)
        hard = constraint.when_unsatisfiable == HARD_SPREAD
        looks_at = NodeFilter(
            alternatives_of(original_shape),
            original_shape.tolerations,
            constraint.node_affinity_policy == "Honor",
            constraint.node_taints_policy == "Honor",
            tuple(sorted(hard_keys(original_shape) - {key})) if hard else (),
            of_new_nodes,
        )
        count = self._counting((selector,), key, looks_at)
        own = int(selector.selects(namespace, original_shape.labels))
        tried = looks_at.alternatives if hard else (requirements_of(shape, preferences=False),)
        asked = _asked(tried, key) if looks_at.by_affinity or not hard else None
        identity = (count.number, constraint.max_skew, constraint.min_domains, own, asked)
        if identity in self._rules:
            return self._rules[identity]
        rule = SpreadRule(len(self._rules), count, constraint.max_skew, constraint.min_domains, own, asked)
        if hard and key != HOSTNAME:
            count.hard.append(rule)
            count.evened = self._careful
        self._rules[identity] = rule
        return rule

    def _affinity_rule(
        self, term: AffinityTerm, selectors: Selectors, namespace: str, labels: Mapping[str, str]
    ) -> Rule:
        """The rule of an affinity term. kube-scheduler counts a pod only if it matches all required terms."""
        count = self._counting(selectors, term.topology_key)
        self._select(selectors).sought[count.number] = count
        own = int(all(selector.selects(namespace, labels) for selector in selectors))
        return self._interned((count.number, "together", own), lambda n: AffinityRule(n, count, own))

    def _anti_affinity_rule(self, count: PodCount, soft: bool = False) -> Rule:
        return self._interned((count.number, "apart", soft), lambda n: AntiAffinityRule(n, count, soft))

    def _interned(self, identity: Hashable, make: Callable[[int], Rule]) -> Rule:
        rule = self._rules.get(identity)
        if rule is None:
            rule = self._rules[identity] = make(len(self._rules))
        return rule

    # ── counts ──────────────────────────────────────

    def _owned(self, namespace: str, shape: PodShape) -> list[PodCount]:
        """The counts of pods with a required anti-affinity term. The pods that the term selects keep away from them
        (S-119)."""
        counts = []
        for term in shape.anti_affinity:
            if not term.weight:
                selectors = (self._of_term(term, namespace, shape.labels),)
                count = self._count_of(("owners", selectors, normalise(term.topology_key)), term.topology_key)
                self._select(selectors).avoid[count.number] = count
                counts.append(count)
        return counts

    def _counting(
        self, selectors: Selectors, key: str, node_filter: NodeFilter | None = None, possible: bool = False
    ) -> PodCount:
        """The count of the selected pods. A new count knows the domains that exist (S-126, S-129)."""
        key = normalise(key)
        count = self._count_of((selectors, key, node_filter, possible), key, node_filter, possible)
        self._select(selectors).counts[count.number] = count
        return count

    def _count_of(
        self, identity: Hashable, key: str, node_filter: NodeFilter | None = None, possible: bool = False
    ) -> PodCount:
        count = self._counts.get(identity)
        if count is None:
            count = self._counts[identity] = PodCount(len(self._counts), normalise(key), node_filter, possible)
            if node_filter is not None and count.key != HOSTNAME:
                self._learn(count, node_filter)
        return count

    def _learn(self, count: PodCount, node_filter: NodeFilter) -> None:
        """Make known the domains that have nodes, or that a node for such a pod could be launched in."""
        domains = self._domains.get((count.key, node_filter))
        if domains is None:
            domains = self._domains[count.key, node_filter] = dict.fromkeys(self._launchable(count.key, node_filter))
            for node, domain in self._present(count.key, node_filter):
                if domain not in domains or (domain, count.key, node_filter) in self._held:
                    self._held.setdefault((domain, count.key, node_filter), set()).add(node.name)
                    domains[domain] = None
        for domain in domains:
            count.know(domain)

    def _launchable(self, key: str, node_filter: NodeFilter) -> Iterator[str]:
        for template in self._templates:
            if not node_filter.reachable(template.pool.taints):
                continue
            for alternative in node_filter.alternatives:
                asked = alternative.merged(node_filter.of_new_nodes) if node_filter.of_new_nodes else alternative
                state = template.step(template.base, asked)
                if (
                    isinstance(state, NarrowedTemplate)
                    and template.within_limits(state.viable & template.types)
                    and node_filter.labelled(template, state)
                ):
                    by_nodes = template.known_by_nodes(key)  # they are present, or count no more
                    yield from (domain for domain in template.domains(state, key) if domain not in by_nodes)

    def _present(self, key: str, node_filter: NodeFilter) -> Iterator[tuple[ExistingNode, str]]:
        for node in self._places:
            present = node.domain(key)
            if present is not None and node_filter.admits_node(node.taints, node.known):
                yield node, present

    def keeps_domains(self, gone: frozenset[str]) -> bool:
        """Whether every domain stays known without these nodes."""
        return not any(names <= gone for names in self._held.values())

    def count(self, bound: Iterable[BoundPod], shapes: Mapping[str, PodShape]) -> None:
        """Count the bound pods (S-131)."""
        for node, counts in self._counting_nodes(bound, shapes):
            node.enter(counts)

    def shares(self, bound: Iterable[BoundPod], shapes: Mapping[str, PodShape]) -> tuple[Share, ...]:
        """What these bound pods are of the counts: how many in each domain."""
        pods = Counter(
            (count, domain)
            for node, counts in self._counting_nodes(bound, shapes)
            for count in counts
            if (domain := node.entrance(count)) is not None
        )
        return tuple((count, domain, number) for (count, domain), number in pods.items())

    def _counting_nodes(
        self, bound: Iterable[BoundPod], shapes: Mapping[str, PodShape]
    ) -> Iterator[tuple[ExistingNode, list[PodCount]]]:
        """The node of each bound pod, and the counts that the pod adds to."""
        for pod in bound if self._counts else ():
            node = self._nodes.get(pod.node)
            if node is not None:
                every, owned = self._entering(pod.namespace, pod.shape, shapes)
                yield node, owned if pod.terminating else every

    def _entering(
        self, namespace: str, digest: str, shapes: Mapping[str, PodShape]
    ) -> tuple[list[PodCount], list[PodCount]]:
        """The counts that pods of a shape add to; and those of them that count pods with anti-affinity, which need not
        be selected. All counts exist by then."""
        counts = self._entered.get((namespace, digest))
        if counts is None:
            shape = shapes[digest]
            selecting = self._matching(namespace, shape.labels)
            selected = [count for selected in selecting for count in selected.counts.values()]
            owned = self._owned(namespace, shape)
            counts = self._entered[namespace, digest] = [*selected, *owned], owned
        return counts

    def counted(self) -> tuple[SavedCount, ...]:
        """The present counts, to `restart` from."""
        return tuple((count, dict(count.counts), count.total) for count in self._counts.values())

    def restart(self, counted: Iterable[SavedCount], without: Iterable[Share] = ()) -> None:
        """Begin anew with these counts, less what pods that are `without` a node now are of them."""
        for count, counts, total in counted:
            count.restart(counts, total)
        for count, domain, pods in without:
            count.add(domain, -pods)

    # ── selectors ──────────────────────────────────────

    def _select(self, selectors: Selectors) -> _SelectorCounts:
        selected = self._selected.get(selectors)
        if selected is None:
            selected = self._selected[selectors] = _SelectorCounts(len(self._selected))
            if not any(selector.nothing for selector in selectors):
                first = selectors[0]
                self._by_label.setdefault(first.labels[0] if first.labels else None, []).append(selectors)
        return selected

    def _matching(self, namespace: str, labels: Mapping[str, str]) -> list[_SelectorCounts]:
        """The selectors that match a pod. Only selectors that ask for one of its labels, or for none, are looked at."""
        selected = []
        for pair in (*labels.items(), None):
            for selectors in self._by_label.get(pair, ()):
                matching = all(selector.selects(namespace, labels) for selector in selectors)
                selected += [self._selected[selectors]] if matching else []
        return sorted(selected, key=lambda each: each.number)


def _asked(alternatives: tuple[Requirements, ...], key: str) -> Requirement | None:
    """What the pod asks of one label, if all alternatives ask the same; else None."""
    asked = {alternative.find(key) for alternative in alternatives}
    return asked.pop() if len(asked) == 1 else None
