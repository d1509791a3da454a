"""S-177 to S-181: what buffers ask for, and what a plan makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import PodShape, VolumeRef
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.capacity_buffers import (
    BufferProvisioning,
    BufferReadiness,
    BufferSources,
    buffer_provisioning,
    desired_replicas,
    resolve_buffer,
    virtual_pods,
)
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import GI, Workloads, ladder, pool, problem, shape

POD = shape(1000, GI, labels={"app": "a"}, volumes=(VolumeRef("data", "claim"),))
DIGEST, _ = content(POD)


def buffer(**fields: Any) -> CapacityBuffer:
    return CapacityBuffer("u", "shop", "b", **fields)


def sources(*workloads: Workload, templates: tuple[PodTemplate, ...] = ()) -> BufferSources:
    given, owners = (
        {template.key: template for template in templates},
        {workload.key: workload for workload in workloads},
    )
    return BufferSources(given, owners, {DIGEST: POD}.__getitem__)


def deployment(replicas: int) -> Workload:
    return Workload("apps/v1/Deployment", "shop", "d", DIGEST, replicas=replicas)


OF_TEMPLATE = sources(templates=(PodTemplate("shop", "t", DIGEST),))


# ── how many ──────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "scale", "expected"),
    [
        pytest.param({"limits": {"cpu": 8000, "memory": 4 * GI}}, None, 4, id="E-126"),
        pytest.param({"percentage": 20}, 10, 2, id="E-127 20 % of 10"),
        pytest.param({"replicas": 3, "percentage": 20}, 10, 3, id="E-127 the larger"),
        pytest.param({"replicas": 1, "percentage": 20}, 10, 2, id="S-178 the larger, the other way"),
        pytest.param({"percentage": 1}, 10, 1, id="S-178 at least one"),
        pytest.param({"percentage": 20}, 11, 3, id="S-178 rounded up"),
        pytest.param({"percentage": 20}, 0, 0, id="S-178 of nothing"),
        pytest.param({"percentage": 0}, 10, 0, id="S-178 nothing of ten"),
        pytest.param({"percentage": 50}, None, 0, id="S-178 a PodTemplate has no scale"),
        pytest.param({"replicas": 9, "limits": {"cpu": 2500}}, None, 2, id="S-178 capped"),
        pytest.param({"replicas": 9, "limits": {"nvidia.com/gpu": 1}}, None, 9, id="S-178 limits of what it lacks"),
        pytest.param({"limits": {"nvidia.com/gpu": 1}}, None, 0, id="S-178 nothing set"),
        pytest.param({}, 10, 0, id="S-178 nothing at all"),
    ],
)
def test_s178_how_many_pods(fields: dict[str, Any], scale: int | None, expected: int) -> None:
    assert desired_replicas(buffer(**fields), scale, POD.requests) == expected


def test_s177_what_a_buffer_refers_to() -> None:
    assert resolve_buffer(buffer(template="t", replicas=2), OF_TEMPLATE) == (
        resolve_buffer(buffer(kind="apps/v1/Deployment", workload="d", percentage=20), sources(deployment(10)))
    )
    reasons = {
        "no template": resolve_buffer(buffer(template="gone", replicas=1), OF_TEMPLATE).reason,
        "no workload": resolve_buffer(buffer(kind="apps/v1/Deployment", workload="d"), OF_TEMPLATE).reason,
        "no kind of it": resolve_buffer(buffer(kind="batch/v1/Job", workload="d"), sources(deployment(1))).reason,
        "neither": resolve_buffer(buffer(replicas=1), OF_TEMPLATE).reason,
        "somebody else's": resolve_buffer(buffer(template="t", replicas=1, strategy="other"), OF_TEMPLATE).reason,
    }
    assert reasons == {
        "no template": BufferReadiness.POD_TEMPLATE_NOT_FOUND,
        "no workload": BufferReadiness.SCALABLE_REF_NOT_FOUND,
        "no kind of it": BufferReadiness.RESOLUTION_FAILED,
        "neither": BufferReadiness.RESOLUTION_FAILED,
        "somebody else's": BufferReadiness.RESOLUTION_FAILED,
    }


def test_s179_the_pods_have_names_labels_and_no_volumes() -> None:
    pods, shapes = virtual_pods([buffer(template="t", replicas=2), buffer(template="gone")], OF_TEMPLATE)
    assert [(pod.uid, pod.namespace, pod.name) for pod in pods] == [
        ("u-1", "shop", "capacity-buffer-b-1"),
        ("u-2", "shop", "capacity-buffer-b-2"),
    ]
    (found,) = shapes.values()
    assert (found.labels, found.requests, found.volumes) == (POD.labels, POD.requests, ())


# ── in a plan ──────────────────────────────────────


def planned(replicas: int, given: PodShape, room: int = 0, pods: int = 0) -> Plan:
    """A plan with a buffer of so many pods, a node with `room` milli-CPU, and real pods of 500 milli-CPU."""
    work = Workloads().add("real", pods, shape(500))
    digest = work.shape(given)
    work.pods += [PendingPod(f"u-{i}", "shop", f"v-{i}", digest, virtual=True) for i in range(1, replicas + 1)]
    nodes = [NodeInput("n", "c", {}, (), {"cpu": room, "memory": 8 * GI, "pods": 9})] if room else []
    question = problem(work, ladder(2), pool(), nodes=nodes)
    answer = plan(question)
    assert faults(question, answer) == []
    return answer


def test_s180_nodes_are_opened_for_them() -> None:
    assert sorted(len(claim.pods) for claim in planned(5, shape(900)).claims) == [1, 2, 2]


def test_s180_pods_that_wait_get_the_room_that_there_is_before_larger_ones_of_a_buffer() -> None:
    answer = planned(1, shape(1000), room=1000, pods=2)
    assert [placement.pods for placement in answer.placements] == [("real-0", "real-1")]
    assert [claim.pods for claim in answer.claims] == [("u-1",)]


def test_s181_what_a_pass_says_of_a_buffer() -> None:
    small = shape(500)
    given = buffer(template="t", replicas=2)
    found = replace(resolve_buffer(given, OF_TEMPLATE), shape=small)
    assert buffer_provisioning(given, found, planned(2, small, room=2000)) is BufferProvisioning.FITS
    assert buffer_provisioning(given, found, planned(2, small, room=600)) is BufferProvisioning.REQUIRES_NEW
    assert buffer_provisioning(given, found, planned(2, shape(90_000))) is BufferProvisioning.REQUIRES_NEW
    assert buffer_provisioning(given, found, Plan()) is None
    assert buffer_provisioning(given, replace(found, replicas=0), Plan()) is BufferProvisioning.EMPTY
    missing = resolve_buffer(buffer(template="gone"), OF_TEMPLATE)
    assert buffer_provisioning(given, missing, Plan()) is BufferProvisioning.NOT_READY
