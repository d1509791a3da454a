"""Fold laws: the state is the fold, a snapshot is only a cache, and the record alone gives every decision again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.record.entries import Entry
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from tests.support.memory import MemoryStore
from tests.support.random_life import ACTIONS, Player
from tests.support.records import re_derived
from tests.support.strategies.examples import examples


def played(script: list[tuple[str, int]]) -> MemoryStore:
    player = Player()
    for action, number in script:
        player.play(action, number)
    return player.world.store


SCRIPTS = st.lists(st.tuples(st.sampled_from((*ACTIONS, "pod", "answer", "answer", "wait")), st.integers(0, 1000)),
                   max_size=60)  # fmt: skip


def refold(state: State, entries: list[Entry]) -> State:
    for entry in entries:
        evolve(state, entry)
    return state


@settings(max_examples=examples(120), deadline=None)
@given(SCRIPTS, st.integers(0, 10_000))
def test_fold_from_zero_equals_fold_from_a_snapshot_at_any_cut(script: list[tuple[str, int]], cut: int) -> None:
    store = played(script)
    whole = snapshot.digest(load(store))
    middle = cut % (len(store.entries) + 1)
    data, _ = snapshot.encode(load(store, middle))
    resumed = refold(snapshot.decode(data, Blobs(store.blob)), store.entries[middle:])
    assert snapshot.digest(resumed) == whole


@settings(max_examples=examples(120), deadline=None)
@given(SCRIPTS)
def test_the_record_gives_every_claim_event_and_decision_again(script: list[tuple[str, int]]) -> None:
    store = played(script)
    assert re_derived(store) == store.entries


@settings(max_examples=examples(120), deadline=None)
@given(SCRIPTS)
def test_nothing_is_ever_due_in_the_past_or_asked_for_twice_at_once(script: list[tuple[str, int]]) -> None:
    player = Player()
    for action, number in script:
        player.play(action, number)
        runtime = player.world.runtime
        due = runtime.next_due()
        assert due is None or due > player.world.now
        asked = [
            (a.intent.claim, type(a.intent), getattr(a.intent, "uid", "")) for a in runtime.state.facts.intents.values()
        ]
        assert len(asked) == len(set(asked))


@pytest.mark.parametrize("seed", range(40))
def test_long_random_lives_are_re_derived_and_snapshotted(seed: int) -> None:
    dice = random.Random(seed)
    actions = (*ACTIONS, "pod", "wait", "answer", "answer", "answer", "answer", "bind", "bind")
    script = [(dice.choice(actions), dice.randrange(1000)) for _ in range(150)]
    store = played(script)
    assert re_derived(store) == store.entries
    middle = dice.randrange(len(store.entries))
    data, _ = snapshot.encode(load(store, middle))
    resumed = refold(snapshot.decode(data, Blobs(store.blob)), store.entries[middle:])
    assert snapshot.digest(resumed) == snapshot.digest(load(store))
