"""The entries of a record up to a position: those of some pods, and those of anything else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.codec import CODEC, Codec
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.replay.record_names.postings import UID, Part, PodEntry, has_name, pod_entry

MOST_KEPT = 150_000
"""What so many entries of anything but pods tell is kept for the next question; more are decoded again."""
MOST_WORKED_OUT = 40
"""So many things that were worked out of the entries are kept for the next question."""
MOST_BYTES = 16 << 20
"""So much of what was read lately is kept: a story reads the same pods several times, and so does the next one."""
Worked = TypeVar("Worked")


class Entries(Protocol):
    """What an index needs of a store."""

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries kept from before the base."""
        ...

    def encoded_at(self, positions: Sequence[int]) -> Iterator[bytes]:
        """Yields the entries at these ascending positions. Raises `RecordCorrupt` for one that was changed."""
        ...


class _Lately:
    """What was read lately, by position, as it is stored."""

    def __init__(self) -> None:
        self._read: dict[int, bytes] = {}
        self._size = 0

    def read(self, positions: Sequence[int], entries: Entries) -> Iterator[bytes]:
        """Give the entries at these ascending positions. Those that are known are not read again."""
        known = {position: self._read[position] for position in positions if position in self._read}
        new = entries.encoded_at([position for position in positions if position not in known])
        for position in positions:
            encoded = known.get(position)
            if encoded is None:
                encoded = next(new)
                self._keep(position, encoded)
            yield encoded

    def _keep(self, position: int, encoded: bytes) -> None:
        self._size += len(encoded) - len(self._read.get(position, b""))
        self._read[position] = encoded
        while self._size > MOST_BYTES:
            self._size -= len(self._read.pop(next(iter(self._read))))


