"""What the engine asks of the outside, as Protocols. Adapters implement them; the engine never imports an adapter.

All calls are synchronous; a driver decides where they run (virtual time, threads). A call that fails raises a
`KerfError`; an answer that a decision will rest on comes back as an observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from kerf.engine.record.base import Base, Kept
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InstanceSeen, LaunchAnswered, Observation, TaggedInstance


class Cloud(Protocol):
    """Launches and ends instances. `token` is the idempotency key of the effect, `intent` its "position.index"."""

    def observe(self) -> list[Observation]:
        """NodeClasses (resolved, with their readiness) and catalogues as they are now."""
        ...

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        """One instance for one claim, tagged `karpenter.sh/nodeclaim`. The same token never starts a second one."""
        ...

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        """The instance that an earlier launch of this claim started, looked up by its tag; None if there is none."""
        ...

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        """Begin to end an instance. One that is already gone is a success."""
        ...

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        """The state of each; "gone" for those the cloud no longer knows."""
        ...

    def listing(self) -> list[TaggedInstance] | None:
        """All instances tagged as this cluster's that have not begun to end (A-327); None where nothing is swept
        (L-238)."""
        ...


class Interruptions(Protocol):
    def poll(self) -> list[Observation]:
        """Messages since the last call, as `InterruptionSeen` or (garbage) `InputRefused`. They stay in the queue
        until `acknowledge`, so that none is lost when the append fails."""
        ...

    def acknowledge(self) -> None:
        """The last polled messages are recorded: delete them from the queue."""
        ...


class Cluster(Protocol):
    """Writes to the Kubernetes API. Reads arrive as observations from the watch."""

    def register(self, order: RegisterNode, *, intent: str) -> EffectAnswered: ...
    def initialize(self, order: InitializeNode, *, intent: str) -> EffectAnswered: ...
    def taint(self, order: TaintNode, *, intent: str) -> EffectAnswered: ...
    def untaint(self, order: UntaintNode, *, intent: str) -> EffectAnswered: ...
    def evict(self, order: EvictPod, *, intent: str) -> EffectAnswered: ...
    def delete_pod(self, order: DeletePod, *, intent: str) -> EffectAnswered: ...
    def delete_node(self, order: DeleteNode, *, intent: str) -> EffectAnswered: ...


class Append(Struct, frozen=True):
    """One turn, ready to be stored: entries in order (positions assigned) and the encoded blobs they name."""

    entries: tuple[Entry, ...]
    blobs: dict[str, bytes]


class Store(Protocol):
    """The record's storage. Its contract is tests/contract/store_contract.py."""

    def append(self, turn: Append) -> None:
        """All or nothing, durable on return.

        Raises `StoreError` (KERF1xx): conflict of position or stream version, an epoch older than the stored one, disk
        full, locked. After an error nothing of the turn is stored.
        """
        ...

    def scan(self, after: int = 0, until: int | None = None) -> Iterator[Entry]:
        """Entries with after < position <= until, in order, decoded. Up to the base these are only what is kept."""
        ...

    def base(self) -> Base | None:
        """The state that the record begins with, where it does not begin at position 1."""
        ...

    def kept(self) -> Kept | None:
        """What is kept of the time before the base of a record that was cut; None for any other, and for a copy."""
        ...

    def blob(self, digest: str) -> bytes:
        """The content of a blob. Raises `StoreError` if it is not there."""
        ...

    def last_position(self) -> int: ...

    def epoch(self) -> int: ...

    def put_snapshot(self, position: int, schema: str, state: bytes, digest: str) -> None:
        """Keep a snapshot (a cache, never the truth)."""
        ...

    def snapshot(self, until: int | None, schema: str) -> tuple[int, bytes, str] | None:
        """The latest snapshot of this schema at or before `until`: position, state, digest."""
        ...

    def close(self) -> None: ...
