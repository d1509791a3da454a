"""One turn in the making: entries get their position, stream version and cause, and are folded as they are added."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES, stream_of
from kerf.engine.state.evolve import evolve
from kerf.engine.state.state import State


class Draft:
    """`state` is ahead of the store until the turn is appended."""

    def __init__(self, state: State, now: int) -> None:
        self.state = state
        self.now = now
        self.first = state.facts.position + 1
        self.entries: list[Entry] = []
        self.blobs: dict[str, Struct] = {}

    def add(self, payload: Struct, *, cause: int = 0, blobs: Mapping[str, Struct] | None = None) -> Entry:
        """Records and folds one payload. Raises TransitionRefused (KERF701)."""
        if blobs:
            for digest, value in blobs.items():
                self.blobs[digest] = value
                self.state.ix.blobs.offer(digest, value)
        entry = self.made(payload, cause)
        evolve(self.state, entry)
        self.entries.append(entry)
        return entry

    def made(self, payload: Struct, cause: int) -> Entry:
        """The entry that the payload would be now."""
        name, stream, facts = NAME_OF[type(payload)], stream_of(payload), self.state.facts
        return Entry(
            position=facts.position + 1,
            turn=self.first,
            stream=stream,
            version=facts.streams.get(stream, 0) + 1,
            type=name,
            schema=TYPES[name].schema,
            at=self.now,
            cause=cause,
            epoch=facts.epoch,
            payload=payload,
        )
