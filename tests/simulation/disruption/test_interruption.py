"""Spot interruptions in the whole controller: what the notice is used for (docs/differences.md)."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import ObjectGone
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import Run, scale, workshop

PODS = 5


def interrupted(settings: Settings) -> Run:
    actions = (scale("10s", PODS), {"at": "10m", "action": "interrupt"})
    return Run(workshop(*actions, capacity_type="spot"), settings=settings)


def short_of_pods(run: Run) -> int:
    """For how long fewer than all were ready, once they had been, in ms."""
    ready: dict[str, bool] = {}
    whole_at = short_since = total = 0
    for entry in run.entries():
        if isinstance(entry.payload, Pod):
            ready[entry.payload.uid] = entry.payload.ready and not entry.payload.deleting
        elif isinstance(entry.payload, ObjectGone):
            ready.pop(entry.payload.key, None)
        whole = sum(ready.values()) >= PODS
        whole_at = whole_at or (entry.at if whole else 0)
        if whole_at and not whole and not short_since:
            short_since = entry.at
        if whole and short_since:
            total, short_since = total + entry.at - short_since, 0
    assert whole_at
    assert not short_since
    return total


def test_pods_of_an_interrupted_node_are_down_for_their_own_start_only() -> None:
    kept, at_once = interrupted(Settings()), interrupted(Settings(keep_until_replaced=False))
    assert short_of_pods(kept) < 10_000
    assert short_of_pods(at_once) > 30_000
    for run in (kept, at_once):
        assert not verify(run.store).divergences
        assert not run.entries("claim.instance-vanished")  # every node was let go before the cloud took it
