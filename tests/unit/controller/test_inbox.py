"""What one turn of the controller is about."""

from __future__ import annotations

import pytest

from kerf.adapters.controller.inbox import Inbox
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import Observation

ILL, WELL = 1_000, 2_000


def node(name: str, *, ready: bool, since: int) -> Observation:
    return Observation(Node(name, ready=ready, ready_since=since))


def filled(*arrived: Observation) -> Inbox:
    inbox = Inbox()
    inbox.put(arrived)
    return inbox


@pytest.mark.asyncio(loop_scope="function")
async def test_d134_a_node_that_is_ready_again_is_judged_before_as_it_was() -> None:
    """Both arrive together: something heals the node at once. It had been ill for longer than is tolerated."""
    arrived = [
        node("a", ready=False, since=ILL), node("b", ready=True, since=WELL), node("a", ready=True, since=WELL),
        node("c", ready=True, since=WELL),
    ]  # fmt: skip

    async def turns() -> list[list[Observation]]:
        inbox = filled(*arrived)
        first = inbox.take()
        assert await inbox.wait(0.0)  # the rest does not wait for news
        return [first, inbox.take(), inbox.take()]

    assert await turns() == [arrived[:2], arrived[2:], []]


def test_a_node_that_joins_and_gets_ready_is_one_turn() -> None:
    """It never said that it is not ready: a burst of new nodes takes no further turns."""
    arrived = [node("a", ready=False, since=0), node("a", ready=True, since=WELL), node("a", ready=False, since=ILL)]
    assert filled(*arrived).take() == arrived


def test_the_last_turn_takes_everything() -> None:
    arrived = [node("a", ready=False, since=ILL), node("a", ready=True, since=WELL)]
    inbox = filled(*arrived)
    assert inbox.take_all() == arrived
    assert (inbox.put_in, inbox.taken_out) == (2, 2)
