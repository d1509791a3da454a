"""KEP-5278: which pods are told their nodes, and when."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.nominations import Nominations
from kerf.engine.model.pods import Pod, PodShape, SpreadConstraint
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.digest import content
from kerf.engine.record.observations import Observation
from kerf.engine.scheduling.telling import is_contested, must_be_told
from tests.support import lives
from tests.support.world import Mi, World
from tests.unit.kubernetes.fake_api import FakeApi, serving

ROOM = {"cpu": 4000, "memory": 8192 * Mi, "pods": 110}


def stranger(world: World, **requests: int) -> None:
    """A pod unlike the others, which waits too."""
    shape = PodShape(requests=requests)
    pod = Pod("uid-other", "default", "other", content(shape)[0], unschedulable=True)
    world.see(Observation(pod, {content(shape)[0]: shape}))


def told(world: World, *, turns: int = 1) -> list[str]:
    """The names of the pods whose status is written after so many turns."""
    api = FakeApi()
    paths = {f"/api/v1/namespaces/default/pods/{name}/status": name for name in (*lives.PODS, "other")}
    api.answers = {f"PATCH {path}": [(200, {})] for path in paths}

    def name_of(claim: NodeClaim) -> str:
        return claim.instance

    async def scene() -> None:
        async with serving(api) as session:
            nominations = Nominations(session, name_of)
            for _ in range(turns):
                nominations.project(world.runtime.state)
            await nominations.written("i-1")
            await nominations.close()

    asyncio.run(scene())
    assert all(body["status"] == {"nominatedNodeName": "i-1"} for _, _, _, body in api.asked)
    return sorted(paths[path] for _, path, _, _ in api.asked)


def test_pods_that_may_lose_their_place_to_another_are_told_once() -> None:
    world = lives.launched()
    stranger(world, cpu=10)
    assert told(world, turns=2) == list(lives.PODS)


def test_where_all_that_waits_is_alike_nobody_is_told() -> None:
    world = lives.launched()
    assert not is_contested(world.runtime.state)
    assert told(world) == []


def test_nobody_is_told_before_the_launch_is_known() -> None:
    world = lives.asked()
    stranger(world, cpu=10)
    assert told(world) == []


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (PodShape(requests={"cpu": 199, "memory": 100 * Mi}), False),
        (PodShape(requests={"cpu": 200, "memory": 100 * Mi}), True),
        (PodShape(requests={"cpu": 10, "memory": 512 * Mi}), True),
        (PodShape(requests={"nvidia.com/gpu": 1}), True),
        (PodShape(), False),
        (PodShape(requests={"cpu": 10}, spread=(SpreadConstraint("topology.kubernetes.io/zone"),)), True),
    ],
)
def test_small_pods_that_do_not_mind_where_others_are_find_a_place_untold(shape: PodShape, told: bool) -> None:
    assert must_be_told(shape, ROOM) is told


def test_a_nomination_that_the_scheduler_made_is_left() -> None:
    """S-40: its pod has its place by preemption."""
    world = lives.launched()
    stranger(world, cpu=10)
    world.see(Observation(replace(world.pods["a"], nominated="elsewhere")))
    assert told(world) == list(lives.PODS[1:])
