"""Fold a record once for all assertions of a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Protocol

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.engine.record.store import Store
from kerf.engine.state.load import PROGRESS_EVERY, Progress, empty
from kerf.projections.figures.evictions import EVICTED, FORCED, EvictionsFold
from kerf.projections.figures.lives import Life, LivesFold
from kerf.projections.figures.usage import UsageFold
from kerf.projections.figures.waits import WaitsFold
from kerf.projections.prose.amounts import moment
from kerf.projections.workload_names import workload_of
from kerf.replay.partial_records import imported_from
from kerf.replay.time_travel.moments import locate
from kerf.replay.time_travel.record_beginning import base_as_entries


class _Fold(Protocol):
    """A read model that folds entries of the types that it `reads`."""

    @property
    def reads(self) -> frozenset[type[Struct]]: ...
    def apply(self, entry: Entry) -> object: ...


class Eviction(Struct, frozen=True):
    """A pod that was made to leave, at a time (ms since the epoch) and position; `about` names pod, node and reason."""

    at: int
    position: int
    about: dict[str, str]
    shape: str


class KnownPod(Struct, frozen=True):
    """A pod of the record: `about` has its name, namespace and workload; `shape` is the digest of its shape."""

    about: dict[str, str]
    shape: str


class Window(Struct, frozen=True):
    """A part of a record, from `since` to `until` (ms since the epoch), both included."""

    since: int
    until: int


class Evidence:
    """What assertions ask of a record."""

    def __init__(self, store: Store, progress: Progress | None = None) -> None:
        """`progress` is told positions while the record is folded."""
        self.store, self.progress = store, progress
        self.imported = imported_from(store)
        self.lives, self.waits = LivesFold(), WaitsFold()
        self.evictions_fold = EvictionsFold(self.lives)
        blobs = empty(store).indexes.blobs
        self._shape = blobs.shape
        self.usage = UsageFold(blobs.shape)
        self.evictions: list[Eviction] = []
        self.pods: dict[str, KnownPod] = {}
        """By namespace/name: also pods that are gone."""
        self._fold()

    def labels(self, shape: str) -> Mapping[str, str]:
        """The labels of pods of a shape."""
        return self._shape(shape).labels

    def position_at(self, at: int) -> int:
        """The position of the latest entry at or before a time of the record."""
        return locate(self.store, moment(at))

    def launched(self) -> Iterator[Life]:
        """The nodes that were there, in the order of their launch."""
        yield from sorted(
            (life for life in self.lives.lives.values() if life.launched), key=lambda life: (life.launched, life.claim)
        )

    def _fold(self) -> None:
        folds: tuple[_Fold, ...] = (self.lives, self.evictions_fold, self.usage, self.waits)
        only = {NAME_OF[read] for fold in folds for read in fold.reads} | {NAME_OF[Decision]}
        last = self.store.last_position()
        entries = self.store.scan(0, last - 1, only), self.store.scan(last - 1, last)
        for entry in chain(base_as_entries(self.store), *entries):
            before = len(self.evictions_fold.measures)
            for fold in folds:
                fold.apply(entry)
            if self.progress is not None and entry.position % PROGRESS_EVERY == 0:
                self.progress(entry.position)
            if isinstance(entry.payload, Pod):
                self._note(entry.payload)
            for measure in self.evictions_fold.measures[before:]:
                if measure.amounts.keys() & {EVICTED, FORCED}:
                    pod = self.pods.get(measure.about["pod"], KnownPod({}, ""))
                    about = {**measure.about, **pod.about}
                    self.evictions.append(Eviction(entry.at, entry.position, about, pod.shape))

    def _note(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        if known is None or known.shape != pod.shape:
            about = {"pod": pod.key, "namespace": pod.namespace, "workload": workload_of(pod).key}
            self.pods[pod.key] = KnownPod(about, pod.shape)
