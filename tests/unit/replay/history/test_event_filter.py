"""Which events `kerf log` takes for a reason that other commands name."""

from __future__ import annotations

import pytest

from kerf.projections.timeline.event import INFO, Event
from kerf.replay.history.event_filter import Asked, EventFilter


@pytest.mark.parametrize("reason", ["instance-vanished", "claim-instance-vanished", "*vanished"])
def test_a_vanished_instance_is_found_by_the_reason_that_kerf_churn_gives(reason: str) -> None:
    event = Event(position=1, turn=1, at=0, code="claim-instance-vanished", level=INFO, subject="nodeclaim/a")
    assert EventFilter(Asked(reason=reason)).takes(event)
    assert not EventFilter(Asked(reason="interrupted")).takes(event)
