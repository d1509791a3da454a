"""Records made by the real runtime in the hand-made world, and ways to tamper with them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import OBSERVATIONS
from kerf.engine.record.observations import (
    EffectAnswered,
    LaunchAnswered,
    ObjectGone,
    Observation,
)
from kerf.engine.record.store import Append, Store
from kerf.engine.runtime.react import react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.load import beginning, empty
from kerf.replay.verify.decide_again import decide_again
from kerf.replay.verify.verifier import turns
from tests.support.memory import MemoryStore
from tests.support.world import World

UNREGISTERED = Taint("karpenter.sh/unregistered", "NoExecute")
DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
PROVIDER_ID = "aws:///us-west-2a/i-1"


def whole_life(world: World | None = None) -> World:
    """Five pods get a node, run, end; the node goes again. Some time passes between the steps."""
    world = five_pods_run(world)
    world.now += 3_600_000
    return leave(world)


def five_pods_run(world: World | None = None) -> World:
    """Five pods get a node and run there."""
    world = world if world is not None else World()
    world.prepare()
    world.now += 500
    world.pending("a", "b", "c", "d", "e")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.now += 2_000
    world.answer_launch(ref, order)
    world.now += 30_000
    world.node("n1", PROVIDER_ID, ready=False, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n1", PROVIDER_ID, ready=False, registered="true")
    world.now += 5_000
    world.node("n1", PROVIDER_ID, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER_ID, registered="true", initialized="true")
    for name in "abcde":
        world.now += 20
        world.bind(name, "n1")
    return world


def leave(world: World) -> World:
    """The pods end, and their node with them."""
    for name in "abcde":
        world.gone(name)
    world.after(10_000)
    world.after(15_000)
    world.answer_all()
    world.node("n1", PROVIDER_ID, registered="true", initialized="true", taints=(DISRUPTED,))
    world.after(5_000)
    world.answer_all()
    world.instance("i-1", "gone")
    world.answer_all()
    world.see(Observation(ObjectGone("node", "n1")))
    return world


def tampered(store: MemoryStore, change: Callable[[list[Entry]], Iterable[Entry]]) -> MemoryStore:
    """Another store with changed entries; positions, turns, stream versions and what answers refer to are made
    consistent again."""
    twin = MemoryStore()
    twin.blobs = store.blobs
    positions: dict[int, int] = {}
    versions: dict[str, int] = {}
    first: dict[int, int] = {}
    for number, entry in enumerate(change(list(store.entries)), 1):
        positions[entry.position] = number
        versions[entry.stream] = versions.get(entry.stream, 0) + 1
        first.setdefault(entry.turn, number)
        twin.entries.append(
            replace(
                entry,
                position=number,
                turn=first[entry.turn],
                version=versions[entry.stream],
                cause=positions.get(entry.cause, 0),
                payload=_referring(entry.payload, positions),
            )
        )
    twin.versions = versions
    return twin


def _referring(payload: Any, positions: dict[int, int]) -> Any:
    if not isinstance(payload, LaunchAnswered | EffectAnswered):
        return payload
    position, _, index = payload.intent.partition(".")
    return replace(payload, intent=f"{positions.get(int(position), 0)}.{index}")


def changed(position: int, **fields: object) -> Callable[[list[Entry]], list[Entry]]:
    """The entry at `position` with other fields in its payload."""

    def change(entries: list[Entry]) -> list[Entry]:
        entry = entries[position - 1]
        entries[position - 1] = replace(entry, payload=replace(entry.payload, **fields))
        return entries

    return change


def without(position: int) -> Callable[[list[Entry]], list[Entry]]:
    def change(entries: list[Entry]) -> list[Entry]:
        del entries[position - 1]
        return entries

    return change


def position_of(store: MemoryStore, kind: str, nth: int = 0) -> int:
    """Where the nth entry of a type stands."""
    return [entry.position for entry in store.entries if entry.type == kind][nth]


def stored(path: Path, memory: MemoryStore) -> Path:
    """A record in memory as a file, turn by turn."""
    store = SQLiteStore(path, "create")
    for first, turn in groupby(memory.entries, key=lambda entry: entry.turn):
        store.append(Append(tuple(turn), memory.blobs if first == 1 else {}))
    store.close()
    return path


def re_derived(store: MemoryStore) -> list[Entry]:
    """The record as the engine makes it from the recorded observations alone."""
    seen = {t.payload for t in OBSERVATIONS}
    state = empty(store)
    made: list[Entry] = []
    for _, turn in itertools.groupby(store.entries, key=lambda e: e.turn):
        recorded = list(turn)
        state.facts.epoch = recorded[0].epoch
        draft = TurnDraft(state, recorded[0].at)
        for entry in recorded:
            if type(entry.payload) in seen:
                draft.add(entry.payload)
        react(draft)
        made += draft.entries
    return made


def with_every_claim_due(store: Store) -> Iterator[tuple[list[Entry], list[Entry], int]]:
    """Each recorded turn; what it is decided to be where every claim is due (ADR 3); and how many claims that are."""
    state = beginning(store)
    for turn in turns(store.scan()):
        for name in state.facts.claims:
            state.indexes.due.by(name, 1)
        claims = len(state.facts.claims)
        yield turn, decide_again(state, turn), claims
