"""KEP-5278: new Nodes that wait open at the same moment, once the pods of all of them have been told."""

from __future__ import annotations

import asyncio

import pytest

from kerf.adapters.kubernetes.objects.node_openings import (
    MAX_SECONDS_HELD_UP,
    SECONDS_EXPECTED,
    NodeOpenings,
)


class Joining:
    """Nodes that join. `told`: when each began to tell its pods, in seconds; `opened`: when it opened."""

    def __init__(self) -> None:
        self.openings = NodeOpenings()
        self.told: dict[str, float] = {}
        self.opened: dict[str, float] = {}
        self._began = asyncio.get_running_loop().time()

    async def join(self, node: str, *, spare: int = 0, seconds: float = 1, first_pod: tuple[int, ...] = ()) -> None:
        async with self.openings.turn(node, spare, first_pod):
            self.told[node] = self._now
            await asyncio.sleep(seconds)
        self.opened[node] = self._now

    def all_joined(self) -> None:
        self.openings.more_to_come = False
        self.openings.call_next()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._began


@pytest.mark.asyncio(loop_scope="function")
async def test_nodes_open_at_the_same_moment_once_the_pods_of_all_are_told() -> None:
    joining = Joining()
    await asyncio.gather(joining.join("first"), joining.join("slow", seconds=3), joining.join("quick"))
    assert joining.told == pytest.approx({"first": 0, "slow": 1, "quick": 1})
    assert joining.opened == pytest.approx({"first": 1, "slow": 4, "quick": 4})


@pytest.mark.asyncio(loop_scope="function")
async def test_of_nodes_that_open_together_those_go_first_whose_pods_come_first() -> None:
    """A pod that kube-scheduler tries some milliseconds before its own Node is open takes room elsewhere."""
    joining = Joining()
    joining.openings.expect({"a", "b", "c"})
    places = {"a": (0, 100, 3), "b": (0, 100, 1), "c": (-10, 200, 2)}
    await asyncio.gather(*(joining.join(node, first_pod=place) for node, place in places.items()))
    assert list(joining.opened) == ["c", "b", "a"]
    assert joining.opened == pytest.approx(dict.fromkeys("cba", 1))


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_waits_no_longer_than_the_limit_for_those_that_open_with_it() -> None:
    joining = Joining()
    first = asyncio.create_task(joining.join("first"))
    stuck = asyncio.create_task(joining.join("stuck", seconds=60))
    await asyncio.gather(first, joining.join("quick"))
    assert joining.opened == pytest.approx({"first": 1, "quick": 2 + MAX_SECONDS_HELD_UP})
    stuck.cancel()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_with_room_for_others_waits_for_those_to_come_but_not_for_long() -> None:
    joining = Joining()
    joining.openings.more_to_come = True
    await asyncio.gather(joining.join("roomy", spare=1), joining.join("full"))
    assert joining.told == pytest.approx({"full": 0, "roomy": MAX_SECONDS_HELD_UP})


@pytest.mark.asyncio(loop_scope="function")
async def test_nodes_with_room_open_together_as_soon_as_the_last_node_has_joined() -> None:
    joining = Joining()
    joining.openings.more_to_come = True
    asyncio.get_running_loop().call_later(2, joining.all_joined)
    await asyncio.gather(joining.join("roomy", spare=1), joining.join("half", spare=2))
    assert joining.opened == pytest.approx({"roomy": 3, "half": 3})


@pytest.mark.asyncio(loop_scope="function")
async def test_no_node_waits_for_its_turn_longer_than_the_limit_and_then_all_that_wait_open() -> None:
    joining = Joining()
    stuck = asyncio.create_task(joining.join("stuck", seconds=60))
    await asyncio.sleep(0)
    late = asyncio.create_task(joining.join("late"))
    await asyncio.sleep(2)
    await asyncio.gather(late, joining.join("later"))
    assert joining.told == pytest.approx({"stuck": 0, "late": MAX_SECONDS_HELD_UP, "later": MAX_SECONDS_HELD_UP})
    stuck.cancel()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_whose_opening_is_given_up_holds_up_nobody() -> None:
    joining = Joining()
    first = asyncio.create_task(joining.join("first"))
    await asyncio.sleep(0)
    given_up = asyncio.create_task(joining.join("gone", seconds=60))
    waiting = asyncio.create_task(joining.join("next"))
    await first
    await asyncio.sleep(2)
    given_up.cancel()
    await waiting
    assert joining.opened["next"] == pytest.approx(3)


@pytest.mark.asyncio(loop_scope="function")
async def test_nodes_wait_a_moment_for_one_that_has_joined() -> None:
    joining = Joining()
    joining.openings.expect({"first", "second"})
    first = asyncio.create_task(joining.join("first"))
    await asyncio.sleep(1)
    await asyncio.gather(first, joining.join("second"))
    assert joining.opened == pytest.approx({"first": 2, "second": 2})


@pytest.mark.asyncio(loop_scope="function")
async def test_who_has_joined_and_does_not_ask_holds_up_the_others_for_a_moment_once() -> None:
    joining = Joining()
    joining.openings.expect({"first", "broken"})
    await joining.join("first")
    joining.openings.expect({"broken", "second"})
    await joining.join("second")
    assert joining.told == pytest.approx({"first": SECONDS_EXPECTED, "second": SECONDS_EXPECTED + 1})


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_that_has_had_its_turn_is_not_waited_for_again() -> None:
    joining = Joining()
    joining.openings.expect({"first"})
    await joining.join("first")
    joining.openings.expect({"first", "second"})  # it is not seen to be registered yet
    await joining.join("second")
    assert joining.opened == pytest.approx({"first": 1, "second": 2})
