"""Verify says "same" of an honest record, and finds whatever was changed in one."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.provision import VERSION
from kerf.replay.errors import BeginningMissing
from kerf.replay.verify.verify import verify
from tests.support.memory import DamagedStore, MemoryStore
from tests.support.records import changed, position_of, tampered, whole_life, without
from tests.support.world import World


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def test_an_honest_record_is_the_same(store: MemoryStore) -> None:
    report = verify(store)
    assert report.exit_code == 0
    assert (report.diverged, report.unsupported, report.fault) == (0, (), None)
    assert report.entries == report.last == len(store.entries)
    assert report.decisions == sum(e.type == "decision.made" for e in store.entries)
    assert report.claim_events == sum(e.type.startswith("claim.") for e in store.entries)
    assert report.turns == len({e.turn for e in store.entries})
    assert report.engine_recorded == "test"


def test_a_record_with_a_restart_in_the_middle_is_the_same() -> None:
    world = whole_life()
    world.pending("x", "y")
    world.runtime = world.start()
    world.after(1_000)
    world.pending("z")
    world.after(20_000)
    assert verify(world.store).exit_code == 0


def test_a_flipped_price_is_found(store: MemoryStore) -> None:
    position = position_of(store, "decision.made")
    decision = store.entries[position - 1].payload
    claim = replace(decision.result.claims[0], price=0.001)
    forged = tampered(store, changed(position, result=replace(decision.result, claims=(claim,))))
    report = verify(forged)
    assert report.exit_code == 1
    found = report.divergences[0]
    assert (found.position, found.kind, found.path) == (position, "different", "payload.result.claims[0].price")
    assert (found.was, found.now) == (0.001, 0.096)
    assert found.outcome_was != found.outcome_now
    assert (found.engine_recorded, found.version_recorded, found.version) == ("test", VERSION, VERSION)
    assert found.decider == "provision"
    assert report.diverged == 1, "the next turns go on from what is recorded"


def test_a_changed_decision_is_found(store: MemoryStore) -> None:
    position = position_of(store, "decision.made")
    decision = store.entries[position - 1].payload
    order = replace(decision.intents[0], offers=decision.intents[0].offers[1:])
    report = verify(tampered(store, changed(position, intents=(order,))))
    assert [(d.position, d.path) for d in report.divergences] == [(position, "payload.intents[0].offers[0].zone")]


def test_a_missing_claim_event_is_found(store: MemoryStore) -> None:
    position = position_of(store, "claim.registered")
    report = verify(tampered(store, without(position)))
    first = report.divergences[0]
    assert (first.position, first.kind, first.type) == (position, "missing", "claim.registered")
    assert first.recorded is None
    assert first.remade is not None
    assert any(d.kind == "refused" and d.type == "claim.initialized" for d in report.divergences)


@pytest.mark.parametrize(("event", "decider"), [("claim.requested", "provision"), ("claim.drained", "drain")])
def test_a_claim_event_that_differs_names_its_decider(store: MemoryStore, event: str, decider: str) -> None:
    """That of the decision that it follows from, or of the one about its claim in the same turn."""
    found = verify(tampered(store, without(position_of(store, event)))).divergences[0]
    assert (found.type, found.decider) == (event, decider)


def test_an_extra_decision_is_found(store: MemoryStore) -> None:
    position = position_of(store, "decision.made", 1)

    def twice(entries: list[Entry]) -> list[Entry]:
        return [*entries[:position], entries[position - 1], *entries[position:]]

    report = verify(tampered(store, twice))
    assert report.divergences[0].kind == "extra"
    assert report.divergences[0].position == position + 1


def test_an_observation_in_a_wrong_stream_is_found(store: MemoryStore) -> None:
    position = position_of(store, "pod.seen")
    forged = MemoryStore()
    forged.blobs, forged.entries = store.blobs, list(store.entries)
    forged.entries[position - 1] = replace(forged.entries[position - 1], version=7)
    assert verify(forged).divergences[0].path == "version"


def test_an_unknown_entry_makes_its_turn_unsupported_and_no_other() -> None:
    world = World()
    world.prepare()
    world.see(Observation(Namespace("default")))
    world.pending("a")
    world.after(1_000)
    position = position_of(world.store, "namespace.seen")

    def unknown(entries: list[Entry]) -> list[Entry]:
        volume = UnknownEntry("volume.seen", 1, Raw(msgspec.msgpack.encode({"name": "pv-1"})))
        made = replace(entries[position - 1], stream="seen/volume", type="volume.seen", payload=volume)
        return [*entries[: position - 1], made, *entries[position:]]

    report = verify(tampered(world.store, unknown))
    assert report.exit_code == 4
    ((reason, detail, count),) = [(u.reason, u.detail, u.count) for u in report.unsupported]
    assert (reason, detail, count) == ("unknown-entry", "volume.seen schema 1", 1)
    assert report.decisions == 1, "the plan after it is verified all the same"


def test_an_older_decision_version_is_unsupported_and_never_diverged(store: MemoryStore) -> None:
    def older(entries: list[Entry]) -> list[Entry]:
        return [
            replace(entry, payload=replace(entry.payload, version=0)) if isinstance(entry.payload, Decision) else entry
            for entry in entries
        ]

    report = verify(tampered(store, older))
    assert report.exit_code == 4
    assert report.diverged == 0
    assert {u.reason for u in report.unsupported} == {"decision-version"}
    assert report.decisions == 0


def test_one_turn_of_an_older_version_leaves_the_others_verified(store: MemoryStore) -> None:
    position = position_of(store, "decision.made", 2)
    report = verify(tampered(store, changed(position, version=0)))
    assert report.exit_code == 4
    (unsupported,) = report.unsupported
    assert (unsupported.count, unsupported.detail.split(",")[0]) == (1, "advance 0")
    assert report.decisions == sum(e.type == "decision.made" for e in store.entries) - 1


def test_a_missing_blob_makes_its_turn_unsupported(store: MemoryStore) -> None:
    twin = tampered(store, list)
    twin.blobs = {}
    report = verify(twin)
    assert report.exit_code == 4
    assert {u.reason for u in report.unsupported} == {"missing-blob"}


def test_what_is_before_the_damage_is_verified(store: MemoryStore) -> None:
    report = verify(DamagedStore(store, 21))
    assert report.exit_code == 3
    assert report.fault is not None
    assert (report.fault.code, report.fault.position) == ("KERF109", 21)
    assert 0 < report.last < 21
    assert report.diverged == 0


def test_a_corrupt_blob_is_a_fault_and_no_divergence(store: MemoryStore) -> None:
    report = verify(DamagedStore(store))
    assert (report.exit_code, report.fault and report.fault.code) == (3, "KERF112")


def test_a_record_without_its_beginning_is_refused(store: MemoryStore) -> None:
    part = MemoryStore()
    part.entries, part.blobs = store.entries[9:], store.blobs
    with pytest.raises(BeginningMissing, match="KERF204"):
        verify(part)


def test_an_empty_record_is_the_same() -> None:
    assert verify(MemoryStore()).exit_code == 0


def test_all_divergences_are_counted_and_the_first_are_kept(store: MemoryStore) -> None:
    def dearer(entries: list[Entry]) -> list[Entry]:
        return [
            replace(entry, payload=replace(entry.payload, now=entry.payload.now + 1))
            if isinstance(entry.payload, Decision)
            else entry
            for entry in entries
        ]

    report = verify(tampered(store, dearer), keep=2)
    assert len(report.divergences) == 2
    assert report.diverged > 2
    assert all(d.path == "payload.now" for d in report.divergences)


def test_progress_is_told_with_the_position_of_each_turn(store: MemoryStore) -> None:
    told: list[int] = []
    report = verify(store, progress=told.append)
    assert told == sorted(told)
    assert (told[-1], len(told)) == (report.last, report.turns)


def test_the_report_is_plain_json(store: MemoryStore) -> None:
    position = position_of(store, "claim.launched")
    report = verify(tampered(store, changed(position, price=1.0)))
    again = msgspec.json.decode(msgspec.json.encode(report))
    assert again["divergences"][0]["path"] == "payload.price"
    assert CODEC.decode(CODEC.encode(store.entries[0])) == store.entries[0]
