"""Positions by number, time and distance, and what the state was there."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.record import summary_text
from kerf.engine.record.errors import RecordCorrupt
from kerf.engine.record.observations import NodeClassSeen, Observation
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.projections.prose.amounts import moment
from kerf.replay.errors import PositionUnknown
from kerf.replay.explain.pod import explain_pod
from kerf.replay.time_travel.moments import locate, moment_of, state_at
from kerf.replay.time_travel.state_summary import summarize
from kerf.replay.time_travel.status import status_of, with_recent
from tests.support.lives import in_service
from tests.support.memory import DamagedStore, MemoryStore
from tests.support.records import position_of, whole_life
from tests.support.world import NODE_CLASS, START, World


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def at(store: MemoryStore, position: int) -> int:
    return store.entries[position - 1].at


def test_a_number_is_a_position(store: MemoryStore) -> None:
    assert locate(store, "12") == 12
    assert locate(store, "start") == 1
    assert locate(store, "end") == len(store.entries)


@pytest.mark.parametrize("text", ["+0s", "+500ms", "+1.5s", "+33.5s", "+1h", "+0d1h", "+1d0h30m"])
def test_a_distance_from_the_start_is_the_last_entry_until_then(store: MemoryStore, text: str) -> None:
    seconds = {
        "+0s": 0,
        "+500ms": 500,
        "+1.5s": 1_500,
        "+33.5s": 33_500,
        "+1h": 3_600_000,
        "+0d1h": 3_600_000,
        "+1d0h30m": 88_200_000,
    }
    position = locate(store, text)
    assert at(store, position) <= START + seconds[text]
    assert position == len(store.entries) or at(store, position + 1) > START + seconds[text]


def test_a_distance_before_the_end(store: MemoryStore) -> None:
    assert locate(store, "-30m") == locate(store, "-30m from end") == position_of(store, "object.gone") - 1


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:21.500Z",
        "2023-11-14T23:13:21.500+01:00",
        "2023-11-14T22:13:21.500",
        "2023-11-14 22:13:21.500",
        "2023-11-14t22:13:21.500z",
        "22:13:21.500",
        "22:13:21.500Z",
    ],
)
def test_a_time_is_the_last_entry_until_then(store: MemoryStore, text: str) -> None:
    assert locate(store, text) == position_of(store, "claim.requested")


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "99999",
        "yesterday",
        "+soon",
        "-1x",
        "",
        "2001-01-01T00:00:00Z",
        "٣",
        "+",
        "-",
        "+ 1h",
        "25:00",
        "1:99",
        "+2d",
        "2023-11-17",
        "-9d",
        "+9999999d",
        "9" * 5_000,
        "+" + "1d" * 5_000,
        "\x1b[2J",
        "0001-01-01",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_what_is_no_position_is_refused_with_what_to_write(store: MemoryStore, text: str) -> None:
    with pytest.raises(PositionUnknown, match="KERF202") as caught:
        locate(store, text)
    assert "runs from 2023-11-14T22:13:20.000Z (position 1) to " in caught.value.hint or "positions 1 to" in str(
        caught.value
    )


@pytest.mark.parametrize("text", ["5m", "1d2h", "1.5h"])
def test_a_distance_without_a_sign_is_asked_about(store: MemoryStore, text: str) -> None:
    """`kerf simulate --until` takes it so, from the start."""
    with pytest.raises(PositionUnknown) as caught:
        locate(store, text)
    assert caught.value.hint.startswith(f"Is it +{text}, after the start, or -{text}, before the end? The record runs")


def test_a_time_before_the_damage_is_found_and_one_that_may_be_behind_it_is_not(store: MemoryStore) -> None:
    """Everything before a damaged entry is readable (KERF109)."""
    for damaged in range(2, len(store.entries)):
        broken = DamagedStore(store, damaged)
        for position in range(1, damaged):
            time = moment(at(store, position))
            if at(store, damaged - 1) > at(store, position):
                assert locate(broken, time) == locate(store, time) < damaged
            else:
                assert _located_or_none(broken, time) in (None, locate(store, time)), "it may be behind the damage"


def _located_or_none(store: MemoryStore, time: str) -> int | None:
    try:
        return locate(store, time)
    except RecordCorrupt:
        return None


def test_the_hour_before_a_position_is_found_whatever_is_damaged_later() -> None:
    """What the status at a position tells, as the state there is told (KERF109)."""
    store = whole_life().store
    whole = with_recent(store, status_of(store, load(store, 20)))
    for damaged in range(21, len(store.entries) + 1):
        broken = DamagedStore(store, damaged)
        assert with_recent(broken, status_of(broken, load(broken, 20))) == whole


def test_an_empty_record_has_no_positions() -> None:
    with pytest.raises(PositionUnknown, match="the record is empty"):
        locate(MemoryStore(), "end")


def test_the_summary_says_what_there_was(store: MemoryStore) -> None:
    found = summarize(load(store, position_of(store, "claim.initialized")))
    (claim,) = found.claims
    assert (claim.state, claim.node, claim.instance_type, claim.price) == ("initialized", "n1", "m5.large", 0.096)
    assert (found.claim_states, found.price, found.nodes, found.unmanaged_nodes) == ({"initialized": 1}, 0.096, 1, 0)
    assert found.pods == {"waiting": 5}
    assert found.digest == snapshot.digest(load(store, found.position))


def test_the_summary_shows_the_open_window_and_what_is_in_flight(store: MemoryStore) -> None:
    waiting = summarize(load(store, position_of(store, "pod.seen", 4)))
    assert waiting.window_closes == START + 1_500
    asked = summarize(load(store, position_of(store, "claim.requested")))
    assert [(f.ref, f.effect) for f in asked.in_flight] == [("12.0", "launch-instance")]
    assert asked.claims[0].price == 0.0, "nothing runs yet"


def test_pods_without_a_place_show() -> None:
    world = World()
    world.prepare()
    world.pending("a", memory=10**13)
    world.after(1_000)
    assert summarize(load(world.store, locate(world.store, "end"))).without_place


def test_a_nodepool_that_is_not_ready_says_why() -> None:
    """A NodePool that is not ready says why (L-253)."""
    world = in_service()
    (line,) = summarize(world.runtime.state).pools
    assert (line.name, line.nodes, line.ready, line.wrong, line.registration) == ("default", 1, True, (), "")
    seen = NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, reason="SubnetsNotFound")
    world.see(Observation(seen))
    (line,) = summarize(world.runtime.state).pools
    assert (line.ready, line.wrong) == (False, ("SubnetsNotFound: NodeClass default is not ready",))
    printer = io.StringIO()
    with redirect_stdout(printer):
        summary_text(Printer(), summarize(world.runtime.state))
    assert "NodePool default is not ready: SubnetsNotFound" in printer.getvalue()


def test_a_time_of_day_is_the_last_one_in_a_record_of_several_days() -> None:
    world = in_service()
    world.after(2 * 86_400_000)
    world.pending("late")
    begin, end = moment_of(world.store, "start").at, moment_of(world.store, "end").at
    for text in ("22:14", "21:00", "9:30", "23:59:59.999"):
        found = moment_of(world.store, text)
        assert moment(found.at)[11:].startswith(text.rjust(5, "0"))
        assert begin <= found.at <= end < found.at + 86_400_000
        assert f"is taken as {moment(found.at)}, the last of that time in the record" in found.note


def test_a_time_after_the_end_is_answered_for_a_day_and_says_so(store: MemoryStore) -> None:
    end = moment_of(store, "end")
    late = moment_of(store, moment(end.at + 86_400_000))
    assert (late.position, late.at) == (end.position, end.at + 86_400_000)
    assert "is 1d after the record's last entry" in late.note
    with pytest.raises(PositionUnknown, match=r"is 1d after the record's end.*The record runs from .* up to 1d after"):
        moment_of(store, moment(end.at + 86_400_001))


def test_a_moment_has_the_time_that_was_asked_for_and_the_entry_before_it(store: MemoryStore) -> None:
    found = moment_of(store, "+20m")
    assert found.at == START + 1_200_000 > at(store, found.position)
    assert moment_of(store, str(found.position)).at == at(store, found.position)


def test_ages_are_those_of_the_time_that_is_asked_for(store: MemoryStore) -> None:
    found = moment_of(store, "+20m")
    (line,) = summarize(load(store, found.position), found.at).claims
    assert line.age == found.at - store.entries[position_of(store, "claim.requested") - 1].at
    assert state_at(store, found.position, found.at).facts.at == found.at
    assert state_at(store, found.position, 1).facts.at == at(store, found.position), "time does not run backwards"


def test_a_pod_that_nothing_happened_to_has_waited_until_the_time_that_is_asked_for() -> None:
    world = World()
    world.prepare()
    world.pending("a", memory=10**13)
    world.after(1_000)
    entry = moment_of(world.store, "end")
    half_an_hour = explain_pod(world.store, "default/a", entry.position, entry.at + 1_800_000)
    assert half_an_hour.waited == explain_pod(world.store, "default/a").waited + 1_800_000
