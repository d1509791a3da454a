"""Pods that have to run beside others which a PodDisruptionBudget keeps on a node that goes (S-49, S-142, D-88).

Pods that are to leave together do not all leave at once: a budget lets some go, and the others when these run
elsewhere. Until then the others count where they are. Required pod affinity to them alone can be met only there. A pod
planned into another zone would wait for them, and they for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Expression, Pod, PodShape
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.matching.label_selectors import PodSelector, required_affinity_selectors
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.problem.problem import Beside, BoundPod, NodeInput, ShapeKey


def beside_held_pods(
    pods: Collection[Pod],
    places: Mapping[str, NodeInput],
    staying: Iterable[BoundPod],
    rules: EvictionRules,
    namespaces: Collection[Namespace],
) -> dict[str, Beside]:
    """The pods (uids) that can run only beside pods that are kept where they are.

    `pods`: all that seek a place. `places`: for those that leave a node, that node (by the pod's uid). `staying`: the
    other pods that are bound. Beside one of these a pod may run in any case.
    """
    if not rules.pod_disruption_budgets or not any(
        _seeks(rules.shapes[digest]) for digest in {pod.shape for pod in pods}
    ):
        return {}
    kept = rules.kept_back(pod for pod in pods if pod.uid in places)
    return dict(_Held(pods, places, kept, rules).beside(staying, namespaces)) if kept else {}


def _seeks(shape: PodShape) -> bool:
    """Whether such a pod has to be with others."""
    return any(not term.weight for term in shape.affinity)


class _Held:
    """Pods that leave nodes, and what keeps them."""

    def __init__(
        self,
        pods: Iterable[Pod],
        places: Mapping[str, NodeInput],
        kept: Mapping[str, tuple[PodDisruptionBudget, ...]],
        rules: EvictionRules,
    ) -> None:
        self._places, self._kept, self._rules = places, kept, rules
        self._kinds: dict[ShapeKey, list[Pod]] = {}
        for pod in pods:
            self._kinds.setdefault((pod.namespace, pod.shape), []).append(pod)

    def beside(self, staying: Iterable[BoundPod], namespaces: Iterable[Namespace]) -> Iterator[tuple[str, Beside]]:
        shapes = self._rules.shapes
        there = {pod.shape_key for pod in staying if not pod.terminating}
        for (namespace, digest), seeking in self._kinds.items():
            selectors = required_affinity_selectors(shapes[digest], namespace, namespaces)
            if not selectors or any(self._selected(selectors, kind) for kind in there):
                continue
            fellows = [pod for kind, some in self._kinds.items() if self._selected(selectors, kind) for pod in some]
            kept = [pod for pod in fellows if pod.uid in self._kept]
            unbound = [pod for pod in fellows if not _seeks(shapes[pod.shape])]
            for pod in seeking if kept else ():
                alone = all(fellow.uid == pod.uid for fellow in fellows[:2])
                if alone or any(self._goes_ahead(fellow, pod) for fellow in unbound):
                    continue
                others = [fellow for fellow in kept if fellow.uid != pod.uid] or kept
                found = self._where(others, shapes[digest])
                if found is not None:
                    yield pod.uid, found

    def _selected(self, selectors: Iterable[PodSelector], kind: ShapeKey) -> bool:
        """Whether required affinity, all of it, is to pods of this kind (S-142)."""
        namespace, digest = kind
        return all(selector.selects(namespace, self._rules.shapes[digest].labels) for selector in selectors)

    def _goes_ahead(self, fellow: Pod, pod: Pod) -> bool:
        """Whether a pod that has to be with none may get its next place while the other one still seeks its own."""
        budgets = self._kept.get(fellow.uid, ())
        own = {budget.uid for budget in self._rules.matching(pod)}
        return all(budget.disruptions_allowed and budget.uid not in own for budget in budgets)

    def _where(self, kept: Iterable[Pod], shape: PodShape) -> Beside | None:
        """None if their nodes are in no domain of a key: then they count nowhere."""
        nodes = {self._places[pod.uid].name: self._places[pod.uid] for pod in kept}
        expressions = []
        for key in sorted({term.topology_key for term in shape.affinity if not term.weight}):
            domains = {_domain(node, key) for node in nodes.values()} - {""}
            if not domains:
                return None
            expressions.append(Expression(key, "In", tuple(sorted(domains))))
        budgets = {budget.key for pod in kept for budget in self._kept[pod.uid]}
        return Beside(tuple(expressions), tuple(sorted(nodes)), tuple(sorted(budgets)))


def _domain(node: NodeInput, key: str) -> str:
    return node.labels.get(key, node.name if key == HOSTNAME else "")
