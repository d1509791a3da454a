"""KEP-5278: which pods are told their nodes, and when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.pod_nominations import Nominations
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Selector, SpreadConstraint, VolumeRef
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import Observation
from kerf.engine.state.pods.nominations import is_contested
from tests.support import lives
from tests.support.servers.fake_kubernetes import FakeApi, serving
from tests.support.world import World

pytestmark = pytest.mark.real_time


OVER_ZONES = SpreadConstraint(lbl.ZONE, selector=Selector({"app": "web"}))


def stranger(world: World, **requests: int) -> None:
    """A pod unlike the others, which waits too."""
    shape = PodShape(requests=requests)
    pod = Pod("uid-other", "default", "other", content(shape)[0], unschedulable=True)
    world.see(Observation(pod, {content(shape)[0]: shape}))


def spread(world: World, constraint: SpreadConstraint, **nominated: str) -> None:
    """The pods of the claim are spread like this, beside a stranger. `nominated`: what they show, by name."""
    shape = PodShape(requests={"cpu": 10}, labels={"app": "web"}, spread=(constraint,))
    digest, _ = content(shape)
    for name in lives.PODS:
        pod = replace(world.pods[name], shape=digest, nominated=nominated.get(name, ""))
        world.see(Observation(pod, {digest: shape}))
    stranger(world, cpu=10)


def in_another_zone(world: World) -> None:
    """A node, without which a spread over zones refuses nobody."""
    world.see(Observation(Node("elsewhere", labels={lbl.ZONE: "z9"})))


async def told(world: World, *, turns: int = 1) -> list[str]:
    """The names of the pods whose status is written after so many turns."""
    api = FakeApi()
    paths = {f"/api/v1/namespaces/default/pods/{name}/status": name for name in (*lives.PODS, "other")}
    api.answers = {f"PATCH {path}": [(200, {})] for path in paths}

    def name_of(claim: NodeClaim) -> str:
        return claim.instance

    async with serving(api) as session:
        nominations = Nominations(session, name_of)
        for _ in range(turns):
            nominations.project(world.runtime.state)
        await nominations.written("i-1")
        await nominations.close()
    assert all(body["status"] == {"nominatedNodeName": "i-1"} for _, _, _, body in api.asked)
    return sorted(paths[path] for _, path, _, _ in api.asked)


@pytest.mark.asyncio(loop_scope="function")
async def test_pods_that_may_lose_their_place_to_another_are_told_once() -> None:
    world = lives.launched()
    stranger(world, cpu=10)
    assert await told(world, turns=2) == list(lives.PODS)


@pytest.mark.asyncio(loop_scope="function")
async def test_where_all_that_waits_is_alike_nobody_is_told() -> None:
    world = lives.launched()
    assert not is_contested(world.runtime.state)
    assert await told(world) == []


@pytest.mark.asyncio(loop_scope="function")
async def test_nobody_is_told_before_the_launch_is_known() -> None:
    world = lives.asked()
    stranger(world, cpu=10)
    assert await told(world) == []


@pytest.mark.asyncio(loop_scope="function")
async def test_s117_of_pods_that_are_spread_as_many_at_a_time_are_told_as_the_skew_allows() -> None:
    """kube-scheduler counts what is nominated for a node as if it were there, on that node alone; with two of them on
    each node of three zones, and a skew of one, none could be the first."""
    soft = replace(OVER_ZONES, when_unsatisfiable="ScheduleAnyway")
    two = replace(OVER_ZONES, max_skew=2)
    cases = ((OVER_ZONES, list(lives.PODS[:1])), (two, list(lives.PODS[:2])), (soft, list(lives.PODS)))
    for constraint, first in cases:
        world = lives.launched()
        spread(world, constraint)
        in_another_zone(world)
        assert await told(world, turns=2) == first


@pytest.mark.asyncio(loop_scope="function")
async def test_s117_where_all_nodes_are_in_one_zone_pods_that_are_spread_over_zones_are_all_told() -> None:
    cases = (
        (OVER_ZONES, list(lives.PODS)),
        (replace(OVER_ZONES, min_domains=2), list(lives.PODS[:1])),
        (replace(OVER_ZONES, topology_key="example.com/rack"), list(lives.PODS[:1])),
    )
    for constraint, all_told in cases:
        world = lives.launched()
        spread(world, constraint)
        assert await told(world) == all_told, constraint


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_that_opens_waits_for_the_nominations_that_are_taken_back_from_it() -> None:
    """A node in another zone has come: with all pods told, none could be bound (S-117)."""
    world = lives.launched()
    spread(world, OVER_ZONES)
    api = FakeApi()
    api.answers = {f"PATCH /api/v1/namespaces/default/pods/{name}/status": [(200, {})] * 3 for name in lives.PODS}
    async with serving(api) as session:
        nominations = Nominations(session, lambda claim: claim.instance)
        nominations.project(world.runtime.state)
        await nominations.written("i-1")
        spread(world, OVER_ZONES, **dict.fromkeys(lives.PODS, "i-1"))
        in_another_zone(world)
        api.asked.clear()
        nominations.project(world.runtime.state, "i-1")
        await nominations.written("i-1")
        taken_back = [path for _, path, _, body in api.asked if body["status"] == {"nominatedNodeName": None}]
        await nominations.close()
    assert len(taken_back) == len(lives.PODS) - 1


@pytest.mark.asyncio(loop_scope="function")
async def test_who_has_been_told_stays_so_when_another_process_goes_on() -> None:
    world = lives.launched()
    spread(world, OVER_ZONES, **{lives.PODS[-1]: "i-1"})
    in_another_zone(world)
    assert await told(world) == []


def test_alike_pods_that_a_volume_may_tie_to_a_node_are_told() -> None:
    world = World()
    world.prepare()
    shape = PodShape(requests={"cpu": 100}, volumes=(VolumeRef("data"),))
    digest, _ = content(shape)
    pods = [Pod(f"uid-{name}", "default", name, digest, unschedulable=True) for name in "ab"]
    world.see(*(Observation(pod, {digest: shape}) for pod in pods))
    assert is_contested(world.runtime.state)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_nomination_that_the_scheduler_made_is_left() -> None:
    """S-40: its pod has its place by preemption."""
    world = lives.launched()
    stranger(world, cpu=10)
    world.see(Observation(replace(world.pods["a"], nominated="elsewhere")))
    assert await told(world) == list(lives.PODS[1:])
