"""Which pods of a plan may be put on other nodes without looking at the other pods, and as what.

Those that have nothing to do with others (`candidates.unattached`) may go anywhere. What pods are to each other by the
domains of their nodes stays as it is as long as each pod stays in its domain: such a pod may go to another node of the
zone (capacity type, …) that its node is bound to. What pods are to each other on one node can be said of those that
only keep away from their like: so many of them may be on one node. All others stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import HOSTNAME, normalise
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey
from kerf.engine.scheduling.matching.label_selectors import PodSelector, spread_selector, term_selector
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.pods.pod_classes import RESPECT
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

Labels = tuple[tuple[str, str], ...]


class TopologyRule(Struct, frozen=True):
    """A constraint or a term of some pods: `most` of those that it selects may be on one node of its domain; 0 says
    nothing of how many (affinity, and spreads over labels)."""

    selector: PodSelector
    key: str
    most: int


class TopologyTies(Struct, frozen=True):
    """What a pod is to others: the labels whose domains matter, and how many of its like may be on one node (0: any
    number)."""

    keys: tuple[str, ...] = ()
    most: int = 0


class MovablePods:
    """Of one problem."""

    def __init__(
        self, problem: Problem, menu: InstanceOptions, unattached: frozenset[ShapeKey], weights: Mapping[str, int]
    ) -> None:
        """`weights`: of the NodePools that the first plan puts pods (uids) on; the others stay."""
        self._problem, self._menu, self._unattached, self._weights = problem, menu, unattached, weights
        self._kinds: dict[tuple[ShapeKey, int, Labels], PodKind | None] = {}
        self._ties: dict[ShapeKey, TopologyTies | None] | None = None

    def free(self, pod: PendingPod) -> PodKind | None:
        """As what a pod may go to any node; None if it may not."""
        pair = pod.namespace, pod.shape
        return self._kind(pod, ()) if pair in self._unattached else None

    def held(self, pod: PendingPod, claim: OpenedClaim) -> PodKind | None:
        """As what a pod may go to another node like this claim's, where it is; None if it may not."""
        pair = pod.namespace, pod.shape
        if pair in self._unattached:
            return self._kind(pod, ())
        ties = self._all_ties().get(pair)
        if ties is None:
            return None
        found = {each.key: each for each in claim.constraints if each.key in ties.keys}
        if not all(each.single for each in found.values()):
            return None
        return self._kind(pod, tuple((key, found[key].any_value()) for key in ties.keys if key in found), ties.most)

    def _kind(self, pod: PendingPod, labels: Labels, most: int = 0) -> PodKind | None:
        weight = self._weights.get(pod.uid)
        if weight is None:
            return None
        pair = pod.namespace, pod.shape
        key = pair, weight, labels
        if key not in self._kinds:
            self._kinds[key] = self._made(pair, weight, labels, most)
        return self._kinds[key]

    def _made(self, pair: ShapeKey, weight: int, labels: Labels, most: int) -> PodKind | None:
        shape = self._problem.shapes[pair[1]]
        asked = requirements_of(shape, self._problem.settings.preference_policy == RESPECT)
        made = PodKind(
            self._menu.amounts(shape.requests),
            asked.merged(Requirements.of_labels(dict(labels))) if labels else asked,
            shape.tolerations,
            shape.host_ports,
            weight,
            labels,
            (*pair, most) if most else None,
            pair not in self._unattached,
        )
        rooms = (self._menu.room(each.template, each.kind) for each in self._menu.choices(made))
        fits = any(all(a <= b for a, b in zip(made.amounts, room, strict=True)) for room in rooms)
        return made if fits else None

    def _all_ties(self) -> dict[ShapeKey, TopologyTies | None]:
        if self._ties is None:
            self._ties = _topology_ties(self._problem)
        return self._ties


def _topology_ties(problem: Problem) -> dict[ShapeKey, TopologyTies | None]:
    """Of all pending pods by (namespace, shape); None for those that cannot be moved alone."""
    pending = sorted({(each.namespace, each.shape) for each in problem.pods})
    present = sorted({*pending, *((each.namespace, each.shape) for each in problem.bound)})
    own = {pair: tuple(_topology_rules(problem, *pair)) for pair in present}
    selected = _selected(problem, present, dict.fromkeys(each for rules in own.values() for each in rules))
    keys: dict[ShapeKey, set[str]] = {pair: set() for pair in present}
    most: dict[ShapeKey, int] = {}
    fixed = {pair for pair in pending if not _movable_by_itself(problem.shapes[pair[1]])}
    for pair, rules in own.items():
        for rule in rules:
            if rule.key != HOSTNAME:
                for each in (pair, *selected[rule]):
                    keys[each].add(rule.key)
            elif not rule.most:
                fixed |= {pair, *selected[rule]}
            elif selected[rule] == {pair}:
                most[pair] = min(rule.most, most.get(pair, rule.most))
            elif selected[rule]:
                fixed.add(pair)
    return {
        pair: None if pair in fixed else TopologyTies(tuple(sorted(keys[pair])), most.get(pair, 0)) for pair in pending
    }


def _selected(
    problem: Problem, present: Iterable[ShapeKey], rules: Iterable[TopologyRule]
) -> dict[TopologyRule, frozenset[ShapeKey]]:
    """What each rule selects; only those are looked at that have the first label that it asks for."""
    labelled: dict[tuple[str, str] | None, list[ShapeKey]] = {None: list(present)}
    for pair in labelled[None]:
        for label in problem.shapes[pair[1]].labels.items():
            labelled.setdefault(label, []).append(pair)
    found = {}
    for rule in rules:
        asked = rule.selector.labels[0] if rule.selector.labels else None
        found[rule] = frozenset(
            pair for pair in labelled.get(asked, ()) if rule.selector.selects(pair[0], problem.shapes[pair[1]].labels)
        )
    return found


def _movable_by_itself(shape: PodShape) -> bool:
    return not (shape.volumes or shape.resource_claims or shape.preferred_terms)


def _topology_rules(problem: Problem, namespace: str, digest: str) -> Iterator[TopologyRule]:
    shape = problem.shapes[digest]
    for each in shape.spread:
        yield TopologyRule(spread_selector(each, namespace, shape.labels), normalise(each.topology_key), each.max_skew)
    for term in shape.affinity:
        yield TopologyRule(
            term_selector(term, namespace, shape.labels, problem.namespaces), normalise(term.topology_key), 0
        )
    for term in shape.anti_affinity:
        yield TopologyRule(
            term_selector(term, namespace, shape.labels, problem.namespaces), normalise(term.topology_key), 1
        )
