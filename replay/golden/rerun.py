"""Make a record anew from its observations with today's engine, as `--golden-update` does.

Decisions may come to stand at other positions, and claims take their names from positions. The answers of cloud and
cluster name both. So each answer is handed on to the decision and the claim that stand in the place of the old ones. An
answer to something that is no longer asked for is dropped and counted; then the case has to be simulated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kerf.engine.nodeclaim.effect_keys import effect_key
from kerf.engine.record.base import Base
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision, Intent, LaunchInstance
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.hash_chain import START, Checkpoint, extend
from kerf.engine.record.observations import EffectAnswered, LaunchAnswered
from kerf.engine.record.store import Store
from kerf.engine.runtime.react import react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.load import empty
from kerf.replay.errors import BeginningMissing, ReplayError
from kerf.replay.verify.decide_again import is_observed
from kerf.replay.verify.verifier import turns


class Rerun:
    """The new record, readable as a store. `dropped` are the positions of dropped answers in the old record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._encoded: list[bytes] = []
        self._names: dict[str, str] = {}  # old claim or "position.index" → new
        self.dropped: list[int] = []
        if store.base() is not None:
            raise BeginningMissing(
                "a record that does not begin at position 1 cannot be run again",
                hint="Use the whole record, or simulate the case again",
            )
        self._state = empty(store)
        for turn in turns(store.scan()):
            self._turn(turn)

    @property
    def record_id(self) -> str:
        return self._state.facts.record

    def first_position(self) -> int:
        return 1

    def last_position(self) -> int:
        return len(self._encoded)

    def base(self) -> Base | None:
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(())

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(self._encoded[after:until])

    def checkpoint(self, position: int) -> Checkpoint:
        return extend(START, self._encoded[:position])

    def blob(self, digest: str) -> bytes:
        return self._store.blob(digest)

    def _turn(self, turn: Sequence[Entry]) -> None:
        self._state.facts.epoch = turn[0].epoch
        draft = TurnDraft(self._state, turn[0].at)
        for entry in turn:
            if isinstance(entry.payload, UnknownEntry):
                raise ReplayError(
                    f"an entry of type {entry.type!r} cannot be run again",
                    code="KERF205",
                    where=f"position {entry.position}",
                    hint="Use the version of kerf that knows it",
                )
            if is_observed(entry):
                self._observe(draft, entry)
        react(draft)
        self._encoded.extend(CODEC.encode(entry) for entry in draft.entries)
        self._pair(_intents(turn), _intents(draft.entries))

    def _observe(self, draft: TurnDraft, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, LaunchAnswered | EffectAnswered) and payload.intent not in self._names:
            self.dropped.append(entry.position)
            return
        if any(old != new for old, new in self._names.items()):
            payload = msgspec.convert(self._renamed(msgspec.to_builtins(payload)), type(payload))
        draft.add(payload)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._names.get(value, value)
        if isinstance(value, dict):
            return {key: self._renamed(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._renamed(part) for part in value]
        return value

    def _pair(self, old: list[tuple[str, Intent]], new: list[tuple[str, Intent]]) -> None:
        """Match old and new intents: launches by their order, all others by claim and effect."""
        launches = [(ref, intent) for ref, intent in new if isinstance(intent, LaunchInstance) and not intent.again]
        for ref, order in old:
            if isinstance(order, LaunchInstance) and not order.again and launches:
                new_ref, now = launches.pop(0)
                self._names[order.claim], self._names[ref] = now.claim, new_ref
        effects = {(intent.claim, effect_key(intent)): ref for ref, intent in new}
        for ref, order in old:
            match = effects.get((self._names.get(order.claim, order.claim), effect_key(order)))
            if match is not None:
                self._names.setdefault(ref, match)


def _intents(entries: Sequence[Entry]) -> list[tuple[str, Intent]]:
    return [
        (f"{entry.position}.{index}", intent)
        for entry in entries
        if isinstance(entry.payload, Decision)
        for index, intent in enumerate(entry.payload.intents)
    ]
