"""The status of a cluster at a moment of a record."""

from __future__ import annotations

from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.projections.cluster_status.cluster_status import cluster_status
from kerf.projections.cluster_status.structs import ClusterStatus


def status_of(store: Store, state: State, now: int = 0) -> ClusterStatus:
    """Return the status of a state of this record at the time `now` (see `cluster_status`)."""
    return cluster_status(state, now, latest_plan(store, state))


def latest_plan(store: Store, state: State) -> ProvisionResult | None:
    """Return the latest provisioning result that did not repeat another. None if there was none, or if a cut has
    removed it."""
    position = state.facts.plan
    entry = next(store.scan(position - 1, position), None) if position else None
    decision = entry.payload if entry is not None else None
    result = decision.result if isinstance(decision, Decision) else None
    return result if isinstance(result, ProvisionResult) else None
