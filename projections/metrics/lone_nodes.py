"""Nodes without a NodeClaim that kerf lets go: metrics of Nodes count their ends, too (M-17, M-18, M-20; D-140)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.effect_keys import DELETE_NODE
from kerf.engine.record.decisions import DeleteNode, Intent
from kerf.engine.state.state import Facts


class LoneNodes:
    """Knows the Nodes that are being deleted, and of which of those without a NodeClaim the drain is over."""

    def __init__(self, facts: Facts) -> None:
        self._deleting: dict[str, Node] = {}
        self._drained = {name for name, held in facts.lone.items() if held.effect(DELETE_NODE) is not None}
        for node in facts.nodes.values():
            self.see(node)

    def see(self, node: Node) -> None:
        if node.deleting:
            self._deleting[node.name] = node
        else:  # another Node took its name while nobody watched
            self._deleting.pop(node.name, None)
            self._drained.discard(node.name)

    def asked(self, intents: Iterable[Intent]) -> None:
        self._drained |= {intent.node for intent in intents if isinstance(intent, DeleteNode) and not intent.claim}

    def gone(self, name: str) -> Node | None:
        """Return the Node that is gone, if it is one of those without a NodeClaim that were drained."""
        node = self._deleting.pop(name, None)
        if name not in self._drained:
            return None
        self._drained.discard(name)
        return node
