"""What every database must do that a record can be cut in. A store's test subclasses `CutContract`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from msgspec import Struct

from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.retention import cut as cutting
from kerf.adapters.store.retention.cut import ENTRIES_PER_STEP
from kerf.adapters.store.retention.policy import DAY, Due, Retention, due, extent
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.reasons import Reason
from kerf.engine.record.base import Base
from kerf.engine.record.claim_events import Registered
from kerf.engine.record.decisions import Decision, LifecycleResult
from kerf.engine.record.errors import BlobMissing, RecordCorrupt, RecordShortened, StoreError, StoreReadOnly
from kerf.engine.record.observations import RecordCut, RecordStarted
from kerf.engine.record.store import Store
from tests.contract.store_contract import AT, SHAPE, SHAPE_BYTES, pod, pods, turn

OTHER, OTHER_BYTES = content(PodShape(labels={"app": "of a pod that is gone"}))


def some(position: int) -> Struct:
    """Of ten entries one is a decision, one a claim's event and the others pods."""
    if position == 1:
        return RecordStarted("r-1", "0")
    if position % 10 == 4:
        return Decision("advance", 1, position, 1, "", LifecycleResult(f"default-{position}", Reason("in-service")))
    return Registered(f"default-{position}", f"n{position}") if position % 10 == 5 else pod(position)


KEPT = [1, 4, 5, 14, 15, 24, 25]


def filled(store: Store, entries: int, *, first: int = 1) -> None:
    """Turns of ten; the first entry of all is the record's."""
    for start in range(first, first + entries, 10):
        payloads = [some(position) for position in range(start, start + 10)]
        store.append(turn(payloads, first=start, blobs={SHAPE: SHAPE_BYTES}))


def base_at(store: ChainedStore, position: int, *, names: str = "") -> Base:
    """The base of a state that names a blob. The store does not look into it."""
    state = msgspec.msgpack.encode({"record": "r-1", "names": names})
    chain = store.checkpoint(position).value
    return Base(
        position=position, at=1, chain=chain, engine="0", schema=1, types={}, state=state, digest=f"digest {position}"
    )


def announce(store: ChainedStore, position: int, *, after: int = 0, names: str = "") -> RecordCut:
    """What the runtime does: the base is stored, and its cut announced in the record."""
    announced = cutting.propose(store, base_at(store, position, names=names), after=after)
    store.append(turn([announced], first=store.last_position() + 1))
    return announced


def cut(store: ChainedStore, position: int, *, after: int = 0, names: str = "") -> RecordCut:
    announced = announce(store, position, after=after, names=names)
    cutting.begin(store, store.last_position())
    for _ in cutting.steps(store):
        pass
    return announced


def positions(store: ChainedStore) -> list[int]:
    return [entry.position for entry in store.scan()]


