"""Log lines about what leaves no choice: once for each claim, also over a restart (LG-1, LG-11)."""

from __future__ import annotations

import pytest

from kerf.engine.nodeclaim.state_table import DRAINING
from kerf.engine.record.claim_events import ReasonRaised
from kerf.engine.record.observations import InterruptionSeen, NodeClaimDeletionSeen, Observation
from kerf.projections.disruption_log_lines import Line
from kerf.projections.karpenter_logs import KarpenterLog
from tests.support.lives import claim_of, decide, half_empty, show_taint
from tests.support.worlds.drain import put, serving


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("first", "times"),
    [("expired", 1), ("deleted", 0), ("empty", 1), ("waits for its replacement", 2)],
)
def test_lg1_d136_a362_what_goes_already_has_no_second_line_for_an_interruption(
    first: str, times: int, restarts: bool
) -> None:
    """A node that waits for its replacement does not go yet (D-116): it has the line of its move, and one of its own.
    What somebody deletes has none."""
    world = half_empty() if first.startswith("waits") else serving(expire_after=3_600_000)
    log, told = KarpenterLog(), list[Line]()
    claim = claim_of(world)
    if first == "expired":
        put(world, "a")
        world.after(3_600_000)
    elif first == "deleted":
        world.see(Observation(NodeClaimDeletionSeen(claim.name, "kubectl")))
    else:
        decide(world)
    world.answer_all()
    show_taint(world)
    world.after(1_000)
    assert (claim.state == DRAINING) != first.startswith("waits")
    told += [line for entry in world.store.entries for line in log.apply(entry)]
    if restarts:
        log = KarpenterLog()
        log.know(world.runtime.state)
    since = len(world.store.entries)
    world.see(Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1")))
    assert any(isinstance(entry.payload, ReasonRaised) for entry in world.store.entries[since:])
    told += [line for entry in world.store.entries[since:] for line in log.apply(entry)]
    assert len([line for line in told if line["message"] == "disrupting node(s)"]) == times
