"""KEP-5278: new Nodes open one at a time, those that leave other pods the least room first."""

from __future__ import annotations

import asyncio

import pytest

from kerf.adapters.kubernetes.objects.opening_order import MAX_SECONDS_HELD_UP, OpeningOrder


class Opening:
    """Nodes that join, and take a second each to open. `opened`: when each began to, in seconds."""

    def __init__(self) -> None:
        self.order = OpeningOrder()
        self.opened: dict[str, float] = {}
        self._began = asyncio.get_running_loop().time()

    async def join(self, node: str, spare: int) -> None:
        async with self.order.turn(node, spare):
            self.opened[node] = asyncio.get_running_loop().time() - self._began
            await asyncio.sleep(1)

    async def all(self, **spare: int) -> dict[str, float]:
        await asyncio.gather(*(self.join(node, room) for node, room in spare.items()))
        return self.opened


@pytest.mark.asyncio(loop_scope="function")
async def test_nodes_open_one_at_a_time_the_fullest_first() -> None:
    opened = await Opening().all(first=7, roomy=9, full=0, half=3)
    assert opened == pytest.approx({"first": 0, "full": 1, "half": 2, "roomy": 3})


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_with_room_for_others_waits_for_those_to_come_but_not_for_long() -> None:
    opening = Opening()
    opening.order.more_to_come = True
    opened = await opening.all(roomy=1, full=0)
    assert opened == pytest.approx({"full": 0, "roomy": MAX_SECONDS_HELD_UP})


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_with_room_opens_as_soon_as_the_last_node_has_joined() -> None:
    opening = Opening()
    opening.order.more_to_come = True

    def joined() -> None:
        opening.order.more_to_come = False
        opening.order.call_next()

    asyncio.get_running_loop().call_later(2, joined)
    assert await opening.all(roomy=1) == pytest.approx({"roomy": 2})


@pytest.mark.asyncio(loop_scope="function")
async def test_no_node_waits_for_its_turn_longer_than_the_limit() -> None:
    opened = await Opening().all(**{f"n{number}": number for number in range(8)})
    assert max(opened.values()) == pytest.approx(MAX_SECONDS_HELD_UP)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_whose_opening_is_given_up_holds_up_nobody() -> None:
    opening = Opening()
    given_up = asyncio.create_task(opening.join("gone", 0))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(opening.join("next", 1))
    await asyncio.sleep(0.5)
    given_up.cancel()
    await waiting
    assert opening.opened["next"] == pytest.approx(0.5)
