"""Statuses that are written when they differ, with the times of the conditions that stay (L-66)."""

from __future__ import annotations

import asyncio
from typing import Any

from kerf.adapters.kubernetes.errors import ClusterError
from kerf.adapters.kubernetes.objects.status import Commented, StatusWriter
from tests.support.servers.fake_kubernetes import FakeApi, serving

BUFFER = Commented("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "capacitybuffers", "b", "shop")
PATH = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/b"
READY = ("ReadyForProvisioning", True, "Resolved", "")
LONG_AGO = "2020-01-01T00:00:00Z"


def written(api: FakeApi, *statuses: dict[str, Any]) -> tuple[list[Any], StatusWriter]:
    api.answers.setdefault(f"PATCH {PATH}/status", [(200, {})])

    async def run() -> StatusWriter:
        async with serving(api) as session:
            writer = StatusWriter(session)
            for status in statuses:
                await writer.write(BUFFER, status, [READY])
            return writer

    writer = asyncio.run(run())
    return [body for method, _, _, body in api.asked if method == "PATCH"], writer


def there(*conditions: dict[str, str]) -> FakeApi:
    api = FakeApi()
    api.answers[f"GET {PATH}"] = [(200, {"status": {"conditions": list(conditions)}})]
    return api


def test_only_what_differs_is_written() -> None:
    bodies, _ = written(there(), {"replicas": 1}, {"replicas": 1}, {"replicas": 2})
    assert [body["status"]["replicas"] for body in bodies] == [1, 2]
    assert bodies[0]["metadata"] == {"name": "b", "namespace": "shop"}


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """A condition keeps its time while its status stays (L-66)."""
    same = {"type": "ReadyForProvisioning", "status": "True", "lastTransitionTime": LONG_AGO}
    (body,), _ = written(there(same), {})
    assert body["status"]["conditions"][0]["lastTransitionTime"] == LONG_AGO
    (body,), _ = written(there({**same, "status": "False"}), {})
    assert body["status"]["conditions"][0]["lastTransitionTime"] > LONG_AGO


def test_an_object_that_is_gone_is_left_alone() -> None:
    bodies, writer = written(FakeApi(), {})
    assert (bodies, writer.error) == ([], None)


def test_a_refusal_is_tried_again() -> None:
    api = there()
    api.answers[f"PATCH {PATH}/status"] = [(403, {"message": "no"}), (200, {})]
    bodies, writer = written(api, {}, {})
    assert (len(bodies), writer.error) == (2, None)
    api = there()
    api.answers[f"PATCH {PATH}/status"] = [(403, {"message": "no"})]
    assert isinstance(written(api, {})[1].error, ClusterError)
