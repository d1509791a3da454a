"""Writes: which requests they become, what their answers mean, and what a conflict does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kerf.adapters.kubernetes.objects.cluster_writes import KubernetesCluster, Written
from kerf.adapters.kubernetes.objects.node_cache import NodeCache
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import EffectAnswered
from tests.support.servers.fake_kubernetes import Document, FakeApi, serving

pytestmark = pytest.mark.real_time

NODE = "/api/v1/nodes/n1"
POD = "/api/v1/namespaces/default/pods/web"
CONFLICT: tuple[int, Document] = (409, {"kind": "Status", "message": "the object has been modified", "code": 409})


def node(*taints: Document, version: str = "7", **metadata: Any) -> Document:
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "uid": "u1", "resourceVersion": version, **metadata},
        "spec": {"providerID": "kwok://n1", "taints": list(taints)},
    }


UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}


async def write(
    api: FakeApi,
    effect: Callable[[KubernetesCluster], EffectAnswered],
    *,
    cached: Document | None = None,
    nominated: Written | None = None,
) -> EffectAnswered:
    """Carries out one effect from a thread, as the controller does."""

    async def uid(claim: str) -> str:
        return f"uid-of-{claim}"

    async with serving(api) as session:
        cache = NodeCache()
        if cached is not None:
            cache.put("n1", json.dumps(cached).encode())
        cluster = KubernetesCluster(session, Bridge(asyncio.get_running_loop()), cache, uid, nominated)
        return await asyncio.to_thread(effect, cluster)


def patches(api: FakeApi) -> list[Any]:
    return [body for method, _, _, body in api.asked if method == "PATCH"]


def register(cluster: KubernetesCluster) -> EffectAnswered:
    order = RegisterNode("c1", "n1", {"team": "a"}, {"note": "x"}, (Taint("gpu", "NoSchedule", "yes"),))
    return cluster.register(order, intent="5.0")


@pytest.mark.asyncio(loop_scope="function")
async def test_registration_is_one_write_when_the_node_is_known() -> None:
    """Registration is one write when the node is known (L-163, L-164)."""
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    answer = await write(api, register, cached=node(UNREGISTERED, NOT_READY, finalizers=["other/finalizer"]))
    assert answer == EffectAnswered("5.0", ok=True, code="200")
    assert [(method, path) for method, path, _, _ in api.asked] == [("PATCH", NODE)]
    assert patches(api) == [
        {
            "metadata": {
                "labels": {"team": "a", "karpenter.sh/registered": "true"},
                "annotations": {"note": "x"},
                "finalizers": ["other/finalizer", "karpenter.sh/termination"],
                "ownerReferences": [
                    {
                        "apiVersion": "karpenter.sh/v1",
                        "kind": "NodeClaim",
                        "name": "c1",
                        "uid": "uid-of-c1",
                        "blockOwnerDeletion": True,
                    }
                ],
                "resourceVersion": "7",
            },
            "spec": {"taints": [NOT_READY, {"key": "gpu", "effect": "NoSchedule", "value": "yes"}]},
        }
    ]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_is_registered_when_its_pods_are_nominated() -> None:
    """The scheduler may bind any pod to it from then on."""
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    waited: list[tuple[str, int]] = []

    async def nominated(name: str) -> None:
        waited.append((name, len(api.asked)))

    answer = await write(api, register, cached=node(UNREGISTERED), nominated=nominated)
    assert (answer.ok, waited) == (True, [("n1", 0)])


@pytest.mark.asyncio(loop_scope="function")
async def test_registration_keeps_taints_of_the_same_key_and_effect_and_the_owner_that_is_there() -> None:
    """Registration keeps taints of the same key and effect and the owner that is there (L-484)."""
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    mine = {"key": "gpu", "effect": "NoSchedule", "value": "no"}
    await write(api, register, cached=node(mine, ownerReferences=[{"kind": "NodeClaim", "uid": "uid-of-c1"}]))
    (patch,) = patches(api)
    assert patch["spec"]["taints"] == [mine]
    assert "ownerReferences" not in patch["metadata"]


@pytest.mark.asyncio(loop_scope="function")
async def test_taints_are_not_synced_where_the_label_says_so_but_the_unregistered_one_goes() -> None:
    """Taints are not synced where the label says so but the unregistered one goes (L-485)."""
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    await write(api, register, cached=node(UNREGISTERED, labels={"karpenter.sh/do-not-sync-taints": "true"}))
    assert patches(api)[0]["spec"]["taints"] is None


@pytest.mark.asyncio(loop_scope="function")
async def test_after_a_conflict_the_write_is_made_from_the_node_as_it_is_then() -> None:
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [CONFLICT, (200, node(version="9"))]
    api.answers[f"GET {NODE}"] = [(200, node(NOT_READY, version="8"))]
    answer = await write(api, lambda cluster: cluster.taint(TaintNode("c1", "n1"), intent="6.0"), cached=node())
    assert answer.ok
    assert [method for method, _, _, _ in api.asked] == ["PATCH", "GET", "PATCH"]
    first, second = patches(api)
    disrupted = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    assert (first["metadata"]["resourceVersion"], first["spec"]["taints"]) == ("7", [disrupted])
    assert (second["metadata"]["resourceVersion"], second["spec"]["taints"]) == ("8", [NOT_READY, disrupted])
    assert second["metadata"]["labels"] == {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}


@pytest.mark.asyncio(loop_scope="function")
async def test_conflicts_without_end_are_a_failure_that_is_tried_again_later() -> None:
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [CONFLICT]
    api.answers[f"GET {NODE}"] = [(200, node())]
    answer = await write(api, lambda cluster: cluster.taint(TaintNode("c1", "n1"), intent="6.0"))
    assert (answer.ok, answer.code) == (False, "409")
    assert len(patches(api)) == 5


@pytest.mark.asyncio(loop_scope="function")
async def test_untainting_takes_label_and_taint_away() -> None:
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    disrupted = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    await write(api, lambda c: c.untaint(UntaintNode("c1", "n1"), intent="6.0"), cached=node(disrupted, NOT_READY))
    assert patches(api) == [
        {
            "metadata": {
                "labels": {"node.kubernetes.io/exclude-from-external-load-balancers": None},
                "resourceVersion": "7",
            },
            "spec": {"taints": [NOT_READY]},
        }
    ]


@pytest.mark.asyncio(loop_scope="function")
async def test_initialization_is_a_label_and_nothing_that_could_conflict() -> None:
    api = FakeApi()
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    await write(api, lambda c: c.initialize(InitializeNode("c1", "n1"), intent="6.0"), cached=node())
    assert patches(api) == [{"metadata": {"labels": {"karpenter.sh/initialized": "true"}}}]


@pytest.mark.asyncio(loop_scope="function")
async def test_an_eviction_names_the_pod_by_its_uid_and_its_refusals_keep_their_codes() -> None:
    """An eviction names the pod by its UID and its refusals keep their codes (L-205, L-206)."""
    order = EvictPod("c1", "n1", "uid-1", "default", "web")
    for status, ok in ((201, True), (404, False), (409, False), (429, False), (500, False)):
        api = FakeApi()
        api.answers[f"POST {POD}/eviction"] = [(status, {"message": "said"})]
        answer = await write(api, lambda cluster: cluster.evict(order, intent="6.0"))
        assert (answer.ok, answer.code) == (ok, "200" if ok else str(status))
        assert answer.message == ("" if ok else "said")
        assert api.asked[0][3]["deleteOptions"] == {"preconditions": {"uid": "uid-1"}}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_forced_deletion_has_a_grace_period_and_a_uid() -> None:
    """A forced deletion has a grace period and a UID (D-152)."""
    api = FakeApi()
    api.answers[f"DELETE {POD}"] = [(200, {})]
    order = DeletePod("c1", "n1", "uid-1", "default", "web", grace=7)
    assert (await write(api, lambda cluster: cluster.delete_pod(order, intent="6.0"))).ok
    body = api.asked[-1][3]
    assert (body["gracePeriodSeconds"], body["preconditions"]) == (7, {"uid": "uid-1"})


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("status", [200, 403, 409])
async def test_d152_a_pod_that_goes_by_force_is_told_so_before(status: int) -> None:
    """Its condition DisruptionTarget says it, as for an eviction. Without it the pod goes all the same."""
    api = FakeApi()
    api.answers[f"PATCH {POD}/status"] = [(status, {})]
    api.answers[f"DELETE {POD}"] = [(200, {})]
    order = DeletePod("c1", "n1", "uid-1", "default", "web", grace=7)
    assert (await write(api, lambda cluster: cluster.delete_pod(order, intent="6.0"))).ok
    (first, second) = api.asked
    assert (first[0], first[1], second[0]) == ("PATCH", f"{POD}/status", "DELETE")
    assert first[3]["metadata"] == {"uid": "uid-1"}, "not another pod of this name"
    (condition,) = first[3]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionTarget", "True", "DeletionByKarpenter",
    )  # fmt: skip
    assert api.headers[0]["Content-Type"] == "application/strategic-merge-patch+json"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_is_deleted_before_its_finalizer_goes_and_others_keep_theirs() -> None:
    """A node is deleted before its finalizer goes and others keep theirs (L-201)."""
    api = FakeApi()
    deleting = node(version="8", finalizers=["karpenter.sh/termination", "other/finalizer"])
    api.answers[f"DELETE {NODE}"] = [(200, deleting)]
    api.answers[f"PATCH {NODE}"] = [(200, node())]
    answer = await write(api, lambda cluster: cluster.delete_node(DeleteNode("c1", "n1"), intent="6.0"))
    assert answer == EffectAnswered("6.0", ok=True, code="200")
    assert [method for method, _, _, _ in api.asked] == ["DELETE", "PATCH"]
    assert patches(api)[0]["metadata"] == {"finalizers": ["other/finalizer"], "resourceVersion": "8"}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_node_that_is_gone_already_is_told_as_such() -> None:
    api = FakeApi()
    answer = await write(api, lambda cluster: cluster.delete_node(DeleteNode("c1", "n1"), intent="6.0"))
    assert (answer.ok, answer.code) == (False, "404")
