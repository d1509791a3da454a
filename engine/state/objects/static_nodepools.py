"""The fold of static NodePools: what was last decided of each, and which are to be looked at again."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.record.claim_events import LaunchFailed, LaunchTimedOut, Registered
from kerf.engine.record.decisions import StaticResult
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State, StaticPool

MIN_LAUNCH_PAUSE = 10_000
MAX_LAUNCH_PAUSE = 300_000


def look_at_pool(state: State, name: str) -> None:
    """Something changed that the size of this pool may depend on."""
    pool = state.facts.pools.get(name)
    if pool is not None and pool.replicas is not None:
        state.indexes.static[name] = None


def static_gate_changed(state: State) -> None:
    """The settings may be others."""
    if not state.facts.settings.static_capacity:
        state.facts.static.clear()
    look_at_all_pools(state)


def look_at_all_pools(state: State) -> None:
    for name in state.facts.pools:
        look_at_pool(state, name)


def count_launch_failures(state: State, pool: str, event: object, entry: Entry, *, lost: bool) -> None:
    """A launch that failed, or that was `lost` before its node joined, is not tried again at once: the pause doubles
    until a node joins."""
    look_at_pool(state, pool)
    if pool not in state.indexes.static or not state.facts.settings.static_capacity:
        return
    known = state.facts.static.get(pool, StaticPool())
    if lost or isinstance(event, LaunchFailed | LaunchTimedOut):
        pause = min(MAX_LAUNCH_PAUSE, MIN_LAUNCH_PAUSE << min(known.failures, 10))
        known = StaticPool(known.code, known.failures + 1, entry.at + pause)
        state.facts.static[pool] = known
    elif isinstance(event, Registered) and known.failures:
        state.facts.static[pool] = replace(known, failures=0)


def static_decided(state: State, result: StaticResult, entry: Entry) -> None:
    known = state.facts.static.get(result.node_pool, StaticPool())
    state.facts.static[result.node_pool] = StaticPool(result.reason.code, known.failures, result.retry_at)


def forget_pool(state: State, name: str) -> None:
    state.facts.static.pop(name, None)
    state.indexes.static.pop(name, None)
