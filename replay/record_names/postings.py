"""Postings: which entries of pods name which pod, node or workload, for some consecutive entries of a record.

A posting is one number: the checksum of a name, and the position of an entry that has it. Two names may have the same
checksum. So whoever looks a name up compares it with what the entries say.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from zlib import crc32

import msgspec
from msgspec import Struct, field

from kerf.engine.model.kinds.watched import POD
from kerf.engine.model.kubernetes.pods import Owner
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.record.observations import ObjectGone
from kerf.engine.state.load import PROGRESS_EVERY
from kerf.projections.workload_names import owner_name

UID, NAME, NODE, WORKLOAD = "uid", "name", "node", "workload"
"""What a pod is looked up by: its uid; its name, its node's, or its workload's or controller's, each without the
namespace."""
MOST_ENTRIES = 1 << 32
"""The entries of one part of a record are numbered in 32 bits."""

_GROUPS = 16
"""Postings are sorted in so many groups, by their checksums: sorting takes five times the memory that they take."""
_GROUP = (1 << 32) // _GROUPS

_SEEN, _GONE = NAME_OF[POD.struct], NAME_OF[ObjectGone]
_SCHEMAS = {name: TYPES[name].schema for name in (_SEEN, _GONE)}
_TYPE_WITHIN = 96
"""The type of an entry of pods begins within so many bytes."""
_MARKS = tuple(msgspec.msgpack.encode(name) for name in (_SEEN, _GONE))
_SEEDS = {what: crc32(what.encode()) for what in (UID, NAME, NODE, WORKLOAD)}
_OF_UID = _SEEDS[UID]
CONTROLLER = "controller"
"""What stands between a pod and its workload, or is the workload: names of it are kept, and found as a workload's."""


class PodTold(Struct, frozen=True, gc=False):
    """What an entry of a pod says of its life: how it was seen, or that it is gone (`kind`, `gone`)."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    shape: str = ""
    phase: str = "Pending"
    node: str = ""
    created: int = 0
    unschedulable: bool = False
    deleting: int = 0
    owner: Owner | None = None
    kind: str = ""
    gone: str = field(default="", name="key")

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodEntry(Entry, array_like=True, frozen=True, gc=False):
    """An entry of a pod, of which no more is decoded than `PodTold` has: a third of the time."""

    payload: PodTold

    @property
    def uid(self) -> str:
        return self.payload.uid or self.payload.gone


_decode = msgspec.msgpack.Decoder(PodEntry).decode
_decode_names = msgspec.msgpack.Decoder(dict[str, list[str]]).decode


class Part(Struct, frozen=True):
    """The postings of the entries with after < position <= until. `named` are those of pods, in order; `others` are the
    entries of anything else, as distances from `after`. `names` are those of pods and of workloads, packed."""

    after: int
    until: int
    named: memoryview
    others: memoryview
    names: bytes

    def names_of(self, what: str) -> list[str]:
        """Return the names (namespace/name) of all pods (NAME), workloads (WORKLOAD) or controllers (CONTROLLER), in
        order."""
        return _decode_names(self.names)[what]

    def positions(self, what: str, name: str) -> list[int]:
        """Return the positions of the entries of pods that may have this name, in order."""
        lowest = _checksum(what, name) << 32
        begin, beyond, base = bisect_left(self.named, lowest), lowest + MOST_ENTRIES, self.after - lowest
        return [base + posting for posting in takewhile(beyond.__gt__, self.named[begin:])]

    def latest_before(self, what: str, name: str, position: int) -> int:
        """Return the position of the latest of these entries before a position, 0 if there is none."""
        lowest = _checksum(what, name) << 32
        beyond = lowest + min(max(0, position - self.after), MOST_ENTRIES)
        index = bisect_left(self.named, beyond) - 1
        return self.after + self.named[index] - lowest if index >= 0 and self.named[index] >= lowest else 0


def part_of(entries: Iterable[tuple[int, bytes]], after: int, until: int, tell: Callable[[int], None]) -> Part:
    """Return the postings of these entries, each with its position. What cannot be read as an entry of a pod is one of
    `others`: whoever reads it is told what is wrong with it. `tell` is told the positions reached."""
    groups, others = [array("Q") for _ in range(_GROUPS)], array("I")
    pods: dict[str, tuple[str, Owner | None]] = {}  # the node and the controller of each pod so far
    names: dict[str, set[str]] = {NAME: set(), WORKLOAD: set(), CONTROLLER: set()}
    for position, encoded in entries:
        distance = position - after
        if distance % PROGRESS_EVERY == 0:
            tell(position)
        entry = pod_entry(encoded)
        if entry is None:
            others.append(distance)
            continue
        pod = entry.payload
        uid = entry.uid
        checksums = [crc32(uid.encode(), _OF_UID)]
        if entry.type == _SEEN and pods.get(uid) != (now := (pod.node, pod.owner)):
            pods[uid] = now
            checksums += [_checksum(what, name) for what, name in _names(pod)]
            _note_names(pod, names)
        for checksum in checksums:
            groups[checksum // _GROUP].append(checksum << 32 | distance)
    named = array("Q")
    for group in groups:
        named.fromlist(sorted(group))
    packed = msgspec.msgpack.encode({what: sorted(found) for what, found in names.items()})
    return Part(after, until, memoryview(named), memoryview(others), packed)


def _note_names(pod: PodTold, names: dict[str, set[str]]) -> None:
    names[NAME].add(pod.key)
    if pod.owner is not None:
        names[WORKLOAD].add(owner_name(pod.namespace, pod.owner).key)
        names[CONTROLLER].add(f"{pod.namespace}/{pod.owner.name}")


def pod_entry(encoded: bytes) -> PodEntry | None:
    """Return an entry as one of a pod; None if it is none, or not of the current schema."""
    if encoded.find(_MARKS[0], 0, _TYPE_WITHIN) < 0 and encoded.find(_MARKS[1], 0, _TYPE_WITHIN) < 0:
        return None
    try:
        entry = _decode(encoded)
    except UNDECODABLE:
        return None
    if _SCHEMAS.get(entry.type) != entry.schema or (entry.type == _GONE and entry.payload.kind != POD.name):
        return None
    return entry


def _names(pod: PodTold) -> Iterator[tuple[str, str]]:
    """Give what a pod is found by, besides its uid."""
    yield NAME, bare(pod.name)
    if pod.node:
        yield NODE, pod.node
    if pod.owner is not None:
        yield WORKLOAD, bare(pod.owner.name)
        yield WORKLOAD, bare(owner_name(pod.namespace, pod.owner).name)


def has_name(pod: PodTold, what: str, name: str) -> bool:
    """Return whether a pod is found by a name."""
    return (what, name) in _names(pod)


def _checksum(what: str, name: str) -> int:
    return crc32(name.encode(), _SEEDS[what])


def bare(name: str) -> str:
    """Return a name without its namespace, or what else stands before it."""
    return name.rpartition("/")[2]
