"""What happened in the hour before a status."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.state.load import load
from kerf.projections.cluster_status.recent import recent_of
from kerf.projections.cluster_status.structs import Recent
from kerf.replay.time_travel.status import LATELY, status_of, with_recent
from tests.support.lives import in_service


def entries(*payloads: Struct) -> Iterator[Entry]:
    template = in_service().store.entries[0]
    for payload in payloads:
        yield Entry(**{**{name: getattr(template, name) for name in template.__struct_fields__}, "payload": payload})


def test_events_of_claims_are_counted_and_a_vanished_node_is_gone_once() -> None:
    told = entries(
        ev.LaunchFailed("a", kind="capacity"),
        ev.LaunchTimedOut("b", waited=1),
        ev.PodEvicted("c", "u1", "default/web-1"),
        ev.PodForced("c", "u2", "default/web-2"),
        ev.Terminated("c", "expired"),
        ev.InstanceVanished("d", "i-1"),
        ev.Terminated("d", "instance-vanished"),
    )
    assert recent_of(told, 5, 10) == Recent(
        since=5, launched=0, failed=2, gone={"expired": 1, "vanished": 1}, evicted=1, forced=1, trouble={}
    )


def test_what_is_older_than_an_hour_does_not_count() -> None:
    world = in_service()
    statuses = (status_of(world.store, load(world.store), world.now + after) for after in (0, LATELY + 60_000))
    now, later = (with_recent(world.store, status).recent for status in statuses)
    assert now is not None
    assert later is not None
    assert (now.launched, later.launched) == (1, 0)
    assert later.since == world.now + 60_000
