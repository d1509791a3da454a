"""The draft of one turn: each entry gets its position, stream version and cause, and is folded as it is added."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.nodeclaim.aggregate import ClaimAggregates, NodeClaimAggregate
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES, stream_of
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import State


class TurnDraft:
    """`state` is ahead of the store until the turn is appended. `aggregates` live longer than the draft in the process
    that writes the record; elsewhere each turn restores the ones it needs."""

    def __init__(self, state: State, now: int, aggregates: ClaimAggregates | None = None) -> None:
        self.state = state
        self.aggregates = ClaimAggregates() if aggregates is None else aggregates
        self.now = now
        self.first = state.facts.position + 1
        self.entries: list[Entry] = []
        self.blobs: dict[str, Struct] = {}

    def aggregate(self, claim: NodeClaim) -> NodeClaimAggregate:
        """What decides about the claim's next event and numbers it."""
        return self.aggregates.of(claim)

    def add(
        self, payload: Struct, *, cause: int = 0, blobs: Mapping[str, Struct] | None = None, version: int = 0
    ) -> Entry:
        """Records and folds one payload. `version` is the aggregate's number of a claim event; other streams are
        counted here. Raises TransitionRefused (KERF701)."""
        if blobs:
            for digest, value in blobs.items():
                self.blobs[digest] = value
                self.state.indexes.blobs.offer(digest, value)
        entry = self.made(payload, cause, version)
        evolve(self.state, entry)
        self.entries.append(entry)
        return entry

    def made(self, payload: Struct, cause: int, version: int = 0) -> Entry:
        """The entry that the payload would be now."""
        name, stream, facts = NAME_OF[type(payload)], stream_of(payload), self.state.facts
        return Entry(
            position=facts.position + 1,
            turn=self.first,
            stream=stream,
            version=version or facts.streams.get(stream, 0) + 1,
            type=name,
            schema=TYPES[name].schema,
            at=self.now,
            cause=cause,
            epoch=facts.epoch,
            payload=payload,
        )
