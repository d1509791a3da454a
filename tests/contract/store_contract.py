"""What every `Store` must do (engine/record/store.py). A store's test subclasses `StoreContract`."""

from __future__ import annotations

import itertools
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from msgspec import Raw, Struct

from kerf.adapters.store import chained
from kerf.adapters.store.chained import KEPT_SNAPSHOTS
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.entry_types import NAME_OF, TYPES, stream_of
from kerf.engine.record.errors import (
    BlobMissing,
    EntryRefused,
    EpochRefused,
    PositionConflict,
    RecordCorrupt,
    StoreError,
    StreamConflict,
    TurnRefused,
)
from kerf.engine.record.observations import OfficeTaken, RecordStarted
from kerf.engine.record.store import Append, Store
from tests.support.repository import ROOT

AT = 1_700_000_000_000
SHAPE, SHAPE_BYTES = content(PodShape(requests={"cpu": 250, "memory": 1 << 30}, labels={"app": "web"}))
UNKNOWN = UnknownEntry("moon.phase-seen", 3, Raw(msgspec.msgpack.encode({"phase": "full", "of": [1, 2.5, None]})))


def pod(number: int) -> Pod:
    return Pod(uid=f"uid-{number}", namespace="shop", name=f"web-{number}", shape=SHAPE, unschedulable=True)


def turn(
    payloads: Sequence[Struct], *, first: int, epoch: int = 1, blobs: dict[str, bytes] | None = None, stream: str = ""
) -> Append:
    """A turn that holds these payloads from position `first` on. In each stream, the version is the position."""
    entries = []
    for position, payload in enumerate(payloads, first):
        unknown = isinstance(payload, UnknownEntry)
        name = payload.type if isinstance(payload, UnknownEntry) else NAME_OF[type(payload)]
        schema = payload.schema if isinstance(payload, UnknownEntry) else TYPES[name].schema
        of = stream or ("seen/moon" if unknown else stream_of(payload))
        entries.append(Entry(position, first, of, position, name, schema, AT + first, 0, epoch, payload))
    return Append(tuple(entries), blobs or {})


def pods(first: int, count: int, **options: Any) -> Append:
    return turn([pod(number) for number in range(first, first + count)], first=first, **options)


# Reads a record over and over until it has `last` entries, checking that what it sees is always an unbroken start.
READER = """
import sys
from kerf.adapters.store.open import open_record
store = open_record(sys.argv[1])
seen = -1
while seen < int(sys.argv[2]):
    positions = [entry.position for entry in store.scan()]
    assert positions == list(range(1, len(positions) + 1)), positions
    assert len(positions) >= seen
    if seen < 0:
        print("reading", flush=True)
    seen = len(positions)
print(seen)
"""

# Appends turns of three until it is killed, and says of each when it is stored.
WRITER = """
import sys
from kerf.adapters.store.open import open_record
from tests.contract.store_contract import pods
store = open_record(sys.argv[1], "write")
first = store.last_position() + 1
while True:
    store.append(pods(first, 3))
    first += 3
    print(first - 1, flush=True)
"""


def process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process that runs `code`, with the repository as its folder."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


