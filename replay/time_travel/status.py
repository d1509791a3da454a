"""The status of a cluster at a moment of a record."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.projections.cluster_status.cluster_status import cluster_status
from kerf.projections.cluster_status.recent import READ, recent_of
from kerf.projections.cluster_status.structs import ClusterStatus
from kerf.projections.cluster_status.verdict import with_trouble
from kerf.replay.time_travel.moments import last_before

LATELY = 3_600_000
"""What happened so long (ms) before a moment is told with its status."""


def status_of(store: Store, state: State, now: int = 0) -> ClusterStatus:
    """Return the status of a state of this record at the time `now` (see `cluster_status`)."""
    return cluster_status(state, now, latest_plan(store, state))


def with_recent(store: Store, status: ClusterStatus) -> ClusterStatus:
    """Return a status with what happened in the hour before, which no state knows. It counts for the verdict, too."""
    since = status.at - LATELY
    recent = recent_of(store.scan(last_before(store, since), status.position, READ), since, status.at)
    return replace(status, recent=recent, verdict=with_trouble(status.verdict, recent.trouble))


def latest_plan(store: Store, state: State) -> ProvisionResult | None:
    """Return the latest provisioning result that did not repeat another. None if there was none, or if a cut has
    removed it."""
    position = state.facts.plan
    entry = next(store.scan(position - 1, position), None) if position else None
    decision = entry.payload if entry is not None else None
    result = decision.result if isinstance(decision, Decision) else None
    return result if isinstance(result, ProvisionResult) else None
