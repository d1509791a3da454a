"""Kubernetes Events that a record leads to."""

from __future__ import annotations

from kerf.projections.kubernetes_events.decision_events import (
    DecisionEvents,
)
from kerf.projections.kubernetes_events.event import KubernetesEvent
from tests.support.world import World


def told(world: World, since: int = 0) -> list[KubernetesEvent]:
    """Of the entries behind a position, by the state as it is now."""
    events = DecisionEvents(world.runtime.state)
    return [event for entry in world.store.entries for event in events.apply(entry) if entry.position > since]
