"""Pods that kube-scheduler cannot tell apart, and what they make of empty nodes.

Filters and scores are computed once per class of pods: for the existing nodes of a problem, and for each kind of new
node.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.kube_scheduler.filters import (
    node_affinity,
    node_affinity_before_launch,
    node_resources_fit,
    required_alternatives,
    taint_toleration,
)
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsage, PodLoad
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SchedulerVariant
from kerf.engine.scheduling.kube_scheduler.scores import (
    NEUTRAL_SCORE,
    NodeScores,
    scored_requests,
    static_scores_differ,
)
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.pods.pod_volumes import PodVolumes, claim_names, volumes_of_claims
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, ShapeKey

_encoder = msgspec.msgpack.Encoder(order="deterministic")

RankedNode = tuple[float, int, int, int]
"""A node in the order of preference: its negated score, its rank among equals, its number, and how many pods had been
bound to it when it was scored (`NO_ROOM` if it had no room for another)."""


class EquivalenceClass:
    """Pods of one sort before the existing nodes of a problem.

    `feasible_nodes`: the existing nodes that pass the filters while nothing is bound, with scores, by number.
    `prefers_none`: neither preferred node affinity nor soft taints tell these nodes apart; then `neutral_scores` are
    the static scores of all of them.
    """

    def __init__(
        self,
        shape_key: ShapeKey,
        shape: PodShape,
        volumes: PodVolumes,
        existing: Sequence[NodeInfo],
        load: PodLoad,
        node_key: Hashable,
    ) -> None:
        """`node_key`: equal for all classes that a single node does not tell apart."""
        self.shape_key = shape_key
        self.load = load
        self._shape = shape
        reachable = volumes.alternatives or (Requirements(),)
        self._alternatives = tuple(
            own.merged(of_volumes)
            for own in required_alternatives(shape)
            for of_volumes in reachable
            if not own.conflicts(of_volumes)
        )
        self._anywhere = any(not alternative for alternative in self._alternatives)
        self._scores_by_kind: dict[int, NodeScores | None] = {}
        self.feasible_nodes = [
            (scores, number)
            for number, node in enumerate(existing)
            if (scores := node.scores_for(node_key, self._filter_and_score)) is not None
        ]
        self.prefers_none = not static_scores_differ(scores for scores, _ in self.feasible_nodes)
        self.neutral_scores = dict.fromkeys((number for _, number in self.feasible_nodes), NEUTRAL_SCORE)
        self._ranked: dict[SchedulerVariant, list[RankedNode]] = {}

    def ranked(self, variant: SchedulerVariant) -> list[RankedNode]:
        """The feasible existing nodes while nothing is bound to them, best first; only if the class `prefers_none`."""
        ranked = self._ranked.get(variant)
        if ranked is None:
            nodes = [
                (-NEUTRAL_SCORE - score, variant.tie_rank(number), number, 0)
                for (_, _, score), number in self.feasible_nodes
            ]
            ranked = self._ranked[variant] = sorted(nodes)
        return ranked

    def scores_on(self, node: NodeInfo) -> NodeScores | None:
        """The scores of a new node while nothing is bound to it; None if the filters refuse it."""
        if node.kind < 0:
            return self._filter_and_score(node)
        if node.kind not in self._scores_by_kind:
            self._scores_by_kind[node.kind] = self._filter_and_score(node)
        return self._scores_by_kind[node.kind]

    @property
    def filter_key(self) -> Hashable:
        """Equal for classes that `may_go_to` does not tell apart."""
        return self._alternatives, self._shape.tolerations

    def _filter_and_score(self, node: NodeInfo) -> NodeScores | None:
        load = self.load
        if node.overcommitted or not node_resources_fit(load.requests, node.free) or not self.may_go_to(node):
            return None
        empty = NodeUsage(node, {})
        if (load.ports or load.volumes) and not empty.holds(load):
            return None
        score = empty.score(load)
        if not self._shape.preferred_terms and not node.taints:
            return 0, 0, score
        preferred = sum(
            preferred_term.weight
            for preferred_term in self._shape.preferred_terms
            if node.label_requirements.compatible(Requirements.of_expressions(preferred_term.term.expressions))
        )
        untolerated_taints = untolerated(node.taints, self._shape.tolerations) if node.taints else ()
        repelling = sum(untolerated_taint.effect == PREFER_NO_SCHEDULE for untolerated_taint in untolerated_taints)
        return preferred, repelling, score

    def may_go_to(self, node: NodeInfo) -> bool:
        """The filters on taints, node affinity and the zones of volumes, which no other pod changes."""
        if node.taints and not taint_toleration(node.taints, self._shape.tolerations):
            return False
        if self._anywhere:
            return True
        if node.open_labels:
            return node_affinity_before_launch(self._alternatives, node.label_requirements, node.open_labels)
        return node_affinity(self._alternatives, node.label_requirements)


class EquivalenceClasses:
    """The classes of one problem's pods before its existing nodes."""

    def __init__(self, problem: Problem, rules: InterpodRules, existing: Sequence[NodeInfo]) -> None:
        self._problem, self._rules, self._existing = problem, rules, existing
        self._classes: dict[object, EquivalenceClass] = {}
        self._loads: dict[object, PodLoad] = {}
        self._by_pod: dict[tuple[bool, tuple[str, ...]], EquivalenceClass] = {}

    def of(self, pod: PendingPod, newer: bool) -> EquivalenceClass:
        """The class of a pod, for a scheduler that is `newer` or not (see `SchedulerVariant`)."""
        shape = self._problem.shapes[pod.shape]
        claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
        key = newer, (pod.namespace, pod.shape, *claims)
        pod_class = self._by_pod.get(key)
        if pod_class is None:
            facts = self._problem.volumes
            volumes = volumes_of_claims(facts, claims, hosts=True) if facts is not None else PodVolumes()
            pod_class = self._by_pod[key] = self._interned((pod.namespace, pod.shape), shape, volumes, newer)
        return pod_class

    def _interned(self, shape_key: ShapeKey, shape: PodShape, volumes: PodVolumes, newer: bool) -> EquivalenceClass:
        """One class for all pods that no filter and no score tells apart."""
        rules, entered = self._rules.by_shape[shape_key], self._rules.counts_entered(shape_key)
        plain = replace(
            shape, labels={}, priority=0, priority_class="", grace=None, spread=(), affinity=(), anti_affinity=()
        )
        node_key = newer, _encoder.encode(plain), volumes
        key = node_key, rules, entered
        pod_class = self._classes.get(key)
        if pod_class is None:
            load = self._load(shape, volumes, newer)
            pod_class = EquivalenceClass(shape_key, shape, volumes, self._existing, load, node_key)
            self._classes[key] = pod_class
        return pod_class

    def _load(self, shape: PodShape, volumes: PodVolumes, newer: bool) -> PodLoad:
        """One load for all classes that take the same of a node."""
        key = tuple(sorted(shape.requests.items())), shape.host_ports, volumes.attached, newer
        load = self._loads.get(key)
        if load is None:
            requests, attached = {**shape.requests, "pods": 1}, frozenset(volumes.attached)
            load = PodLoad(requests, scored_requests(shape.requests), shape.host_ports, attached, newer)
            self._loads[key] = load
        return load
