"""Fold laws: the state is the fold, a snapshot is only a cache, and the record alone gives every decision again."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import (
    DeleteNode,
    EvictPod,
    InitializeNode,
    Intent,
    LaunchInstance,
    RegisterNode,
    TaintNode,
    TerminateInstance,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import OBSERVATIONS
from kerf.engine.record.observations import (
    EffectAnswered,
    InterruptionSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    ObjectGone,
    Observation,
)
from kerf.engine.runtime.react import react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import empty, load
from kerf.engine.state.state import State
from tests.support.memory import MemoryStore
from tests.support.world import World, pool

UNREGISTERED = Taint("karpenter.sh/unregistered", "NoExecute")
DISRUPTED = Taint("karpenter.sh/disrupted", "NoSchedule")
ACTIONS = ("pod", "answer", "wait", "refuse", "bind", "gone", "interrupt", "delete", "restart", "lost")


class Player:
    """Plays a random life on a World: whatever is drawn, the record must stay sound."""

    def __init__(self) -> None:
        self.world = World()
        self.open: list[tuple[str, Intent]] = []
        self.nodes: dict[str, str] = {}
        self.count = 0
        self.world.prepare(pool(expire_after=3_600_000, consolidate_after=30_000))

    def play(self, action: str, number: int) -> None:
        getattr(self, "_" + action)(number)
        self.open += self.world.intents
        self.world.intents = []

    def _pod(self, number: int) -> None:
        self.count += 1
        self.world.pending(f"p{self.count}", memory=(1 + number % 8) * 512 * 2**20)

    def _wait(self, number: int) -> None:
        self.world.after((1, 1_000, 11_000, 61_000, 1_000_000)[number % 5])

    def _answer(self, number: int) -> None:
        if self.open:
            ref, intent = self.open.pop(number % len(self.open))
            self._carry_out(ref, intent)

    def _refuse(self, number: int) -> None:
        if self.open:
            ref, intent = self.open.pop(number % len(self.open))
            if isinstance(intent, LaunchInstance):
                kind = ("insufficient-capacity", "error", "nodeclass-not-ready")[number % 3]
                self.world.see(Observation(LaunchAnswered(ref, intent.claim, kind=kind, code="X")))
            else:
                self.world.see(Observation(EffectAnswered(ref, False, "429")))

    def _lost(self, number: int) -> None:
        if self.open:
            self.open.pop(number % len(self.open))

    def _bind(self, number: int) -> None:
        waiting = sorted(n for n, p in self.world.pods.items() if not p.node)
        if waiting and self.nodes:
            self.world.bind(waiting[number % len(waiting)], sorted(self.nodes)[number % len(self.nodes)])

    def _gone(self, number: int) -> None:
        if self.world.pods:
            self.world.gone(sorted(self.world.pods)[number % len(self.world.pods)])

    def _claim(self, number: int) -> str:
        names = sorted(self.world.runtime.state.facts.claims)
        return names[number % len(names)] if names else ""

    def _interrupt(self, number: int) -> None:
        claim = self.world.runtime.state.facts.claims.get(self._claim(number))
        instance = claim.instance if claim is not None else "i-foreign"
        self.world.see(Observation(InterruptionSeen(f"m{number % 7}", "spot_interrupted", instance)))

    def _delete(self, number: int) -> None:
        self.world.see(Observation(NodeClaimDeletionSeen(self._claim(number), "kubectl")))

    def _restart(self, number: int) -> None:
        self.world.runtime = self.world.start()
        self.open = self.world.runtime.unanswered()

    def _carry_out(self, ref: str, intent: Intent) -> None:
        world = self.world
        if isinstance(intent, LaunchInstance):
            if intent.offers:
                world.answer_launch(ref, intent, instance=f"i-{intent.claim}")
                self.open += world.intents
                world.node(f"n-{intent.claim}", self._provider(intent), taints=(UNREGISTERED,))
                self.nodes[f"n-{intent.claim}"] = self._provider(intent)
            return
        world.see(Observation(EffectAnswered(ref, True, "200")))
        self.open += world.intents
        self._show(intent)

    def _show(self, intent: Intent) -> None:
        world = self.world
        if isinstance(intent, RegisterNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true")
        elif isinstance(intent, InitializeNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true", initialized="true")
        elif isinstance(intent, TaintNode) and intent.node in self.nodes:
            world.node(intent.node, self.nodes[intent.node], registered="true", initialized="true", taints=(DISRUPTED,))
        elif isinstance(intent, EvictPod):
            name = next((n for n, p in world.pods.items() if p.uid == intent.uid), None)
            if name is not None:
                world.gone(name)
        elif isinstance(intent, TerminateInstance):
            world.instance(intent.instance, "gone")
        elif isinstance(intent, DeleteNode) and self.nodes.pop(intent.node, ""):
            world.see(Observation(ObjectGone("node", intent.node)))

    def _provider(self, intent: LaunchInstance) -> str:
        return f"aws:///{intent.offers[0].zone}/i-{intent.claim}"


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


@settings(max_examples=120, deadline=None)
@given(SCRIPTS, st.integers(0, 10_000))
def test_fold_from_zero_equals_fold_from_a_snapshot_at_any_cut(script: list[tuple[str, int]], cut: int) -> None:
    store = played(script)
    whole = snapshot.digest(load(store))
    middle = cut % (len(store.entries) + 1)
    data, _ = snapshot.encode(load(store, middle))
    resumed = refold(snapshot.decode(data, Blobs(store.blob)), store.entries[middle:])
    assert snapshot.digest(resumed) == whole


@settings(max_examples=120, deadline=None)
@given(SCRIPTS)
def test_the_record_gives_every_claim_event_and_decision_again(script: list[tuple[str, int]]) -> None:
    store = played(script)
    assert re_derived(store) == store.entries


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


@settings(max_examples=120, deadline=None)
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
