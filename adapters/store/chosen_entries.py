"""Reads single entries of a record in a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kerf.adapters.store.record_head import damage
from kerf.adapters.store.retention.cut_tables import Cut
from kerf.adapters.store.transaction import Session
from kerf.engine.record.hash_chain import START, link

_PER_QUESTION = 400


class Chained(Protocol):
    """The part of a store that these need."""

    def session(self) -> AbstractContextManager[Session]: ...
    def cut(self) -> Cut: ...


def encoded_at(store: Chained, positions: Sequence[int]) -> Iterator[bytes]:
    """Yields the bytes of the entries at these ascending positions after the base, each checked against the chain's
    value before it. Raises `RecordCorrupt`.
    """
    for begin in range(0, len(positions), _PER_QUESTION):
        asked = positions[begin : begin + _PER_QUESTION]
        needed = sorted({near for position in asked for near in (position - 1, position)})
        marks = ", ".join("?" * len(needed))
        with store.session() as session:
            rows = session.run(
                "SELECT {position}, CAST(state AS {blob}), CAST(chain AS {blob}) FROM stored_events "
                f"WHERE {{position}} IN ({marks})",
                *needed,
            )
        found: dict[int, tuple[Any, ...]] = {row[0]: row for row in rows}
        cut = store.cut()
        values = {START.position: START.value, cut.base: cut.chain}
        for position in asked:
            _, encoded, stored = found.get(position, (0, None, None))
            before = values.get(position - 1) or found.get(position - 1, (0, b"", None))[2]
            if encoded is None or before is None:
                raise damage(position, "the entry is missing")
            if link(bytes(before), bytes(encoded)) != stored:
                raise damage(position, "the entry was changed")
            yield bytes(encoded)
