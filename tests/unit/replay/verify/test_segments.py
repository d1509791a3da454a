"""Segments that are verified apart say together what one run over the whole record says."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.store.files.golden import GoldenStore
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import BlobCorrupt
from kerf.engine.record.store import Store
from kerf.engine.state.load import beginning
from kerf.replay.verify import segments
from kerf.replay.verify import verify as verifying
from kerf.replay.verify.declared_changes import NOTHING_DECLARED, DeclaredChanges
from kerf.replay.verify.report import Report
from kerf.replay.verify.segments import Cutter, Segment
from kerf.replay.verify.verifier import Heard, turns
from kerf.replay.verify.verify import verify
from tests.support.memory import DamagedStore, MemoryStore
from tests.support.records import changed, position_of, tampered, whole_life, without
from tests.support.repository import ROOT

GOLDEN = ROOT / "tests" / "golden"


class Inline:
    """Workers that work at once, in this process; what goes to them and comes back is copied as between processes."""

    jobs = 2

    def __init__(self, store: Store, alone_for: float = -1.0) -> None:
        self.alone_for = alone_for
        self.tasks: list[Any] = []
        self._store = store

    def submit(self, task: Any) -> Future[Any]:
        self.tasks.append(task)
        future: Future[Any] = Future()
        try:
            future.set_result(pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(task)).run(self._store))))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers help from the second turn on, and each segment has a few turns."""
    monkeypatch.setattr(verifying, "LOOK_FOR", -1.0)
    monkeypatch.setattr(verifying, "LONG", 0)
    monkeypatch.setattr(segments, "SEGMENT_ENTRIES", 5)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return whole_life().store


def both(store: Store) -> tuple[Report, Report]:
    """The reports of one process, and of one with workers."""
    return tuple(replace(verify(store, workers=workers), seconds=0.0) for workers in (None, Inline(store)))  # type: ignore[return-value]


@pytest.mark.parametrize("case", ["workshop-scale-up-and-down", "spot-interruption", "volumes"])
def test_golden_records_are_the_same(case: str) -> None:
    alone, together = both(GoldenStore(GOLDEN / case))
    assert together == alone
    assert (together.exit_code, together.diverged) == (0, 0)


def older(entries: list[Entry]) -> list[Entry]:
    return [
        replace(entry, payload=replace(entry.payload, version=1)) if isinstance(entry.payload, Decision) else entry
        for entry in entries
    ]


def test_whatever_was_changed_is_reported_as_by_one_process(store: MemoryStore) -> None:
    """Divergences, what is missing, and unsupported turns: each in another segment than the first."""
    registered, bound = position_of(store, "claim.registered"), position_of(store, "decision.made", 2)
    for change in (without(registered), changed(bound, intents=()), changed(bound, version=0), older):
        alone, together = both(tampered(store, change))
        assert together == alone
        assert together.exit_code in (1, 4)


def test_declared_differences_are_counted_over_all_segments(store: MemoryStore) -> None:
    old = tampered(store, older)
    changes = DeclaredChanges(all_of_them=True)
    alone, together = (
        replace(verify(old, changes=changes, workers=workers), seconds=0.0) for workers in (None, Inline(old))
    )
    assert together == alone
    assert sum(change.made_again for change in together.declared) > 3


def test_at_most_so_many_divergences_are_kept_of_all_segments(store: MemoryStore) -> None:
    forged = tampered(store, without(position_of(store, "claim.registered")))
    alone, together = (verify(forged, keep=2, workers=workers) for workers in (None, Inline(forged)))
    assert together.diverged > 2
    assert together.divergences == alone.divergences
    assert len(together.divergences) == 2


def test_what_is_before_the_damage_is_verified(store: MemoryStore) -> None:
    alone, together = both(DamagedStore(store, 21))
    assert together == alone
    assert together.fault is not None
    assert (together.fault.position, together.diverged) == (21, 0)


def test_a_corrupt_blob_ends_the_segment_that_needs_it(store: MemoryStore) -> None:
    alone, together = both(DamagedStore(store))
    assert together == alone
    assert together.fault is not None
    assert together.fault.code == BlobCorrupt.code


def test_a_worker_that_comes_to_another_state_is_not_believed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state with which a segment begins is folded from the entries, and must be where the one before ends."""
    run = Segment.run

    def lies(self: Segment, given: Store) -> Any:
        part = run(self, given)
        part.digest = "0" * 32
        return part

    asked = Inline(store)
    monkeypatch.setattr(Segment, "run", lies)
    report = verify(store, workers=asked)
    assert any(isinstance(task, Segment) for task in asked.tasks)
    assert replace(report, seconds=0.0) == replace(verify(store), seconds=0.0), "one process has decided all of it"


def test_segments_hold_all_turns_once(store: MemoryStore) -> None:
    asked = Inline(store)
    verify(store, workers=asked)
    found = [task for task in asked.tasks if isinstance(task, Segment)]
    assert len(found) > 3
    assert [later.after for later in found[1:]] == [earlier.until for earlier in found[:-1]]
    assert found[-1].until == len(store.entries)


def _exhausted(entry: Entry) -> bool:
    return isinstance(entry.payload, Decision) and getattr(entry.payload.result, "exhausted", False)


def exhausting(entries: list[Entry]) -> list[Entry]:
    """Each disruption pass used up its steps."""
    return [
        replace(entry, payload=replace(entry.payload, result=replace(entry.payload.result, exhausted=True)))
        if isinstance(entry.payload, Decision) and isinstance(entry.payload.result, ProposedMovesResult)
        else entry
        for entry in entries
    ]


def test_a_pass_that_used_up_its_steps_stands_for_many_decisions(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ENTRIES", 10_000)
    monkeypatch.setattr(segments, "SEGMENT_DECISIONS", segments.LONG_PASS)
    made = []
    for record in (store, tampered(store, exhausting)):
        cutter = Cutter(beginning(record), Heard(), 0, NOTHING_DECLARED, lambda _state: None)
        made.append({segment.until for segment, _digest in cutter.segments(turns(record.scan()))})
    passes = [turn[-1].position for turn in turns(tampered(store, exhausting).scan()) if any(map(_exhausted, turn))]
    assert passes
    assert set(passes) <= made[1]
    assert not set(passes) <= made[0]


def test_a_short_record_is_left_to_one_process(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "LONG", 50_000)
    asked = Inline(store, alone_for=60.0)
    assert verify(store, workers=asked).exit_code == 0
    assert asked.tasks == []