class StoreContract(ABC):
    """The suite. A place is what `open_record` takes: a path, a URL."""

    @abstractmethod
    def create(self, tmp_path: Path) -> str:
        """Makes an empty record and names its place."""

    @abstractmethod
    def open(self, place: str, mode: Literal["write", "read"]) -> Store:
        """Opens the record at this place."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return self.create(tmp_path)

    @pytest.fixture
    def store(self, place: str) -> Iterator[Store]:
        store = self.open(place, "write")
        yield store
        store.close()

    # ── reading what was written ───────────────────────────────────────────────────────────────────────────────────

    def test_a_scan_of_some_types_yields_these_and_what_is_unknown(self, tmp_path: Path) -> None:
        """Nobody must miss entries of a newer kerf because they asked for other types."""
        store = self.open(self.create(tmp_path), "write")
        store.append(turn([RecordStarted("r-1", "0"), pod(1), UNKNOWN, pod(2)], first=1, blobs={SHAPE: SHAPE_BYTES}))
        assert [entry.position for entry in store.scan(only={"pod.seen"})] == [2, 3, 4]
        assert [entry.position for entry in store.scan(1, 3, only={"record.started"})] == [3]
        assert list(store.scan(only=TYPES)) == list(store.scan())
        store.close()

    def test_entries_are_found_by_their_positions(self, store: Store) -> None:
        assert isinstance(store, chained.ChainedStore)
        store.append(pods(1, 900))
        encoded = list(store.encoded())
        asked = [1, 2, *range(5, 900, 2), 900]
        assert list(store.encoded_at(asked)) == [encoded[position - 1] for position in asked]
        assert store.seal(900) == store.checkpoint().value.hex() != store.seal(899)
        with pytest.raises(RecordCorrupt, match="missing"):
            list(store.encoded_at([901]))

    def test_an_empty_record_is_a_record(self, store: Store) -> None:
        assert list(store.scan()) == []
        assert (store.last_position(), store.epoch()) == (0, 0)
        assert store.snapshot(None, "schema") is None

    def test_entries_come_back_in_order_and_equal(self, store: Store) -> None:
        first = turn([RecordStarted("r-1", "0.1.0"), OfficeTaken(1, "me"), pod(3)], first=1)
        second = pods(4, 5, epoch=2)
        store.append(first)
        store.append(second)
        assert list(store.scan()) == [*first.entries, *second.entries]
        assert (store.last_position(), store.epoch()) == (8, 2)

    @pytest.mark.parametrize(
        ("after", "until", "expected"),
        [
            (0, None, [1, 2, 3, 4, 5, 6, 7]),
            (2, 5, [3, 4, 5]),
            (6, None, [7]),
            (7, None, []),
            (9, 12, []),
            (0, 0, []),
            (5, 3, []),
            (4, 99, [5, 6, 7]),
        ],
    )
    def test_a_scan_takes_a_range(self, store: Store, after: int, until: int | None, expected: list[int]) -> None:
        store.append(pods(1, 3))
        store.append(pods(4, 4))
        assert [entry.position for entry in store.scan(after, until)] == expected

    def test_a_record_is_the_same_when_it_is_opened_again(self, place: str) -> None:
        written = [pods(1, 3), pods(4, 2, epoch=7)]
        for append in written:
            store = self.open(place, "write")
            store.append(append)
            store.close()
        store = self.open(place, "read")
        assert list(store.scan()) == [entry for append in written for entry in append.entries]
        assert store.epoch() == 7
        store.close()

    def test_unknown_entries_are_kept_as_they_are(self, store: Store) -> None:
        store.append(turn([UNKNOWN, pod(2)], first=1))
        entry, other = store.scan()
        assert entry.payload == UNKNOWN
        assert bytes(entry.payload.raw) == bytes(UNKNOWN.raw)
        assert other.payload == pod(2)

    def test_a_large_turn_is_one_turn(self, store: Store) -> None:
        large = pods(1, 9_000)
        store.append(large)
        assert tuple(store.scan()) == large.entries
        assert [entry.position for entry in store.scan(8_190, 8_194)] == [8191, 8192, 8193, 8194]

    def test_scans_run_side_by_side_and_end_where_the_record_ended(self, store: Store) -> None:
        store.append(pods(1, 4))
        one, two = store.scan(), store.scan(2)
        assert (next(one).position, next(two).position) == (1, 3)
        store.append(pods(5, 1))
        assert [entry.position for entry in one] == [2, 3, 4]
        assert [entry.position for entry in two] == [4]

    # ── refusals: nothing of a refused turn is stored ──────────────────────────────────────────────────────────────

    def refused(self, store: Store, append: Append, error: type[StoreError]) -> StoreError:
        before = (list(store.scan()), store.last_position(), store.epoch())
        with pytest.raises(error) as caught:
            store.append(append)
        assert (list(store.scan()), store.last_position(), store.epoch()) == before
        assert caught.value.code == error.code
        return caught.value

    @pytest.mark.parametrize("first", [1, 3, 5, 99])
    def test_a_turn_that_does_not_follow_the_end_is_refused(self, store: Store, first: int) -> None:
        store.append(pods(1, 3))
        assert self.refused(store, pods(first, 2), PositionConflict).position == first

    def test_a_stream_version_is_taken_once(self, store: Store) -> None:
        store.append(turn([pod(1)], first=1, stream="seen/pod"))
        again = turn([pod(2), pod(3)], first=2, stream="seen/pod")
        taken = Append((again.entries[0], msgspec.structs.replace(again.entries[1], version=1)), {})
        error = self.refused(store, taken, StreamConflict)
        assert error.position == 3
        assert "seen/pod" in str(error)

    def test_a_turn_may_not_hold_a_stream_version_twice(self, store: Store) -> None:
        first, second = pods(1, 2).entries
        self.refused(store, Append((first, msgspec.structs.replace(second, version=1)), {}), StreamConflict)

    def test_an_older_epoch_is_fenced_out(self, store: Store) -> None:
        store.append(pods(1, 1, epoch=4))
        self.refused(store, pods(2, 1, epoch=3), EpochRefused)
        store.append(pods(2, 1, epoch=4))
        store.append(pods(3, 1, epoch=9))
        assert store.epoch() == 9

    def test_one_old_entry_fences_the_whole_turn(self, store: Store) -> None:
        store.append(pods(1, 1, epoch=4))
        new, old = pods(2, 2, epoch=5).entries
        self.refused(store, Append((new, msgspec.structs.replace(old, epoch=3)), {}), EpochRefused)

    def test_a_second_writer_with_an_older_view_is_refused(self, place: str, store: Store) -> None:
        other = self.open(place, "write")
        other.append(pods(1, 2, epoch=2))
        self.refused(store, pods(1, 1, epoch=2), PositionConflict)
        self.refused(store, pods(3, 1, epoch=1), EpochRefused)
        store.append(pods(3, 1, epoch=3))
        self.refused(other, pods(4, 1, epoch=2), EpochRefused)
        other.close()

    @pytest.mark.parametrize(
        "append",
        [
            Append((), {}),
            Append((), {SHAPE: SHAPE_BYTES}),
            Append(pods(1, 3).entries[::2], {}),
            Append(pods(1, 2).entries[::-1], {}),
            Append((*pods(1, 1).entries, *pods(2, 1).entries), {}),  # two turns in one
            pods(1, 1, blobs={"0" * 32: b"another content"}),
        ],
        ids=["empty", "only blobs", "hole", "order", "two turns", "false digest"],
    )
    def test_a_malformed_turn_is_refused(self, store: Store, append: Append) -> None:
        self.refused(store, append, TurnRefused)

    def test_a_payload_that_is_not_of_its_type_is_refused(self, store: Store) -> None:
        good, bad = pods(1, 2).entries
        wrong = msgspec.structs.replace(bad, payload=OfficeTaken(1, "me"))
        self.refused(store, Append((good, wrong), {}), EntryRefused)

    def test_after_a_refusal_the_right_turn_is_taken(self, store: Store) -> None:
        store.append(pods(1, 2))
        self.refused(store, pods(2, 1), PositionConflict)
        store.append(pods(3, 1))
        assert store.last_position() == 3

    # ── blobs ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_blobs_come_back_equal_small_and_large(self, store: Store) -> None:
        shapes = [PodShape(labels={"app": "x" * size}) for size in (1, 100, 100_000)]
        blobs = dict(content(shape) for shape in shapes)
        store.append(pods(1, 1, blobs=blobs))
        store.append(pods(2, 1, blobs=blobs))  # again: the same content is stored once
        assert {digest: store.blob(digest) for digest in blobs} == blobs

    def test_all_that_is_stored_passes_the_check(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(chained, "ENTRIES_PER_PAGE", 2)
        blobs = dict(content(PodShape(labels={"app": str(number)})) for number in range(5))
        store.append(pods(1, 3, blobs=blobs))
        read, blob = list[str](), store.blob

        def noted(digest: str) -> bytes:
            read.append(digest)
            return blob(digest)

        monkeypatch.setattr(store, "blob", noted)
        store.check()
        assert sorted(read) == sorted(blobs)

    def test_a_blob_that_is_not_there(self, store: Store) -> None:
        with pytest.raises(BlobMissing) as caught:
            store.blob(SHAPE)
        assert SHAPE in str(caught.value)

    def test_blobs_are_stored_with_their_turn_or_not_at_all(self, store: Store) -> None:
        store.append(pods(1, 2))
        self.refused(store, pods(2, 1, blobs={SHAPE: SHAPE_BYTES}), PositionConflict)
        with pytest.raises(BlobMissing):
            store.blob(SHAPE)
        conflict = turn([pod(3)], first=3, blobs={SHAPE: SHAPE_BYTES}).entries[0]
        self.refused(
            store, Append((msgspec.structs.replace(conflict, version=1),), {SHAPE: SHAPE_BYTES}), StreamConflict
        )
        with pytest.raises(BlobMissing):
            store.blob(SHAPE)
        store.append(pods(3, 1, blobs={SHAPE: SHAPE_BYTES}))
        assert store.blob(SHAPE) == SHAPE_BYTES

    # ── snapshots ──────────────────────────────────────────────────────────────────────────────────────────────────

    def test_the_latest_snapshot_at_or_before_a_position(self, store: Store) -> None:
        store.append(pods(1, 9))
        for position in (2, 5, 8):
            store.put_snapshot(position, "s1", b"state %d" % position * 50, f"d{position}")
        found = {until: store.snapshot(until, "s1") for until in (1, 2, 4, 5, 7, 8, 99, None)}
        positions = {until: snapshot and snapshot[0] for until, snapshot in found.items()}
        assert positions == {1: None, 2: 2, 4: 2, 5: 5, 7: 5, 8: 8, 99: 8, None: 8}
        assert found[7] == (5, b"state 5" * 50, "d5")
        assert store.snapshot(None, "s2") is None

    def test_a_snapshot_is_replaced_and_outlives_the_process(self, place: str, store: Store) -> None:
        store.append(pods(1, 1))
        store.put_snapshot(1, "s1", b"old", "d")
        store.put_snapshot(1, "s1", b"new", "e")
        store.close()
        reader = self.open(place, "read")
        assert reader.snapshot(None, "s1") == (1, b"new", "e")
        reader.close()

    def test_snapshots_do_not_fill_the_disk(self, store: Store) -> None:
        """They thin out with their age: the newest stays, and from none to the next is it far for its age."""
        store.append(pods(1, 200))
        for position in range(1, 201):
            store.put_snapshot(position, "s1", b"state", "d")
        kept = sorted({found[0] for at in range(201) if (found := store.snapshot(at, "s1"))})
        assert (len(kept), kept[-1]) == (KEPT_SNAPSHOTS, 200)
        assert all(after - before <= max(2, 201 - before) for before, after in itertools.pairwise(kept))
        store.put_snapshot(200, "s2", b"state", "d")
        assert store.snapshot(None, "s1") is None  # of a schema that nobody reads any more

    def test_no_snapshot_of_what_is_not_stored(self, store: Store) -> None:
        store.append(pods(1, 1))
        with pytest.raises(StoreError):
            store.put_snapshot(2, "s1", b"state", "d")
        assert store.snapshot(None, "s1") is None

    # ── processes ──────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.slow
    def test_two_processes_read_while_one_writes(self, place: str, store: Store) -> None:
        store.append(pods(1, 10))
        readers = [process(READER, place, "400") for _ in range(2)]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "reading\n"
        for first in range(11, 401, 10):
            store.append(pods(first, 10))
        assert [(reader.communicate(timeout=60)[0], reader.returncode) for reader in readers] == [("400\n", 0)] * 2

    @pytest.mark.slow
    def test_what_was_acknowledged_outlives_a_killed_writer(self, place: str) -> None:
        writer = process(WRITER, place)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)]
        writer.kill()
        acknowledged += [int(line) for line in writer.communicate()[0].split("\n")[:-1] if line]
        store = self.open(place, "write")
        last = store.last_position()
        assert last >= acknowledged[-1]
        assert last % 3 == 0  # whole turns only
        assert [entry.position for entry in store.scan()] == list(range(1, last + 1))
        store.append(pods(last + 1, 1))
        store.close()
