"""Statuses that are written when they differ, with the times of the conditions that stay (L-66)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.errors import ClusterError
from kerf.adapters.kubernetes.objects.status import Commented, StatusWriter
from tests.support.servers.fake_kubernetes import FakeApi, serving

pytestmark = pytest.mark.real_time

BUFFER = Commented("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "capacitybuffers", "b", "shop")
PATH = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/b"
READY = ("ReadyForProvisioning", True, "Resolved", "")
LONG_AGO = "2020-01-01T00:00:00Z"


async def written(api: FakeApi, *statuses: dict[str, Any], generation: int = 1) -> tuple[list[Any], StatusWriter]:
    api.answers.setdefault(f"PATCH {PATH}/status", [(200, {})])

    async def run() -> StatusWriter:
        async with serving(api) as session:
            writer = StatusWriter(session)
            for status in statuses:
                await writer.write(BUFFER, status, [READY], generation)
            return writer

    writer = await run()
    return [body for method, _, _, body in api.asked if method == "PATCH"], writer


def there(*conditions: dict[str, str]) -> FakeApi:
    api = FakeApi()
    api.answers[f"GET {PATH}"] = [(200, {"status": {"conditions": list(conditions)}})]
    return api


@pytest.mark.asyncio(loop_scope="function")
async def test_only_what_differs_is_written() -> None:
    bodies, _ = await written(there(), {"replicas": 1}, {"replicas": 1}, {"replicas": 2})
    assert [body["status"]["replicas"] for body in bodies] == [1, 2]
    assert bodies[0]["metadata"] == {"name": "b", "namespace": "shop"}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """A condition keeps its time while its status stays (L-66)."""
    same = {"type": "ReadyForProvisioning", "status": "True", "lastTransitionTime": LONG_AGO}
    (body,), _ = await written(there(same), {})
    assert body["status"]["conditions"][0]["lastTransitionTime"] == LONG_AGO
    (body,), _ = await written(there({**same, "status": "False"}), {})
    assert body["status"]["conditions"][0]["lastTransitionTime"] > LONG_AGO


@pytest.mark.asyncio(loop_scope="function")
async def test_l67_a_condition_names_the_generation_that_was_looked_at() -> None:
    (body,), _ = await written(there(), {}, generation=7)
    assert body["status"]["conditions"][0]["observedGeneration"] == 7


@pytest.mark.asyncio(loop_scope="function")
async def test_an_object_that_is_gone_is_left_alone() -> None:
    bodies, writer = await written(FakeApi(), {})
    assert (bodies, writer.error) == ([], None)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_refusal_is_tried_again() -> None:
    api = there()
    api.answers[f"PATCH {PATH}/status"] = [(403, {"message": "no"}), (200, {})]
    bodies, writer = await written(api, {}, {})
    assert (len(bodies), writer.error) == (2, None)
    api = there()
    api.answers[f"PATCH {PATH}/status"] = [(403, {"message": "no"})]
    assert isinstance((await written(api, {}))[1].error, ClusterError)
