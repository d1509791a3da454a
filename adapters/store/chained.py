"""The part that both databases share: checks turns before they are stored, and checks the hash chain in every scan.

A damaged record is readable up to the damage, and the error says where that is. A subclass says how rows are read and
written; see `ChainedStore`'s abstract methods.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Literal

import msgspec
from eventsourcing.persistence import StoredEvent

from kerf.adapters.store import chosen_entries
from kerf.adapters.store.compression import Unpackable, digest_of, pack, unpack
from kerf.adapters.store.read_only import started_as
from kerf.adapters.store.record_head import FORMAT, SALVAGE, Head, checked_head, damage, snapshot_seal
from kerf.adapters.store.retention import cut_tables
from kerf.adapters.store.retention.cut_tables import Cut
from kerf.adapters.store.snapshots import Snapshot, SnapshotGiver
from kerf.adapters.store.transaction import Session
from kerf.engine.record.base import Base, KeptHistory
from kerf.engine.record.codec import Codec
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import (
    BlobCorrupt,
    BlobMissing,
    FormatUnsupported,
    RecordCorrupt,
    RecordShortened,
    StoreError,
    StoreReadOnly,
    StreamConflict,
    TurnRefused,
)
from kerf.engine.record.hash_chain import START, Checkpoint, link
from kerf.engine.record.store import Append

Mode = Literal["create", "write", "read"]
ENTRIES_PER_PAGE, BYTES_PER_PAGE = 4096, 64 << 20  # at most, per read transaction of a scan
KEPT_SNAPSHOTS, WIDEST_GAP = 16, 100_000
"""How many snapshots of the state's schema are kept. One more, and the one whose loss leaves the smallest gap is
dropped, if no more entries than in the widest gap lie between its neighbours.
"""

_BLOBS = "SELECT digest FROM blobs WHERE digest > ? ORDER BY digest LIMIT ?"

ChainRow = tuple[int, bytes, bytes]
"""Position, encoded entry, chain value."""
SnapshotRow = tuple[int, str, str, int, int, bytes]
"""Position, digest, seal, way of packing, size, packed state."""


class ChainedStore(SnapshotGiver):
    """`kerf.engine.record.store.Store` on a database. `place` names it in errors."""

    mode: Mode
    place: str
    _codec: Codec

    # ── what a database does ───────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def head(self) -> Head:
        """Format, record id, last position, chain value and epoch, as stored now. Raises `RecordCorrupt`."""

    @abstractmethod
    def _store(
        self,
        events: Sequence[StoredEvent],
        blobs: Sequence[tuple[str, bytes]],
        *,
        first: int,
        epochs: tuple[int, int],
        record_id: str,
    ) -> None:
        """Stores events, blobs and the new head in one transaction, after checking the old head in it
        (`head.follow`).
        """

    @abstractmethod
    def _rows(self, after: int, until: int) -> tuple[list[ChainRow], Exception | None]:
        """Returns a page of rows, as far as they can be read, and the error that stopped the reading.

        A page may end early: once it has BYTES_PER_PAGE.
        """

    @abstractmethod
    def _chain_value(self, position: int) -> bytes | None:
        """Returns the stored chain value after a position."""

    @abstractmethod
    def _position_of(self, stream: str, version: int) -> int | None: ...

    @abstractmethod
    def _blob_row(self, digest: str) -> Sequence[Any] | None:
        """Way of packing, size, packed content."""

    @abstractmethod
    def _snapshot_rows(self, until: int | None, schema: str) -> Iterator[SnapshotRow]:
        """Snapshots of a schema up to a position, the latest first."""

    @abstractmethod
    def _keep_snapshot(self, schema: str, row: SnapshotRow) -> None:
        """Stores a snapshot, and drops those of other schemas and those that `crowded` names, in one transaction."""

    @abstractmethod
    def session(self, *, commit: bool = False) -> AbstractContextManager[Session]:
        """Opens a transaction. One that commits locks other writers out, so it must be short."""

    @abstractmethod
    def _has_cut(self, session: Session) -> bool:
        """Returns whether the tables of a cut exist. A record of an older kerf gets them with its first cut."""

    @abstractmethod
    def size(self, entries: int) -> int:
        """Returns how many bytes the record takes, without its unused room; `entries` is the approximate size of its
        entries.
        """

    @abstractmethod
    def give_back(self) -> Iterator[None]:
        """Returns unused room to the file system, in steps, if the store has to do this itself."""

    # ── the port Store ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def record_id(self) -> str:
        """Returns the id that `RecordStarted` gave the record; empty before that entry."""
        head, broken_head = self._head_or_damage()
        if broken_head is None:
            return head.id
        base = self.base()
        if base is not None:
            return str(msgspec.msgpack.decode(base.state).get("record", ""))
        return next((started_as(entry) for entry in self.scan(until=1)), "")

    def append(self, turn: Append) -> None:
        """Stores a turn as `Store.append` does. Versions of a stream are unique; positions continue from the end
        without gaps.
        """
        self.must_write()
        events = self._events(turn)
        blobs = sorted(turn.blobs.items())
        for digest, content in blobs:
            if digest_of(content) != digest:
                raise TurnRefused(f"the blob {digest!r} has another content", position=turn.entries[0].position)
        first = turn.entries[0]
        epochs = [entry.epoch for entry in turn.entries]
        bounds = (min(epochs), max(epochs))
        try:
            self._store(events, blobs, first=first.position, epochs=bounds, record_id=started_as(first))
        except StreamConflict as conflict:
            raise (self._taken(turn) or conflict) from conflict

    def must_write(self) -> None:
        if self.mode == "read":
            raise StoreReadOnly("the record was opened for reading", where=self.place)

    def _events(self, turn: Append) -> list[StoredEvent]:
        """Converts the turn to the recorder's events. Raises `TurnRefused`."""
        if not turn.entries:
            raise TurnRefused("the turn has no entries", hint="A turn in which nothing happened is not appended")
        first = turn.entries[0].position
        for position, entry in enumerate(turn.entries, first):
            if entry.position != position or entry.turn != first:
                raise TurnRefused(
                    f"entry {position - first + 1} of the turn that begins at {first} has position {entry.position} "
                    f"and turn {entry.turn}",
                    position=first,
                )
        encode = self._codec.encode
        return [
            StoredEvent(
                originator_id=entry.stream, originator_version=entry.version, topic=entry.type, state=encode(entry)
            )
            for entry in turn.entries
        ]

    def _taken(self, turn: Append) -> StreamConflict | None:
        """Returns the error for the first version of a stream that is stored already; None if the turn itself has one
        twice.
        """
        for entry in turn.entries:
            position = self._position_of(entry.stream, entry.version)
            if position is not None:
                return StreamConflict(
                    f"version {entry.version} of stream {entry.stream!r} is at position {position} already",
                    position=entry.position,
                    hint="Read the stream again, and decide again",
                )
        return None

    def scan(self, after: int = 0, until: int | None = None, only: Collection[str] | None = None) -> Iterator[Entry]:
        """Yields entries as `Store.scan` does, up to the record's end at the time of the first entry.

        Raises `RecordCorrupt` at the first damaged position, after yielding all entries before it.
        """
        yield from self._codec.decode_all(self.history(after, until), only)
        yield from self._codec.decode_all(self.encoded(after, until), only)

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the bytes of the entries kept from before the base, checked against their own chain."""
        return (encoded for _, encoded, _ in cut_tables.history(self, after, until))

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the bytes of the entries from the base on, checked against the chain.

        If the head is damaged, all readable entries come before the error.
        """
        head, broken_head = self._head_or_damage()
        cut = self.cut()
        end = head.position if until is None else min(until, head.position)
        position = max(after, cut.base)
        value = self._chain_at(position, head, cut) if position < end else b""
        while position < end:
            page_end = min(position + ENTRIES_PER_PAGE, end)
            rows, fault = self._rows(position, page_end)
            for at, encoded, stored in rows:
                position += 1
                value = link(value, encoded)
                if at != position or stored != value:
                    if at > position and self.cut().base >= position:
                        raise _cut_meanwhile(position)
                    raise damage(position, "the entry is missing" if at > position else "the entry was changed")
                yield encoded
            if position < page_end and (fault is not None or not rows):
                if self.cut().base > position:
                    raise _cut_meanwhile(position)
                raise damage(position + 1, str(fault or broken_head or "the entry is missing")) from fault
        if end == head.position and end > after and value != head.chain:
            raise damage(end, "the end is not the one that the head names")

    def encoded_at(self, positions: Sequence[int]) -> Iterator[bytes]:
        """See `chosen_entries.encoded_at`."""
        return chosen_entries.encoded_at(self, positions)

    def seal(self, position: int) -> str:
        """Returns what only a record with the same entries up to `position` has: the chain's value there, as stored."""
        return self._chain_at(position, self.head(), self.cut()).hex()

    def _head_or_damage(self) -> tuple[Head, RecordCorrupt | None]:
        """Returns the head and None. If the head is damaged: one with an end that is never reached, and the error."""
        try:
            return self.head(), None
        except RecordCorrupt as error:
            return Head(FORMAT, "", sys.maxsize, b"", 0), error

    def _chain_at(self, position: int, head: Head, cut: Cut) -> bytes:
        """Returns the chain's value after the entry at `position`. Raises `RecordCorrupt`; before the base
        `RecordShortened`.
        """
        if position == START.position and not cut.base:
            return START.value
        if position < cut.base:
            raise RecordShortened("the record was cut", position=position, hint=f"It begins after {cut.base}")
        value = cut.chain if position == cut.base else self._chain_value(position)
        if value is None or (position == head.position and value != head.chain):
            raise damage(position, "the entry is missing" if value is None else "the head names another chain value")
        return value

    def checkpoint(self, position: int | None = None) -> Checkpoint:
        """Returns the chain's value after `position`, or at the end of the record if that comes before."""
        head, _ = self._head_or_damage()
        at = head.position if position is None else min(position, head.position)
        return Checkpoint(at, self._chain_at(at, head, self.cut()))

    def first_position(self) -> int:
        """Returns the first position that can be decided again."""
        return self.cut().base + 1

    def cut(self) -> Cut:
        """Returns how far the record is cut. Raises `RecordCorrupt`."""
        with self.session() as session:
            return cut_tables.read_cut(session) if self._has_cut(session) else cut_tables.NONE

    def base(self) -> Base | None:
        """As `Store.base`. Raises `RecordCorrupt`."""
        cut = self.cut()
        if not cut.base:
            return None
        with self.session() as session:
            base = cut_tables.read_base(session, cut.base)
        if base.chain != cut.chain:
            raise damage(cut.base, "the state that it begins with is not the one that the cut names")
        return base

    def kept(self) -> KeptHistory | None:
        """As `Store.kept`. Raises `RecordCorrupt`."""
        return cut_tables.kept(self)

    def read_head(self, session: Session) -> Head:
        """Reads the head within a transaction. Raises `RecordCorrupt`."""
        rows = session.run("SELECT format, id, position, chain, epoch, seal FROM record LIMIT 1")
        return checked_head(rows[0] if rows else ())

    def last_position(self) -> int:
        return self.head().position

    def epoch(self) -> int:
        return self.head().epoch

    def blob(self, digest: str) -> bytes:
        """As `Store.blob`. Raises `BlobMissing` or `BlobCorrupt`."""
        row = self._blob_row(digest)
        if row is None:
            raise BlobMissing(f"no blob {digest!r} is stored", where=self.place, hint=SALVAGE)
        try:
            content = unpack(*row)
        except (Unpackable, TypeError) as error:
            raise BlobCorrupt(f"the blob {digest} is damaged: {error}", where=self.place, hint=SALVAGE) from error
        if digest_of(content) != digest:
            raise BlobCorrupt(f"the blob {digest} was changed", where=self.place, hint=SALVAGE)
        return content

    def check(self) -> None:
        """As `Store.check`. Raises `RecordCorrupt` or `BlobCorrupt`."""
        for position, encoded in enumerate(self.encoded(), self.first_position()):
            if self._codec.position_of(encoded) != position:
                raise damage(position, "the entry names another position")
        self.head()
        last = ""
        while True:
            with self.session() as session:
                rows = session.run(_BLOBS, last, ENTRIES_PER_PAGE)
            for (digest,) in rows:
                self.blob(digest)
                last = digest
            if len(rows) < ENTRIES_PER_PAGE:
                return

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        """Keeps a snapshot as `Store.put_snapshot` does.

        Drops the snapshots of other schemas, and those beyond `KEPT_SNAPSHOTS` of this schema.
        """
        self.must_write()
        if position > self.last_position():
            raise StoreError("a snapshot beyond the end of the record", position=position)
        how, packed = pack(state)
        seal = snapshot_seal(schema, position, digest, state)
        self._keep_snapshot(schema, (position, digest, seal, how, len(state), packed))

    def kept_snapshot(self, until: int | None, schema: str, after: int = 0) -> Snapshot | None:
        """Skips damaged ones, since a snapshot is only a cache."""
        with suppress(RecordCorrupt):
            for position, digest, seal, how, size, packed in self._snapshot_rows(until, schema):
                if position <= after:
                    return None
                with suppress(Unpackable, TypeError):
                    state = unpack(how, size, packed)
                    if snapshot_seal(schema, position, digest, state) == seal:
                        return position, state, digest
        return None

    def snapshots(self, schema: str) -> dict[int, str]:
        """Returns what `Store.snapshots` does."""
        statement = "SELECT position, digest FROM snapshots WHERE schema = ? ORDER BY position"
        with self.session() as session:
            return dict(session.run(statement, schema))

    @abstractmethod
    def close(self) -> None:
        """Safe to call twice."""

    def _check_format(self, stored: object) -> None:
        """Raises `FormatUnsupported` for a format of a newer kerf."""
        if isinstance(stored, int) and stored > FORMAT:
            raise FormatUnsupported(
                f"the record has format {stored}, this version of kerf knows {FORMAT}",
                where=self.place,
                hint="Use a newer version of kerf",
            )


def crowded(positions: Iterable[int], most: int = KEPT_SNAPSHOTS) -> list[int]:
    """Returns which snapshots to drop so that at most `most` stay, or more where they would be too far apart. The
    newest always stays; older ones are further apart.

    The cost of a snapshot is the gap that its loss would leave, divided by its distance from the end. So gaps grow with
    age, and the entries to fold for any state are a bounded share of its age.
    """
    kept, dropped = sorted(positions), []
    while len(kept) > most:
        end = kept[-1]
        gaps = [(kept[at + 1] - (kept[at - 1] if at else 0), at) for at in range(len(kept) - 1)]
        costs = [(gap / (end - kept[at] + 1), at) for gap, at in gaps if gap <= WIDEST_GAP]
        if not costs:
            break
        dropped.append(kept.pop(min(costs)[1]))
    return sorted(dropped)


def _cut_meanwhile(position: int) -> RecordShortened:
    return RecordShortened(
        "the record was cut while it was read", position=position, hint="Run the command again: it begins later now"
    )
