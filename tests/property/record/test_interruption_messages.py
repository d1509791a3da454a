"""Interruption messages are remembered as by a simple fold, which looks at all of them with each (A-344)."""

from __future__ import annotations

from heapq import heappop
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ClocksAgree, InterruptionSeen, TimeSetBack
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.nodeclaims import messages
from kerf.engine.state.state import Facts, State
from tests.support.memory import MemoryStore
from tests.support.strategies.examples import examples

START = 1_760_000_000_000
FEW = 3
MINUTE = 60_000

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), st.integers(0, 30)),
        st.tuples(st.just("message"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.sampled_from((1, MINUTE, 4 * MINUTE, 10 * MINUTE - 1, 10 * MINUTE))),
        st.tuples(st.just("set back"), st.integers(1, 30 * MINUTE)),
        st.tuples(st.just("agree"), st.integers(1, 30 * MINUTE)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=80,
)


class Simple:
    """All messages are looked at with each, and at each change of the clock."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def message(self, name: str, at: int) -> None:
        if name in self.seen:
            return
        if len(self.seen) > FEW:
            self.seen = {known: t for known, t in self.seen.items() if at - t < 10 * MINUTE}
        self.seen[name] = at

    def moved(self, after: int, by: int) -> None:
        self.seen = {known: t + by if t > after else t for known, t in self.seen.items()}


def folded(state: State, payload: Struct, at: int) -> None:
    position = state.facts.position + 1
    evolve(state, Entry(position, position, "seen/queue", position, "x", 1, at, 0, 1, payload))


@settings(max_examples=examples(600), deadline=None)
@given(STEPS)
def test_a344_messages_are_remembered_as_by_the_simple_fold(steps: list[tuple[str, int]]) -> None:
    simple, now, blobs = Simple(), START, Blobs(MemoryStore().blob)
    state = State(Facts(), blobs)
    with mock.patch.object(messages, "FEW", FEW):
        for step, number in steps:
            if step == "message":
                simple.message(f"m-{number}", now)
                folded(state, InterruptionSeen(f"m-{number}", "spot_interrupted", "i-1"), now)
            elif step == "wait":
                now += number
            elif step == "set back":
                now, was = now - number, now
                simple.moved(now, -number)
                folded(state, TimeSetBack(was), now)
            elif step == "agree":
                simple.moved(now - number - 1, number)
                folded(state, ClocksAgree(number, now - number), now)
            else:
                state = snapshot.decode(snapshot.encode(state)[0], blobs)
            assert state.facts.messages == simple.seen


def test_a_burst_of_messages_is_forgotten_one_by_one() -> None:
    """Each message of the burst is looked at once more, however many come after it."""
    state, burst = State(Facts(), Blobs(MemoryStore().blob)), 3 * messages.FEW
    for number in range(burst):
        folded(state, InterruptionSeen(f"m-{number}", "spot_interrupted", "i-1"), START + number)
    with mock.patch.object(messages, "heappop", wraps=heappop) as popped:
        for number in range(burst):
            message = InterruptionSeen(f"n-{number}", "spot_interrupted", "i-1")
            folded(state, message, START + messages.MEMORY + number)
    assert popped.call_count == burst
    assert list(state.facts.messages) == [f"n-{number}" for number in range(burst)]
