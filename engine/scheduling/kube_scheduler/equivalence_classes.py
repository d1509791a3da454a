"""Pods that the cluster's scheduler cannot tell apart, and what they think of nodes: of all old ones of a problem once,
and of new ones once per kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules, ShapeKey, meets_any
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, NodeScores
from kerf.engine.scheduling.kube_scheduler.node_usage import NodeUsage, PodLoad, scored_requests
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SchedulerVariant
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.pods.pod_requirements import alternatives_of
from kerf.engine.scheduling.pods.pod_volumes import PodVolumes, claim_names, volumes_of_claims
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

NODE_AFFINITY_WEIGHT, TAINT_TOLERATION_WEIGHT = 2, 3
"""Weights of the default score plugins."""
NEUTRAL_SCORE = 100.0 * TAINT_TOLERATION_WEIGHT
"""The fixed score of all nodes where pods like none of them better, and no soft taint repels them."""

_encoder = msgspec.msgpack.Encoder(order="deterministic")

ScoredNode = tuple[NodeScores, int]
"""What pods think of a node, and its number."""
ScoredNodes = tuple[NodeScores, Sequence[int]]
"""What they think of some nodes, and their numbers."""
RankedNode = tuple[float, int, int, int]
"""The score of a node, less is better, its rank among equals, its number, and how many pods had been bound to it then
(`rooms.TOO_FULL` if it has no room for another)."""


class EquivalenceClass:
    """Pods of one shape before the scheduler. `old`: the old nodes that have a place for one, by number."""

    def __init__(
        self,
        pair: ShapeKey,
        shape: PodShape,
        volumes: PodVolumes,
        old: Sequence[NodeInfo],
        load: PodLoad,
        alone: Hashable,
    ) -> None:
        """`alone`: equal for all that a node by itself does not tell apart."""
        self.pair = pair
        self.load = load
        self._shape = shape
        there = volumes.alternatives or (Requirements(),)
        self._asked = tuple(
            own.merged(each) for own in alternatives_of(shape) for each in there if not own.conflicts(each)
        )
        self._kinds: dict[int, NodeScores | None] = {}
        self.old = [(place, n) for n, each in enumerate(old) if (place := each.liking(alone, self._looked)) is not None]
        self.indifferent = not scores_differ(place for place, _ in self.old)
        self.fixed = dict.fromkeys((number for _, number in self.old), NEUTRAL_SCORE)
        self._ranked: dict[SchedulerVariant, list[RankedNode]] = {}

    def ranked(self, habit: SchedulerVariant) -> list[RankedNode]:
        """The old nodes while nothing has been bound to them, best first, if the pods are `indifferent`."""
        found = self._ranked.get(habit)
        if found is None:
            made = [(-NEUTRAL_SCORE - score, habit.rank(number), number, 0) for (_, _, score), number in self.old]
            found = self._ranked[habit] = sorted(made)
        return found

    def place(self, seat: NodeInfo) -> NodeScores | None:
        """What they think of a new node while nothing is bound to it; None if it is no place for them."""
        if seat.kind < 0:
            return self._looked(seat)
        if seat.kind not in self._kinds:
            self._kinds[seat.kind] = self._looked(seat)
        return self._kinds[seat.kind]

    @property
    def asked(self) -> Hashable:
        """Equal for classes that `possible` does not tell apart."""
        return self._asked, self._shape.tolerations

    def _looked(self, seat: NodeInfo) -> NodeScores | None:
        room = NodeUsage(seat, {})
        if not self.possible(seat) or not room.holds(self.load):
            return None
        liked = sum(
            each.weight
            for each in self._shape.preferred_terms
            if seat.known.compatible(Requirements.of_expressions(each.term.expressions))
        )
        soft = untolerated(seat.taints, self._shape.tolerations) if seat.taints else ()
        shunned = sum(each.effect == PREFER_NO_SCHEDULE for each in soft)
        return liked, shunned, room.score(self.load)

    def possible(self, seat: NodeInfo) -> bool:
        """The filters on taints, node affinity and the zones of volumes."""
        hard = tuple(each for each in seat.taints if each.effect != PREFER_NO_SCHEDULE)
        if untolerated(hard, self._shape.tolerations):
            return False
        return (
            any(_meets_launching(each, seat) for each in self._asked)
            if seat.open
            else meets_any(self._asked, seat.known)
        )


def _meets_launching(asked: Requirements, seat: NodeInfo) -> bool:
    """On a node that is not launched yet: of a label that is only narrowed so far, every value that is left must do."""
    narrowed = [each for each in seat.open if each.key in asked]
    settled = asked.without(each.key for each in narrowed)
    return seat.known.compatible(settled) and all(asked.get(each.key).allows_all_of(each) for each in narrowed)


class EquivalenceClasses:
    """Of the pods of one problem before its old nodes."""

    def __init__(self, problem: Problem, manners: InterpodRules, old: Sequence[NodeInfo]) -> None:
        self._problem, self._manners, self._old = problem, manners, old
        self._alike: dict[object, EquivalenceClass] = {}
        self._loads: dict[object, PodLoad] = {}
        self._by_pod: dict[tuple[bool, tuple[str, ...]], EquivalenceClass] = {}

    def of(self, pod: PendingPod, newer: bool) -> EquivalenceClass:
        """For a scheduler that is `newer` or not (see `SchedulerVariant`)."""
        shape = self._problem.shapes[pod.shape]
        claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
        key = newer, (pod.namespace, pod.shape, *claims)
        found = self._by_pod.get(key)
        if found is None:
            facts = self._problem.volumes
            volumes = volumes_of_claims(facts, claims, hosts=True) if facts is not None else PodVolumes()
            found = self._by_pod[key] = self._interned((pod.namespace, pod.shape), shape, volumes, newer)
        return found

    def _interned(self, pair: ShapeKey, shape: PodShape, volumes: PodVolumes, newer: bool) -> EquivalenceClass:
        """One class for all pods that nothing here tells apart."""
        demands, entered = self._manners.demands[pair], self._manners.entered(pair)
        plain = replace(
            shape, labels={}, priority=0, priority_class="", grace=None, spread=(), affinity=(), anti_affinity=()
        )
        alone = newer, _encoder.encode(plain), volumes
        key = alone, demands, entered
        found = self._alike.get(key)
        if found is None:
            load = self._load(shape, volumes, newer)
            found = self._alike[key] = EquivalenceClass(pair, shape, volumes, self._old, load, alone)
        return found

    def _load(self, shape: PodShape, volumes: PodVolumes, newer: bool) -> PodLoad:
        """One for all classes that take the same of a node."""
        key = tuple(sorted(shape.requests.items())), shape.host_ports, volumes.attached, newer
        found = self._loads.get(key)
        if found is None:
            requests, attached = {**shape.requests, "pods": 1}, frozenset(volumes.attached)
            found = self._loads[key] = PodLoad(
                requests, scored_requests(shape.requests), shape.host_ports, attached, newer
            )
        return found


def scores_differ(places: Iterable[NodeScores]) -> bool:
    """Whether pods like some of these nodes better, or soft taints repel them from some."""
    return any(liked or shunned for liked, shunned, _ in places)


def static_scores(places: Sequence[ScoredNodes]) -> dict[int, float]:
    """Preferred node affinity and soft taints, each brought to 0…100, whole numbers, over the feasible nodes, by
    number."""
    most = max((liked for (liked, _, _), _ in places), default=0)
    worst = max((shunned for (_, shunned, _), _ in places), default=0)
    found: dict[int, float] = {}
    for (liked, shunned, _), numbers in places:
        affinity = 100 * liked // most if most else 0
        taints = 100 - 100 * shunned // worst if worst else 100
        found |= dict.fromkeys(numbers, NODE_AFFINITY_WEIGHT * affinity + TAINT_TOLERATION_WEIGHT * taints)
    return found
