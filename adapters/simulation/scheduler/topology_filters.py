"""kube-scheduler's filters that look at other pods: PodTopologySpread and InterPodAffinity, their required forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.scheduler.filters import node_selected, taints_tolerated
from kerf.adapters.simulation.scheduler.label_selectors import selector_matches
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    Pod,
    PodShape,
    Selector,
    SpreadConstraint,
    is_terminal,
)

Check = Callable[[Node], bool]


def depends_on_other_pods(shape: PodShape) -> bool:
    """Whether binding some other pod can make a place possible for a pod of this shape."""
    return bool(shape.spread or shape.affinity)


class PodsAlike(NamedTuple):
    """Pods that no rule of this module tells apart."""

    namespace: str
    shape: str
    leaving: bool


class CountedBySpread(NamedTuple):
    """What a spread constraint of pods of this shape counts: by domain the pods that it selects. `domain_of`: the
    domain of each node that it looks at. `selected`: whether it selects pods, as far as that is known."""

    shape: PodShape
    selects: Callable[[PodsAlike], bool]
    domain_of: dict[str, str]
    counts: dict[str, int]
    selected: dict[PodsAlike, bool]

    def add(self, node: str, pods_alike: PodsAlike, pods: int) -> None:
        domain = self.domain_of.get(node)
        if domain is None:
            return
        if pods_alike not in self.selected:
            self.selected[pods_alike] = self.selects(pods_alike)
        if self.selected[pods_alike]:
            self.counts[domain] += pods


class TopologyFilter:
    """For one pod at a time it counts the cluster once, and then checks each node.

    What runs where is kept as numbers of equal pods. So a count costs as much as there are kinds of pods on the nodes,
    not pods.
    """

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._running: dict[str, Counter[PodsAlike]] = {}  # node → pods on it that have not ended
        self._spreads: dict[tuple[str, str, int], CountedBySpread] = {}  # until a Node changes
        api.listen(self._changed)

    def _changed(self, change: Change) -> None:
        if change.kind == "node":
            self._spreads.clear()
        for pod, step in ((change.old, -1), (change.new, 1)):
            if isinstance(pod, Pod) and pod.node and not is_terminal(pod):
                here = self._running.setdefault(pod.node, Counter())
                pods_alike = PodsAlike(pod.namespace, pod.shape, bool(pod.deleting))
                here[pods_alike] += step
                if not here[pods_alike]:
                    del here[pods_alike]
                self._count(pod.node, pods_alike, step)

    def _count(self, node: str, pods_alike: PodsAlike, pods: int) -> None:
        for counted in self._spreads.values():
            counted.add(node, pods_alike, pods)

    def for_pod(self, pod: Pod, shape: PodShape) -> Check | None:
        """Return the check of one node, or None when no such rule concerns the pod."""
        checks = [
            self._spread(pod, shape, number)
            for number, constraint in enumerate(shape.spread)
            if constraint.when_unsatisfiable == "DoNotSchedule"
        ]
        required = [term for term in shape.affinity if not term.weight]
        if required:
            checks.append(self._affinity(pod, shape, required))
        checks += [self._apart(pod, shape, term) for term in shape.anti_affinity if not term.weight]
        kept_off = self._kept_off(pod)
        if kept_off:
            checks.append(lambda node: not any(node.labels.get(key) == value for key, value in kept_off))
        return (lambda node: all(check(node) for check in checks)) if checks else None

    def possible_beside(self, others: Iterable[Pod], pod: Pod, shape: PodShape, node: Node) -> bool:
        """Whether these rules would let the pod onto a node if these other pods were there, too."""
        added = Counter(PodsAlike(other.namespace, other.shape, False) for other in others)
        here = self._running.setdefault(node.name, Counter())
        self._running[node.name] = here + added
        for pods_alike, pods in added.items():
            self._count(node.name, pods_alike, pods)
        check = self.for_pod(pod, shape)
        possible = check is None or check(node)
        for pods_alike, pods in added.items():
            self._count(node.name, pods_alike, -pods)
        self._running[node.name] = here
        return possible

    # ── spread ──────────────────────────────────────────────────────────────────────────────────────────────

    def _spread(self, pod: Pod, shape: PodShape, number: int) -> Check:
        """Return the check of one of the shape's constraints."""
        constraint = shape.spread[number]
        key = constraint.topology_key
        counts = self._counted(pod, shape, number).counts
        few = constraint.min_domains is not None and len(counts) < constraint.min_domains
        least = 0 if few else min(counts.values(), default=0)
        own = int(selector_matches(self._spread_selector(shape, constraint), shape.labels))

        def check(node: Node) -> bool:
            domain = node.labels.get(key)
            return domain is not None and counts.get(domain, 0) + own - least <= constraint.max_skew

        return check

    def _counted(self, pod: Pod, shape: PodShape, number: int) -> CountedBySpread:
        key = pod.namespace, pod.shape, number
        found = self._spreads.get(key)
        if found is None or not (found.shape is shape or found.shape == shape):  # by default spread it may change
            found = self._spreads[key] = self._counted_anew(pod.namespace, shape, shape.spread[number])
        return found

    def _counted_anew(self, namespace: str, shape: PodShape, constraint: SpreadConstraint) -> CountedBySpread:
        selector = self._spread_selector(shape, constraint)

        def selects(pods_alike: PodsAlike) -> bool:
            counts_at_all = pods_alike.namespace == namespace and not pods_alike.leaving
            return counts_at_all and selector_matches(selector, self._labels(pods_alike))

        nodes = [node for node in self._api.nodes.values() if self._counts_for(node, shape, constraint)]
        domain_of = {node.name: node.labels[constraint.topology_key] for node in nodes}
        counted = CountedBySpread(shape, selects, domain_of, dict.fromkeys(domain_of.values(), 0), {})
        for node in nodes:
            for pods_alike, pods in self._on(node).items():
                counted.add(node.name, pods_alike, pods)
        return counted

    def _spread_selector(self, shape: PodShape, constraint: SpreadConstraint) -> Selector | None:
        return _merged_selector(constraint.selector, shape, constraint.match_label_keys, ())

    def _counts_for(self, node: Node, shape: PodShape, constraint: SpreadConstraint) -> bool:
        if any(c.topology_key not in node.labels for c in shape.spread if c.when_unsatisfiable == "DoNotSchedule"):
            return False
        if constraint.node_affinity_policy == "Honor" and not node_selected(shape, node):
            return False
        return constraint.node_taints_policy != "Honor" or taints_tolerated(
            shape, node.taints, ("NoSchedule", "NoExecute")
        )

    # ── affinity between pods ───────────────────────────────────────────────────────────────────────────────

    def _affinity(self, pod: Pod, shape: PodShape, terms: list[AffinityTerm]) -> Check:
        """Check required affinity: each term needs a pod in the node's domain that matches all terms, as kube-scheduler
        counts. The first pod of a series that matches its own terms may go to any node with the keys."""
        domains = [self._domains(term, pod, shape, terms) for term in terms]
        own = PodsAlike(pod.namespace, pod.shape, False)
        first = not any(domains) and all(self._matches(term, pod.namespace, shape, own) for term in terms)

        def check(node: Node) -> bool:
            if any(term.topology_key not in node.labels for term in terms):
                return False
            return first or all(
                node.labels[t.topology_key] in domains_of_term
                for t, domains_of_term in zip(terms, domains, strict=True)
            )

        return check

    def _apart(self, pod: Pod, shape: PodShape, term: AffinityTerm) -> Check:
        taken = self._domains(term, pod, shape, [term])
        return lambda node: node.labels.get(term.topology_key) not in taken

    def _kept_off(self, pod: Pod) -> frozenset[tuple[str, str]]:
        """Return the domains from which the required anti-affinity of running pods keeps this pod away."""
        if not any(s.anti_affinity for s in self._api.shapes.values()):
            return frozenset()
        own = PodsAlike(pod.namespace, pod.shape, False)
        return frozenset(
            (term.topology_key, node.labels[term.topology_key])
            for node in self._api.nodes.values()
            for pods_alike in self._on(node)
            for term in self._api.shapes[pods_alike.shape].anti_affinity
            if not term.weight and term.topology_key in node.labels
            if self._matches(term, pods_alike.namespace, self._api.shapes[pods_alike.shape], own)
        )

    def _domains(self, term: AffinityTerm, pod: Pod, shape: PodShape, terms: list[AffinityTerm]) -> frozenset[str]:
        """Return the values of the term's key on nodes that run a pod which all of these terms match."""
        return frozenset(
            node.labels[term.topology_key]
            for node in self._api.nodes.values()
            if term.topology_key in node.labels
            and any(
                all(self._matches(own_term, pod.namespace, shape, pods_alike) for own_term in terms)
                for pods_alike in self._on(node)
            )
        )

    def _matches(self, term: AffinityTerm, namespace: str, shape: PodShape, pods_alike: PodsAlike) -> bool:
        """Whether the term of a pod of this namespace and shape matches these pods."""
        if not self._in_scope(term, namespace, pods_alike.namespace):
            return False
        selector = _merged_selector(term.selector, shape, term.match_label_keys, term.mismatch_label_keys)
        return selector_matches(selector, self._labels(pods_alike))

    def _in_scope(self, term: AffinityTerm, own: str, other: str) -> bool:
        if other in term.namespaces:
            return True
        if term.namespace_selector is None:
            return not term.namespaces and own == other
        namespace = self._api.namespaces.get(other)
        return selector_matches(term.namespace_selector, {} if namespace is None else namespace.labels)

    def _labels(self, pods_alike: PodsAlike) -> dict[str, str]:
        return self._api.shapes[pods_alike.shape].labels

    def _on(self, node: Node) -> Counter[PodsAlike]:
        return self._running.get(node.name, _NONE)


_NONE: Counter[PodsAlike] = Counter()


def _merged_selector(
    selector: Selector | None, shape: PodShape, match: tuple[str, ...], mismatch: tuple[str, ...]
) -> Selector | None:
    """Merge matchLabelKeys and mismatchLabelKeys into the selector, as the API server does."""
    if selector is None or not (match or mismatch):
        return selector
    added = [Expression(k, "In", (shape.labels[k],)) for k in match if k in shape.labels]
    added += [Expression(k, "NotIn", (shape.labels[k],)) for k in mismatch if k in shape.labels]
    return Selector(labels=selector.labels, expressions=(*selector.expressions, *added))
