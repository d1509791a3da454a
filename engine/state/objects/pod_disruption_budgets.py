"""The fold of PodDisruptionBudgets: refused evictions are tried again when one changes."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.nodeclaim.claim import Effect
from kerf.engine.record.entries import Entry
from kerf.engine.state.provisioning_window import free_capacity_changed, note_disruption_change
from kerf.engine.state.state import State

BUDGET_CODES = ("429", "500")  # what the eviction API says when one PodDisruptionBudget, or several, forbid it (D-150)


def budget_seen(state: State, pdb: PodDisruptionBudget, entry: Entry) -> None:
    if state.facts.pdbs.get(pdb.uid) != pdb:
        state.facts.pdbs[pdb.uid] = pdb
        _budget_changed(state, pdb.namespace, entry)


def _budget_changed(state: State, namespace: str, entry: Entry) -> None:
    """Evictions that a PodDisruptionBudget refused are tried again as soon as one of their namespace changes; pods that
    it lets go now need another place."""
    note_disruption_change(state.facts, entry.at)
    if state.indexes.going or state.indexes.deleted_nodes:
        free_capacity_changed(state, entry.at)
    for name in state.indexes.going:
        effects = state.facts.claims[name].effects.values()
        refused = [
            effect
            for effect in effects
            if effect.ok is False and effect.code in BUDGET_CODES and _of(effect, namespace)
        ]
        for effect in refused:
            effect.retry_at = entry.at
        if refused:
            state.indexes.touched[name] = entry.position


def _of(effect: Effect, namespace: str) -> bool:
    """Whether it is about a pod of this namespace."""
    return effect.pod.partition("/")[0] == namespace


def budget_gone(state: State, uid: str, entry: Entry) -> None:
    budget = state.facts.pdbs.pop(uid, None)
    if budget is not None:
        _budget_changed(state, budget.namespace, entry)
