"""The taint of a proposed disruption on the API server: what is written, and in which order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kerf.adapters.kubernetes.objects.cluster_writes import KubernetesCluster
from kerf.adapters.kubernetes.objects.node_cache import NodeCache
from kerf.adapters.kubernetes.objects.proposed_nodes import ProposedNodes
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.engine.model.karpenter.nodepools import Budget
from kerf.engine.record.observations import Observation
from tests.support import lives
from tests.support.servers.fake_kubernetes import FakeApi, serving
from tests.support.world import pool

pytestmark = pytest.mark.real_time

NODE = "/api/v1/nodes/n1"
OTHER = {"key": "team", "value": "red", "effect": "NoSchedule"}
PROPOSED = {"key": "kerf.dev/disruption-proposed", "effect": "PreferNoSchedule"}


def node(*taints: dict[str, str]) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {"taints": list(taints)}}


def nodes_of(session: Session) -> ProposedNodes:
    async def uid(claim: str) -> str:
        return ""

    cache = NodeCache()
    cache.put("n1", json.dumps(node(OTHER)).encode())
    return ProposedNodes(KubernetesCluster(session, Bridge(asyncio.get_running_loop()), cache, uid))


async def asked(api: FakeApi, count: int) -> list[Any]:
    """The taints of each write, once there are so many."""
    async with asyncio.timeout(5):
        while len(api.asked) < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert {(method, path) for method, path, _, _ in api.asked} == {("PATCH", NODE)}
    return [body["spec"]["taints"] for _, _, _, body in api.asked]


@pytest.mark.asyncio(loop_scope="function")
async def test_d108_the_taint_comes_beside_others_and_goes_alone() -> None:
    """The taint is taken off after it was put on, also if both are due at once."""
    world, api = lives.half_empty(), FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node(OTHER, PROPOSED)), (200, node(OTHER))]
    world.after(10_000)
    async with serving(api) as session:
        nodes = nodes_of(session)
        nodes.project(world.runtime.state)
        world.see(Observation(pool(budgets=(Budget("0"),))))
        world.after(15_000)
        nodes.project(world.runtime.state)
        assert await asked(api, 2) == [[OTHER, PROPOSED], [OTHER]]
        await nodes.close()


@pytest.mark.asyncio(loop_scope="function")
async def test_a_write_that_is_refused_is_made_again_with_the_next_turn() -> None:
    world, api = lives.half_empty(), FakeApi()
    api.answers[f"PATCH {NODE}"] = [(403, {"kind": "Status", "message": "no", "code": 403}), (200, node(PROPOSED))]
    world.after(10_000)
    async with serving(api) as session:
        nodes = nodes_of(session)
        nodes.project(world.runtime.state)
        assert len(await asked(api, 1)) == 1
        nodes.project(world.runtime.state)
        assert await asked(api, 2) == [[OTHER, PROPOSED]] * 2
        nodes.project(world.runtime.state)
        assert len(await asked(api, 2)) == 2
        await nodes.close()