class CutContract(ABC):
    @abstractmethod
    def create(self, tmp_path: Path) -> str: ...
    @abstractmethod
    def open(self, place: str, mode: Literal["write", "read"]) -> Store: ...

    @pytest.fixture
    def whole(self, tmp_path: Path) -> Iterator[ChainedStore]:
        """A record of 40 entries."""
        store = self.writer(self.create(tmp_path))
        filled(store, 40)
        yield store
        store.close()

    def writer(self, place: str) -> ChainedStore:
        store = self.open(place, "write")
        assert isinstance(store, ChainedStore)
        return store

    # ── what is there afterwards ───────────────────────────────────────────────────────────────────────────────────

    def test_claims_and_decisions_stay_and_observations_go(self, whole: ChainedStore) -> None:
        before = {entry.position: entry for entry in whole.scan()}
        announced = cut(whole, 30)
        assert positions(whole) == [*KEPT, *range(31, 42)]
        assert all(before.get(entry.position, entry) == entry for entry in whole.scan())
        assert [entry.position for entry in whole.scan(14, 33)] == [15, 24, 25, 31, 32, 33]
        kept = whole.kept()
        assert kept is not None
        assert (kept.base, kept.entries, kept.history) == (30, len(KEPT), announced.history)

    def test_it_begins_at_the_base(self, whole: ChainedStore) -> None:
        assert (whole.base(), whole.kept(), whole.first_position()) == (None, None, 1)
        chain = whole.checkpoint(30)
        base = base_at(whole, 30)
        cut(whole, 30)
        assert (whole.base(), whole.first_position()) == (base, 31)
        assert whole.checkpoint(30) == chain
        assert whole.record_id == "r-1"
        with pytest.raises(RecordShortened, match="KERF118"):
            whole.checkpoint(29)

    def test_what_is_kept_goes_in_its_turn(self, whole: ChainedStore) -> None:
        first = cut(whole, 20)
        assert (first.after, first.removed) == (0, 0)
        second = cut(whole, 30, after=14)
        assert (second.after, second.removed) == (14, 20)
        assert positions(whole) == [15, 24, 25, *range(31, 43)]
        third = cut(whole, 30, after=30)  # the same base: only of what is kept something goes
        assert positions(whole) == list(range(31, 44))
        kept = whole.kept()
        assert kept is not None
        assert (kept.entries, kept.before, kept.history) == (0, third.history, third.history)

    def test_writing_goes_on_meanwhile(self, whole: ChainedStore) -> None:
        filled(whole, 2 * ENTRIES_PER_STEP, first=41)
        announce(whole, ENTRIES_PER_STEP + 200)
        cutting.begin(whole, whole.last_position())
        last = whole.last_position()
        for _ in cutting.steps(whole):
            last += 1
            whole.append(pods(last, 1))
            assert positions(whole)[-1] == last
        assert last >= 2 * ENTRIES_PER_STEP + 41 + 2
        assert [entry.position for entry in whole.scan(ENTRIES_PER_STEP + 200)] == list(
            range(ENTRIES_PER_STEP + 201, last + 1)
        )

    def test_blobs_go_that_nothing_names_any_more(self, whole: ChainedStore) -> None:
        """The base's own and those of later entries stay, and so does one that comes back."""
        in_base, in_base_bytes = content(PodShape(labels={"app": "of a pod that stays"}))
        gone = msgspec.structs.replace(pod(41), shape=OTHER)
        whole.append(turn([gone], first=41, blobs={OTHER: OTHER_BYTES, in_base: in_base_bytes}))
        filled(whole, 10, first=42)
        cut(whole, 41, names=in_base)
        assert (whole.blob(in_base), whole.blob(SHAPE)) == (in_base_bytes, SHAPE_BYTES)
        with pytest.raises(BlobMissing):
            whole.blob(OTHER)
        whole.append(turn([msgspec.structs.replace(gone, uid="new")], first=53, blobs={OTHER: OTHER_BYTES}))
        assert whole.blob(OTHER) == OTHER_BYTES

    def test_snapshots_before_the_base_go(self, whole: ChainedStore) -> None:
        whole.put_snapshot(20, "s", b"old", "d")
        whole.put_snapshot(40, "s", b"new", "d")
        cut(whole, 30)
        assert (whole.snapshot(35, "s"), whole.snapshot(None, "s")) == (None, (40, b"new", "d"))

    # ── what is due ────────────────────────────────────────────────────────────────────────────────────────────────

    def test_what_is_due_by_age(self, whole: ChainedStore) -> None:
        """An entry is as old as its turn's first position, in ms."""
        assert due(whole, Retention(20, 0, 0), AT + 31) == Due(20, 0)
        assert due(whole, Retention(20, 0, 0), AT + 31, candidates=[15, 30]) == Due(15, 0)
        assert due(whole, Retention(0, 0, 0), AT + 1_000 * DAY) is None
        cut(whole, 20)
        assert due(whole, Retention(20, 0, 0), AT + 31) is None
        assert due(whole, Retention(20, 25, 0), AT + 41) == Due(30, 20)

    def test_what_is_due_by_size(self, whole: ChainedStore) -> None:
        """Observations first; what is kept only when that is not enough."""
        filled(whole, 2_000, first=41)
        found = extent(whole)
        assert found.size >= found.live > 100_000
        assert due(whole, Retention(0, 0, found.size * 2), AT) is None
        some = due(whole, Retention(0, 0, found.size), AT)
        assert some is not None
        assert (0 < some.base < 1_500, some.base % 10, some.after) == (True, 0, 0)
        cut(whole, some.base)
        smaller = extent(whole)
        assert (smaller.live < found.live, smaller.kept > 0) == (True, True)
        everything = due(whole, Retention(0, 0, 1_000), AT)
        assert everything is not None
        assert (everything.base, everything.after > 0) == (whole.last_position(), True)
        assert smaller.since == whole.cut().at
        assert smaller.oldest == AT + 1

    # ── kills ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.slow
    def test_killed_at_any_point_it_is_a_record_and_goes_on(self, tmp_path: Path) -> None:
        """After each transaction the process may be gone: the next one reads a good record, and finishes."""
        points = range(-2, 7)
        reached = 0
        for point in points:
            folder = tmp_path / str(point)
            folder.mkdir()
            place = self.create(folder)
            store = self.writer(place)
            filled(store, 2 * ENTRIES_PER_STEP + 500)
            expected, announced = list(store.scan()), None
            if point == -2:  # the base is stored, and nothing announced
                cutting.propose(store, base_at(store, 2 * ENTRIES_PER_STEP + 20))
            else:
                announced = announce(store, 2 * ENTRIES_PER_STEP + 20, after=34)
                if point >= 0:
                    cutting.begin(store, store.last_position())
                    for done, _ in enumerate(cutting.steps(store)):
                        reached = max(reached, done)
                        if done == point:
                            break
            store.close()
            again = self.writer(place)
            seen = list(again.scan())
            if point < 0:
                assert again.base() is None
                assert seen[: len(expected)] == expected
                again.close()
                continue
            base, kept = again.base(), again.kept()
            assert base is not None
            assert kept is not None
            assert announced is not None
            assert (base.position, kept.history) == (2 * ENTRIES_PER_STEP + 20, announced.history)
            for _ in cutting.steps(again):
                pass
            assert list(again.scan()) == seen
            assert again.cut().moved == 2 * ENTRIES_PER_STEP + 20
            assert again.cut().swept
            again.close()
        assert reached >= 2

    def test_a_base_that_was_never_announced_is_of_no_use(self, whole: ChainedStore) -> None:
        cutting.propose(whole, base_at(whole, 20))
        cut(whole, 30)
        base = whole.base()
        assert base is not None
        assert base.position == 30

    # ── refusals and damage ────────────────────────────────────────────────────────────────────────────────────────

    def test_what_cannot_be_cut(self, whole: ChainedStore) -> None:
        with pytest.raises(StoreError, match="base is not one"):
            cutting.propose(whole, msgspec.structs.replace(base_at(whole, 20), chain=b"another"))
        with pytest.raises(StoreError, match="cannot be cut"):
            cutting.propose(whole, msgspec.structs.replace(base_at(whole, 20), position=41))
        with pytest.raises(StoreError, match="announces no cut"):
            cutting.begin(whole, 7)
        cut(whole, 30)
        with pytest.raises(StoreError, match="cannot be cut"):
            cutting.propose(whole, msgspec.structs.replace(base_at(whole, 30), position=20))

    def test_only_a_writer_cuts(self, tmp_path: Path) -> None:
        place = self.create(tmp_path)
        store = self.writer(place)
        filled(store, 40)
        reader = self.open(place, "read")
        assert isinstance(reader, ChainedStore)
        with pytest.raises(StoreReadOnly):
            cutting.propose(reader, base_at(store, 20))
        store.close()
        reader.close()

    @pytest.mark.parametrize(
        ("statement", "position"),
        [
            ("DELETE FROM stored_events WHERE {position} = 35", 35),
            ("DELETE FROM history WHERE position = 14", 15),
            ("UPDATE history SET chain = state WHERE position = 24", 24),
            ("DELETE FROM bases", 30),
            ("UPDATE bases SET document = seal", 30),
            ("UPDATE cut SET seal = document", 0),
        ],
        ids=["a live entry", "a kept entry", "its chain", "the base", "its document", "the cut"],
    )
    def test_what_was_changed_by_hand_shows(self, whole: ChainedStore, statement: str, position: int) -> None:
        """A removed middle cannot be passed off as a cut."""
        cut(whole, 30)
        with whole.session(commit=True) as session:
            session.run(statement)
        with pytest.raises(RecordCorrupt) as caught:
            (positions(whole), whole.base())
        assert caught.value.position == position

    def test_a_reader_that_is_overtaken_is_told(self, whole: ChainedStore) -> None:
        filled(whole, 10_000, first=41)
        reading = whole.scan()
        next(reading)
        cut(whole, 8_040)
        with pytest.raises(RecordShortened, match="while it was read"):
            list(reading)
