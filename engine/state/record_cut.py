"""How the fold takes that the record was cut: what the state holds only for entries that are gone goes as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import RecordCut
from kerf.engine.state.state import State


def _cut(state: State, cut: RecordCut, entry: Entry) -> None:
    """The stream of a claim that is over is known until the store has none of its entries any more: kerf tells its own
    old NodeClaim objects by it. Else there would be one for every claim that ever lived."""
    facts = state.facts
    facts.cut = entry.position
    for name in [name for name, position in facts.over.items() if position <= cut.removed]:
        del facts.over[name]
        if name not in facts.claims:
            facts.streams.pop(f"nodeclaim/{name}", None)


CUT_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {RecordCut: _cut}
