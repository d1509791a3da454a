"""Which pods of a plan may move to other nodes without looking at the other pods, and as what.

* Independent pods, which no topology rule concerns, may move anywhere.
* Rules about larger domains (zone, capacity type, …) stay as they are while each pod stays in its domain. So such a pod
  may move to another node of the domain that its node is bound to.
* Of rules about the node itself (hostname), only one can be kept without looking: that so many pods may be on one node
  of those that all have this rule and request the same. Their labels may differ, as those of a StatefulSet do.

A pod with volumes may move where they are, if that is one place. All other pods stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import le

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape, Toleration
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.matching.label_selectors import PodSelector, spread_selector, term_selector
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, TOLERATES_PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, NodeLimit, PodKind
from kerf.engine.scheduling.optimizer.pods_by_label import PodsByLabel
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.pods.pod_classes import RESPECT
from kerf.engine.scheduling.pods.pod_requirements import relaxed_shape, requirements_of
from kerf.engine.scheduling.pods.pod_volumes import claim_names, volumes_of_claims
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, ShapeKey

Labels = tuple[tuple[str, str], ...]


class TopologyRule(Struct, frozen=True, cache_hash=True):
    """A spread constraint or affinity term of some pods: of the pods that it selects, at most `max_per_domain` may be
    in one domain of the key, if that is the node; 0 sets no limit."""

    selector: PodSelector
    key: str
    max_per_domain: int


class TopologyTies(Struct, frozen=True):
    """What ties a pod to its place: the labels whose domains it must not leave, and how many pods may be on one node
    (`PodKind.max_per_node`)."""

    keys: tuple[str, ...] = ()
    max_per_node: NodeLimit | None = None


class MovablePods:
    """The answer for the pods of one problem."""

    def __init__(
        self,
        problem: Problem,
        options: InstanceOptions,
        independent: frozenset[ShapeKey],
        pools: Mapping[str, NodePool],
    ) -> None:
        """`pools`: its own NodePool (`own_pools`) for each pod (uid) that the first plan puts on a new node; the other
        pods stay."""
        self._problem, self._options, self._independent, self._pools = problem, options, independent, pools
        self._kinds: dict[tuple[ShapeKey, tuple[Requirements, ...], int, Labels, bool], PodKind | None] = {}

    def kind_for_any_node(self, pod: PendingPod) -> PodKind | None:
        """As what a pod may move to any node; None if it may not."""
        return self._kind(pod, ()) if pod.shape_key in self._independent else None

    def kind_beside(self, pod: PendingPod, claim: OpenedClaim) -> PodKind | None:
        """As what a pod may move from this claim, where it is, to another node like it; None if it may not."""
        shape_key = pod.shape_key
        if shape_key in self._independent:
            return self._kind(pod, ())
        ties = self._ties.get(shape_key)
        if ties is None:
            return None
        bound = {constraint.key: constraint for constraint in claim.constraints if constraint.key in ties.keys}
        if not all(constraint.single for constraint in bound.values()):
            return None
        labels = tuple((key, bound[key].any_value()) for key in ties.keys if key in bound)
        return self._kind(pod, labels, ties.max_per_node)

    def _kind(self, pod: PendingPod, labels: Labels, max_per_node: NodeLimit | None = None) -> PodKind | None:
        pool = self._pools.get(pod.uid)
        if pool is None:
            return None
        tolerations = self._problem.shapes[pod.shape].tolerations
        # It gave up keeping off soft taints in the first plan (S-33). So it may in others, and they lose nothing.
        soft = any(taint.effect == PREFER_NO_SCHEDULE for taint in untolerated(pool.taints, tolerations))
        places = self._places(pod)
        key = pod.shape_key, places, pool.weight, labels, soft
        if key not in self._kinds:
            tolerations += (TOLERATES_PREFER_NO_SCHEDULE,) if soft else ()
            bound = pod.of_new_nodes.merged(Requirements.of_labels(dict(labels))).merged(next(iter(places), ()))
            several = len(places) > 1
            made = None if several else self._new_kind(pod, bound, tolerations, pool.weight, labels, max_per_node)
            self._kinds[key] = made
        return self._kinds[key]

    def _places(self, pod: PendingPod) -> tuple[Requirements, ...]:
        """Where its volumes let the pod go; empty if anywhere."""
        shape, facts = self._problem.shapes[pod.shape], self._problem.volumes
        if not shape.volumes or facts is None:
            return ()
        return volumes_of_claims(facts, claim_names(pod.namespace, pod.name, shape)).alternatives

    def _new_kind(
        self,
        pod: PendingPod,
        bound: Requirements,
        tolerations: tuple[Toleration, ...],
        weight: int,
        labels: Labels,
        max_per_node: NodeLimit | None,
    ) -> PodKind | None:
        """With its preferences, but for those that no type meets: it gave these up in the first plan, too (S-33)."""
        shape, shape_key = self._problem.shapes[pod.shape], pod.shape_key
        respects = self._problem.settings.preference_policy == RESPECT
        left: PodShape | None = shape
        while left is not None:
            kind = PodKind(
                self._options.amounts(shape.requests),
                requirements_of(left, respects).merged(bound),
                tolerations,
                shape.host_ports,
                weight,
                labels,
                max_per_node,
                shape_key not in self._independent,
            )
            if any(all(map(le, kind.amounts, choice.room)) for choice in self._options.choices(kind)):
                return kind
            left = relaxed_shape(left, soft_taints=False)
        return None

    @cached_property
    def _ties(self) -> dict[ShapeKey, TopologyTies | None]:
        return _topology_ties(self._problem)


def _topology_ties(problem: Problem) -> dict[ShapeKey, TopologyTies | None]:
    """The ties of all waiting pods by shape key; None for pods that cannot be moved by themselves."""
    waiting = sorted(problem.pods_of_kind)
    present = sorted({*waiting, *(pod.shape_key for pod in problem.bound)})
    rules_of = {shape_key: tuple(_topology_rules(problem, *shape_key)) for shape_key in present}
    by_label = PodsByLabel(problem, present)
    keys: dict[ShapeKey, set[str]] = {shape_key: set() for shape_key in present}
    limits: dict[frozenset[ShapeKey], dict[ShapeKey, int]] = {}
    fixed = {shape_key for shape_key in waiting if problem.shapes[shape_key[1]].resource_claims}
    seen: set[TopologyRule] = set()
    for shape_key, rules in rules_of.items():
        for rule in rules:
            selected = frozenset(by_label.selected(rule.selector))
            if rule.key != HOSTNAME:
                keys[shape_key].add(rule.key)
                for other in selected if rule not in seen else ():
                    keys[other].add(rule.key)
                seen.add(rule)
            elif not rule.max_per_domain:
                fixed |= {shape_key, *selected}
            elif selected:
                of_all = limits.setdefault(selected, {})
                of_all[shape_key] = min(rule.max_per_domain, of_all.get(shape_key, rule.max_per_domain))
    max_per_node: dict[ShapeKey, NodeLimit] = {}
    for selected, of_all in limits.items():
        sizes = {tuple(sorted(problem.shapes[digest].requests.items())) for _, digest in selected}
        if of_all.keys() == selected and len(sizes) == 1 and max_per_node.keys().isdisjoint(selected):
            max_per_node |= dict.fromkeys(selected, (*min(selected), min(of_all.values())))
        else:
            fixed |= of_all.keys()
    return {
        shape_key: None
        if shape_key in fixed
        else TopologyTies(tuple(sorted(keys[shape_key])), max_per_node.get(shape_key))
        for shape_key in waiting
    }


def _topology_rules(problem: Problem, namespace: str, digest: str) -> Iterator[TopologyRule]:
    shape = problem.shapes[digest]
    for constraint in shape.spread:
        selector = spread_selector(constraint, namespace, shape.labels)
        yield TopologyRule(selector, normalise(constraint.topology_key), constraint.max_skew)
    for terms, max_per_domain in ((shape.affinity, 0), (shape.anti_affinity, 1)):
        for term in terms:
            selector = term_selector(term, namespace, shape.labels, problem.namespaces)
            yield TopologyRule(selector, normalise(term.topology_key), max_per_domain)