class NamedEntries:
    """Finds entries up to `until` by what they name. `parts` are the postings of all entries after the record's base,
    which is at `after`."""

    def __init__(self, entries: Entries, parts: Sequence[Part], until: int, codec: Codec = CODEC) -> None:
        self.after = parts[0].after
        self._entries, self.parts, self.until, self._codec = entries, parts, until, codec
        self._kept: dict[Hashable, Any] = {}
        self._folds: dict[str, Any] = {}
        self._lately = _Lately()
        self.whole: NamedEntries = self
        """What finds the most entries of those that `up_to` gave one another."""

    def up_to(self, until: int) -> NamedEntries:
        """Return what finds the entries up to another position."""
        found = NamedEntries(self._entries, self.parts, until, self._codec)
        if until <= self.whole.until:
            found._kept, found._folds, found.whole = self._kept, self._folds, self.whole
            found._lately = self._lately
        return found

    def kept(self, what: Hashable, work: Callable[[], Worked]) -> Worked:
        """Return what `work` gives, which `what` tells from all else that is worked out of this record. It is kept for
        the next question: the past does not change. What was not asked for longest is forgotten."""
        found: Worked = self._kept.pop(what) if what in self._kept else work()
        self._kept[what] = found
        while len(self._kept) > MOST_WORKED_OUT:
            del self._kept[next(iter(self._kept))]
        return found

    def folded(self, what: str, work: Callable[[], Worked]) -> Worked:
        """Return what `work` makes of all entries that are of no pod. It is kept, and they are not."""
        if what not in self._folds:
            self._folds[what] = work()
        found: Worked = self._folds[what]
        return found

    def worked_out_here(self, what: str, work: Callable[[], Worked]) -> Worked:
        """Return what `work` makes of the entries up to `until`. It is kept until another position is asked about:
        several questions are asked about one."""
        known = self._folds.get(what)
        if known is None or known[0] != self.until:
            known = self._folds[what] = self.until, work()
        found: Worked = known[1]
        return found

    def read_from(self, entries: Entries) -> NamedEntries:
        """Return the same of the same record, which is opened once more as `entries`."""
        found = NamedEntries(entries, self.parts, self.until, self._codec)
        found._kept, found._folds = self._kept, self._folds
        return found

    def names(self, what: str) -> set[str]:
        """Return the names (namespace/name) of all pods (NAME), workloads (WORKLOAD) or controllers (CONTROLLER) of the
        record, but for those that it begins with. Some may come up after `until` alone."""
        return {name for part in self.parts for name in part.names_of(what)}

    def uids(self, what: str, name: str) -> set[str]:
        """Return the pods that have had a name (see `postings`), if only for a while."""
        found = self._told(self._positions(what, [name]))
        return {entry.uid for entry in found if has_name(entry.payload, what, name)}

    def entries(self, uids: Collection[str]) -> Iterator[Entry]:
        """Give all entries of some pods, in order."""
        for entry in self._of_pods(self._positions(UID, uids)):
            if uid_of(entry) in uids:
                yield entry

    def told(self, uids: Collection[str]) -> Iterator[PodEntry]:
        """As `entries`, of which no more is decoded than a pod's life needs."""
        return (entry for entry in self._told(self._positions(UID, uids)) if entry.uid in uids)

    def keys_at(self, uids: Collection[str], position: int) -> dict[str, str]:
        """Return the names (namespace/name) of those of these pods that are there before a position. Their latest
        entries alone are read."""
        found: dict[str, str] = {}
        before = dict.fromkeys(uids, min(position, self.until + 1))
        while latest := {uid: at for uid, until in before.items() if (at := self._latest_before(uid, until))}:
            entries = {entry.position: entry for entry in self._told(sorted(set(latest.values())))}
            found.update(
                (uid, entries[at].payload.key)
                for uid, at in latest.items()
                if entries[at].uid == uid and entries[at].payload.uid
            )
            before = {uid: at for uid, at in latest.items() if entries[at].uid != uid}  # another of the same checksum
        return found

    def _latest_before(self, uid: str, position: int) -> int:
        """Return the latest entry before a position that may be of a pod, 0 for none."""
        return next((at for part in reversed(self.parts) if (at := part.latest_before(UID, uid, position))), 0)

    def uid_at(self, position: int) -> str:
        """Return which pod the entry at a position is of, "" for none."""
        found = self._decoded([position] if self.after < position <= self.until else [])
        return next((uid_of(entry) for entry in found), "")

    def others(self, only: Collection[str] | None = None) -> Iterable[Entry]:
        """Give all entries that are of no pod, in order, those kept from before the base first; `only` those of some
        types, if they are given (see `Store.scan`)."""
        positions = [
            part.after + distance
            for part in self.parts
            for distance in part.others
            if part.after + distance <= self.until
        ]
        return chain(self._codec.decode_all(self._entries.history(0, self.until), only), self._decoded(positions, only))

    @property
    def keeps(self) -> bool:
        """Whether entries of no pod are few enough for what they tell to be kept."""
        return sum(len(part.others) for part in self.parts) <= MOST_KEPT

    def _positions(self, what: str, names: Iterable[str]) -> list[int]:
        found = {position for part in self.parts for name in names for position in part.positions(what, name)}
        return sorted(position for position in found if position <= self.until)

    def _of_pods(self, positions: Sequence[int]) -> Iterator[Entry]:
        return self._codec.decode_all(self._lately.read(positions, self._entries))

    def _told(self, positions: Sequence[int]) -> Iterator[PodEntry]:
        return filter(None, map(pod_entry, self._lately.read(positions, self._entries)))

    def _decoded(self, positions: Sequence[int], only: Collection[str] | None = None) -> Iterator[Entry]:
        return self._codec.decode_all(self._entries.encoded_at(positions), only)


def uid_of(entry: Entry) -> str:
    """Return which pod an entry is of, "" for none."""
    payload = entry.payload
    if isinstance(payload, Pod):
        return payload.uid
    return payload.key if isinstance(payload, ObjectGone) and payload.kind == "pod" else ""
