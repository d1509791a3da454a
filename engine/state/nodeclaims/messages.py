"""The interruption messages that were seen. SQS gives some of them twice (A-344)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from kerf.engine.state.state import State

MEMORY = 600_000
"""How long (ms) a message is remembered: longer than SQS keeps one of the reference queue (A-364)."""
FEW = 1_000
"""So many messages are remembered however old they are."""


def is_new(state: State, message: str, at: int) -> bool:
    """Whether a message was not seen before; it is remembered from now on. Old ones are forgotten where there are many.
    The heap finds them in a burst of any size without a look at the others; times may also go back."""
    remembered, by_age = state.facts.messages, state.indexes.messages_by_age
    if message in remembered:
        return False
    if len(remembered) > FEW:
        while by_age and at - by_age[0][0] >= MEMORY:
            del remembered[heappop(by_age)[1]]
    remembered[message] = at
    heappush(by_age, (at, message))
    return True


def index_messages(state: State) -> None:
    """Find the oldest messages of a state that was read."""
    state.indexes.messages_by_age = [(at, message) for message, at in state.facts.messages.items()]
    heapify(state.indexes.messages_by_age)
