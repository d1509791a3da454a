"""Which events `kerf log` takes for a reason that other commands name."""

from __future__ import annotations

import pytest

from kerf.engine.record.claim_events import Registered
from kerf.engine.record.entries import Entry
from kerf.projections.timeline.event import INFO, Event
from kerf.replay.history.event_filter import Asked, EventFilter


@pytest.mark.parametrize("reason", ["instance-vanished", "claim-instance-vanished", "*vanished"])
def test_a_vanished_instance_is_found_by_the_reason_that_kerf_churn_gives(reason: str) -> None:
    event = Event(position=1, turn=1, at=0, code="claim-instance-vanished", level=INFO, subject="nodeclaim/a")
    assert EventFilter(Asked(reason=reason)).takes(event)
    assert not EventFilter(Asked(reason="interrupted")).takes(event)


@pytest.mark.parametrize("subject", ["nodeclaim/a", "a", "node/n1", "n1"])
def test_a_machine_that_comes_while_a_record_is_followed_has_its_other_names_at_once(subject: str) -> None:
    asked, others = EventFilter(Asked(subject=subject)), EventFilter(Asked(subject="nodeclaim/other"))
    for taken in (asked, others):
        taken.see(Entry(1, 1, "nodeclaim/a", 1, "claim.registered", 1, 0, 1, 0, Registered("a", node="n1")))

    told = [Event(position=2, turn=2, at=0, code="x", level=INFO, subject=name) for name in ("nodeclaim/a", "node/n1")]

    assert [asked.takes(event) for event in told] == [True, True]
    assert [others.takes(event) for event in told] == [False, False]
