"""The fold of NodeClasses, their catalogues of instance types, and their capacity reservations."""

from __future__ import annotations

from kerf.engine.record import observations as seen
from kerf.engine.record.entries import Entry
from kerf.engine.state.nodeclaims.drift import keep_nodeclass_terms, look_at_claims_of_class
from kerf.engine.state.objects import nodepool_health
from kerf.engine.state.objects.static_nodepools import look_at_all_pools
from kerf.engine.state.provisioning_window import free_capacity_changed
from kerf.engine.state.state import State


def nodeclass_seen(state: State, seen_class: seen.NodeClassSeen, entry: Entry) -> None:
    key = f"{seen_class.group}/{seen_class.kind}/{seen_class.name}"
    if state.facts.node_classes.get(key) != seen_class:
        state.facts.node_classes[key] = seen_class
        keep_nodeclass_terms(state, seen_class, entry)
        nodepool_health.class_seen(state, seen_class, entry)
        look_at_all_pools(state)
        free_capacity_changed(state, entry.at)


def catalogue_seen(state: State, catalogue: seen.CatalogueSeen, entry: Entry) -> None:
    if state.facts.catalogues.get(catalogue.node_class) != catalogue.digest:
        state.facts.catalogues[catalogue.node_class] = catalogue.digest
        look_at_claims_of_class(state, catalogue.node_class, entry)
        look_at_all_pools(state)
        free_capacity_changed(state, entry.at)


def reservations_seen(state: State, reservations: seen.ReservationsSeen, entry: Entry) -> None:
    """What is left of capacity reservations: a launch takes one, and the catalogue that names them stays. Which of them
    have any left at all is the catalogue's to say."""
    facts = state.facts
    if facts.reservations.get(reservations.node_class) != reservations:
        facts.reservations[reservations.node_class] = reservations
        free_capacity_changed(state, entry.at)


def nodeclass_gone(state: State, key: str, entry: Entry) -> None:
    facts = state.facts
    facts.node_classes.pop(key, None)
    facts.catalogues.pop(key, None)
    facts.reservations.pop(key, None)
    look_at_all_pools(state)
