"""kube-scheduler's filters that look at other pods: PodTopologySpread and InterPodAffinity (their hard
forms)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.scheduler.filters import node_selected, taints_tolerated
from kerf.adapters.simulation.scheduler.label_selectors import selects
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


def needs_others(shape: PodShape) -> bool:
    """Whether the binding of some other pod can make a place possible for a pod of this shape."""
    return bool(shape.spread or shape.affinity)


class Kin(NamedTuple):
    """Pods that no rule here tells apart."""

    namespace: str
    shape: str
    leaving: bool


class TopologyFilter:
    """For one pod at a time it counts the cluster once, then judges each node. What runs where is kept as
    numbers of equal pods, so that a count costs as much as there are kinds of pods on the nodes, not pods."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._running: dict[str, Counter[Kin]] = {}  # node → pods on it that have not ended
        api.listen(self._changed)

    def _changed(self, change: Change) -> None:
        for pod, step in ((change.old, -1), (change.new, 1)):
            if isinstance(pod, Pod) and pod.node and not is_terminal(pod):
                here = self._running.setdefault(pod.node, Counter())
                kin = Kin(pod.namespace, pod.shape, bool(pod.deleting))
                here[kin] += step
                if not here[kin]:
                    del here[kin]

    def for_pod(self, pod: Pod, shape: PodShape) -> Check | None:
        """The check of one node, or None when no such rule concerns the pod."""
        checks = [self._spread(pod, shape, c) for c in shape.spread if c.when_unsatisfiable == "DoNotSchedule"]
        required = [term for term in shape.affinity if not term.weight]
        if required:
            checks.append(self._affinity(pod, shape, required))
        checks += [self._apart(pod, shape, term) for term in shape.anti_affinity if not term.weight]
        kept_off = self._kept_off(pod)
        if kept_off:
            checks.append(lambda node: not any(node.labels.get(key) == value for key, value in kept_off))
        return (lambda node: all(check(node) for check in checks)) if checks else None

    def possible_beside(self, others: Iterable[Pod], pod: Pod, shape: PodShape, node: Node) -> bool:
        """Whether these rules let the pod onto a node if these other pods were there, too."""
        added = Counter(Kin(each.namespace, each.shape, False) for each in others)
        here = self._running.setdefault(node.name, Counter())
        self._running[node.name] = here + added
        check = self.for_pod(pod, shape)
        self._running[node.name] = here
        return check is None or check(node)

    # ── spread ──────────────────────────────────────────────────────────────────────────────────────────────

    def _spread(self, pod: Pod, shape: PodShape, constraint: SpreadConstraint) -> Check:
        key = constraint.topology_key
        selector = _narrowed(constraint.selector, shape, constraint.match_label_keys, ())
        counts: dict[str, int] = {}
        selected: dict[Kin, bool] = {}
        for node in self._api.nodes.values():
            if self._counts_for(node, shape, constraint):
                there = 0
                for kin, number in self._on(node).items():
                    if kin not in selected:
                        mine = kin.namespace == pod.namespace and not kin.leaving
                        selected[kin] = mine and selects(selector, self._labels(kin))
                    there += number if selected[kin] else 0
                counts[node.labels[key]] = counts.get(node.labels[key], 0) + there
        few = constraint.min_domains is not None and len(counts) < constraint.min_domains
        least = 0 if few else min(counts.values(), default=0)
        own = int(selects(selector, shape.labels))

        def check(node: Node) -> bool:
            domain = node.labels.get(key)
            return domain is not None and counts.get(domain, 0) + own - least <= constraint.max_skew

        return check

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
        """Every term has a pod in the node's domain that matches all the terms (kube-scheduler counts no others); the
        first pod of a series that matches its own terms may go anywhere that has the keys."""
        domains = [self._domains(term, pod, shape, terms) for term in terms]
        own = Kin(pod.namespace, pod.shape, False)
        first = not any(domains) and all(self._matches(term, pod.namespace, shape, own) for term in terms)

        def check(node: Node) -> bool:
            if any(term.topology_key not in node.labels for term in terms):
                return False
            return first or all(node.labels[t.topology_key] in found for t, found in zip(terms, domains, strict=True))

        return check

    def _apart(self, pod: Pod, shape: PodShape, term: AffinityTerm) -> Check:
        taken = self._domains(term, pod, shape, [term])
        return lambda node: node.labels.get(term.topology_key) not in taken

    def _kept_off(self, pod: Pod) -> frozenset[tuple[str, str]]:
        """Domains from which the required anti-affinity of running pods keeps this pod away."""
        if not any(s.anti_affinity for s in self._api.shapes.values()):
            return frozenset()
        own = Kin(pod.namespace, pod.shape, False)
        return frozenset(
            (term.topology_key, node.labels[term.topology_key])
            for node in self._api.nodes.values()
            for kin in self._on(node)
            for term in self._api.shapes[kin.shape].anti_affinity
            if not term.weight and term.topology_key in node.labels
            if self._matches(term, kin.namespace, self._api.shapes[kin.shape], own)
        )

    def _domains(self, term: AffinityTerm, pod: Pod, shape: PodShape, terms: list[AffinityTerm]) -> frozenset[str]:
        """The values of the term's key on nodes that run a pod which all of these terms of the pod match."""
        return frozenset(
            node.labels[term.topology_key]
            for node in self._api.nodes.values()
            if term.topology_key in node.labels
            and any(all(self._matches(each, pod.namespace, shape, kin) for each in terms) for kin in self._on(node))
        )

    def _matches(self, term: AffinityTerm, namespace: str, shape: PodShape, kin: Kin) -> bool:
        """Whether the term of a pod of this namespace and shape means the pods of `kin`."""
        if not self._in_scope(term, namespace, kin.namespace):
            return False
        selector = _narrowed(term.selector, shape, term.match_label_keys, term.mismatch_label_keys)
        return selects(selector, self._labels(kin))

    def _in_scope(self, term: AffinityTerm, own: str, other: str) -> bool:
        if other in term.namespaces:
            return True
        if term.namespace_selector is None:
            return not term.namespaces and own == other
        namespace = self._api.namespaces.get(other)
        return selects(term.namespace_selector, {} if namespace is None else namespace.labels)

    def _labels(self, kin: Kin) -> dict[str, str]:
        return self._api.shapes[kin.shape].labels

    def _on(self, node: Node) -> Counter[Kin]:
        return self._running.get(node.name, _NONE)


_NONE: Counter[Kin] = Counter()


def _narrowed(
    selector: Selector | None, shape: PodShape, match: tuple[str, ...], mismatch: tuple[str, ...]
) -> Selector | None:
    """The selector with matchLabelKeys and mismatchLabelKeys of the pod merged in, as the API server does."""
    if selector is None or not (match or mismatch):
        return selector
    added = [Expression(k, "In", (shape.labels[k],)) for k in match if k in shape.labels]
    added += [Expression(k, "NotIn", (shape.labels[k],)) for k in mismatch if k in shape.labels]
    return Selector(labels=selector.labels, expressions=(*selector.expressions, *added))
