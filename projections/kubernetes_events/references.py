"""Find the objects that Events are about, in the state as it is, and make Events about them."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import MINUTE, KubernetesEvent, ObjectReference


class References:
    """References to objects by what the record calls them. What is gone by now has none, and so gets no Events."""

    def __init__(self, state: State) -> None:
        self._facts = state.facts

    def pod(self, uid: str) -> ObjectReference | None:
        pod = self._facts.pods.get(uid)
        return ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid) if pod is not None else None

    def node(self, name: str) -> ObjectReference | None:
        node = self._facts.nodes.get(name)
        return ObjectReference("v1", "Node", node.name, "", node.uid) if node is not None else None

    def node_of(self, claim: str) -> ObjectReference | None:
        known = self._facts.claims.get(claim)
        return self.node(known.node) if known is not None and known.node else None

    def pool(self, name: str) -> ObjectReference | None:
        pool = self._facts.pools.get(name)
        return ObjectReference("karpenter.sh/v1", "NodePool", name, "", pool.uid) if pool is not None else None

    def claim(self, name: str) -> ObjectReference | None:
        return ObjectReference("karpenter.sh/v1", "NodeClaim", name) if name in self._facts.claims else None

    def both(self, claim: str) -> list[ObjectReference]:
        """Return the claim's Node and NodeClaim, those that exist (EV-1)."""
        return [reference for reference in (self.node_of(claim), self.claim(claim)) if reference is not None]

    def pod_disruption_budget(self, key: str) -> ObjectReference | None:
        """Return the PodDisruptionBudget with this "namespace/name"."""
        for budget in self._facts.pdbs.values():
            if budget.key == key:
                return ObjectReference("policy/v1", "PodDisruptionBudget", budget.name, budget.namespace, budget.uid)
        return None


def events_about(
    objects: Iterable[ObjectReference | None],
    kind: str,
    reason: str,
    message: str,
    *more: str,
    window: int = 2 * MINUTE,
) -> list[KubernetesEvent]:
    """Return one Event about each object. `message` may name the object's `{kind}`; `more` adds to its uid in the
    key."""
    return [
        KubernetesEvent(about, kind, reason, message.format(kind=about.kind), (about.uid or about.name, *more), window)
        for about in objects
        if about is not None
    ]


def escaped(text: str) -> str:
    """Double the braces of a text, so that `format` leaves them."""
    return text.replace("{", "{{").replace("}", "}}")
