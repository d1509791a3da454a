"""The fold of Namespaces."""

from __future__ import annotations

from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import open_window
from kerf.engine.state.state import State


def namespace_seen(state: State, namespace: Namespace, entry: Entry) -> None:
    """Affinity may ask for the labels of namespaces: a pod that waits may have a place now (S-57)."""
    if state.facts.namespaces.get(namespace.name) != namespace:
        state.facts.namespaces[namespace.name] = namespace
        if state.indexes.pending:
            open_window(state.facts, entry.at)


def namespace_gone(state: State, name: str, entry: Entry) -> None:
    state.facts.namespaces.pop(name, None)
