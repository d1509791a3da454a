"""`kerf run --provider aws` on a real API server and scheduler, against moto on 127.0.0.1."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.mock.environment import CLUSTER, ROLE
from kerf.engine.model.karpenter.nodeclass_terms import MADE
from kerf.engine.record.claim_events import Requested, Tainted
from kerf.engine.record.observations import InputRefused, InterruptionSeen, LaunchAnswered
from tests.support.controlplane.aws import MERGE, Aws, aws_of, ec2_node_class, ec2_node_pool, tags_of
from tests.support.controlplane.live import CLAIMS, QUICK
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    is_true,
    node_claims,
    recorded,
    running_pods,
)

CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
PATIENCE = 240
"""Seconds until a test gives up, on cores that do other work too. Of a node's replacement time alone takes 27: the
second look 15 (D-108), the boot 5, the drain 5, the end 2."""
T = TypeVar("T")
pytestmark = pytest.mark.slow


def until(what: Callable[[], T], kerf: Kerf) -> T:
    return eventually(what, seconds=PATIENCE, kerf=kerf)


@pytest.fixture(scope="module")
def aws(plane: ControlPlane) -> Iterator[Aws]:
    with aws_of(plane) as made:
        yield made


@pytest.fixture
def kerf(plane: ControlPlane, aws: Aws, tmp_path: Path) -> Iterator[Kerf]:
    """In control mode, on the served account; started by the test."""
    name = tmp_path.name[:50].replace("_", "-").lower()
    process = Kerf(plane, tmp_path, "--provider", "aws", "--lease-name", name)
    process.environment = {**aws.endpoint.environment, "CLUSTER_NAME": CLUSTER, "INTERRUPTION_QUEUE": CLUSTER}
    try:
        yield process
    finally:
        if process.running:
            process.kill()


def node_class(plane: ControlPlane, name: str = "default") -> dict[str, Any]:
    status, found = plane.request("GET", f"{CLASSES}/{name}")
    return dict(found) if status == 200 else {}


def test_a_node_comes_from_ec2_and_goes_again(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """A-54, A-56, A-66, A-74: the class; A-273, A-321: the instance; and its end."""
    kerf.start()
    plane.apply(ec2_node_class())
    plane.apply(ec2_node_pool(disruption={"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}))
    plane.apply(deployment("web", 3, "1"))
    until(lambda: is_true(node_class(plane), "Ready"), kerf)
    found = node_class(plane)
    assert found["metadata"]["finalizers"] == ["karpenter.k8s.aws/termination"]
    assert found["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash-version"] == MADE
    assert len(found["status"]["subnets"]) == 3
    assert found["status"]["securityGroups"][0]["name"] == "nodes"
    assert found["status"]["instanceProfile"].startswith(f"{CLUSTER}_")
    assert {condition["observedGeneration"] for condition in found["status"]["conditions"]} == {1}
    until(lambda: len(running_pods(plane)) == 3, kerf)
    (claim,) = until(
        lambda: [node_claim for node_claim in node_claims(plane) if is_true(node_claim, "Initialized")], kerf
    )
    (instance,) = aws.instances()
    assert claim["status"]["providerID"].endswith(instance["InstanceId"])
    assert tags_of(instance)["karpenter.sh/nodeclaim"] == claim["metadata"]["name"]
    profile = aws.shim.iam.get_instance_profile(InstanceProfileName=found["status"]["instanceProfile"])
    assert [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]] == [ROLE]
    assert plane.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")[0] == 200
    until(lambda: not node_claims(plane), kerf)
    assert not aws.instances()
    assert not plane.items("/api/v1/nodes")
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def settled(plane: ControlPlane, kerf: Kerf, pods: int) -> set[str]:
    """All pods run and all claims are ready; the claims' names."""
    until(lambda: len(running_pods(plane)) == pods, kerf)
    until(lambda: all(is_true(node_claim, "Ready") for node_claim in node_claims(plane)), kerf)
    return names(plane)


def alone(plane: ControlPlane, kerf: Kerf, pods: int) -> set[str]:
    """As `settled`, once no other claim is left that is still going."""
    until(lambda: len(names(plane)) == 1, kerf)
    return settled(plane, kerf, pods)


def names(plane: ControlPlane) -> set[str]:
    return {node_claim["metadata"]["name"] for node_claim in node_claims(plane)}


def tainted(kerf: Kerf) -> list[tuple[str, set[str]]]:
    """Why the record's nodes were to go, and the claims of each reason."""
    by_reason: dict[str, set[str]] = {}
    for payload in recorded(kerf.record):
        if isinstance(payload, Tainted):
            by_reason.setdefault(payload.why, set()).add(payload.claim)
    return sorted(by_reason.items())


def test_an_interrupted_instance_is_drained_and_replaced(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """A-343, A-346, A-355: the message is deleted when it is recorded; garbage is refused and deleted too."""
    plane.apply(deployment("interrupted", 3, "1"))
    kerf.start()
    before = settled(plane, kerf, 3)
    (old,) = aws.instances()
    aws.operator.send("{")
    aws.operator.interrupt_spot(old["InstanceId"])
    until(lambda: not before & names(plane), kerf)
    assert settled(plane, kerf, 3)
    (new,) = aws.instances()
    assert new["InstanceId"] != old["InstanceId"]
    node = aws.nodes[new["InstanceId"]]
    until(lambda: tags_of(aws.instances()[0]).get("Name") == node, kerf)
    assert kerf.stop() == 0
    seen = recorded(kerf.record)
    assert [payload.why for payload in seen if isinstance(payload, Tainted)] == ["interrupted"]
    assert [payload.code for payload in seen if isinstance(payload, InputRefused)] == ["KERF350"]
    assert sum(isinstance(payload, InterruptionSeen) for payload in seen) == 1
    counted = aws.shim.sqs.get_queue_attributes(
        QueueUrl=aws.operator.queue_url,
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )
    assert set(counted["Attributes"].values()) == {"0"}
    assert "same" in kerf.verify()


def test_an_instance_whose_system_check_fails_goes_at_once(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """A-351, A-361: without the queue, and its pods are not waited for. Nobody else's instance is looked after."""
    (old,) = aws.instances()
    since = datetime.now(UTC) - timedelta(minutes=3)
    details = [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]
    aws.shim.unwell = [
        {"InstanceId": instance, "SystemStatus": {"Status": "impaired", "Details": details}}
        for instance in (old["InstanceId"], "i-0123456789abcdef0")
    ]
    kerf.start()
    until(lambda: [payload for payload in recorded(kerf.record) if isinstance(payload, Tainted)], kerf)
    until(lambda: aws.instances() and aws.instances()[0]["InstanceId"] != old["InstanceId"], kerf)
    aws.shim.unwell = []
    assert settled(plane, kerf, 3)
    assert kerf.stop() == 0
    seen = recorded(kerf.record)
    assert [payload.kind for payload in seen if isinstance(payload, InterruptionSeen)] == ["system_status"]
    (tainted,) = [payload for payload in seen if isinstance(payload, Tainted)]
    assert (tainted.why, tainted.deadline is not None) == ("interrupted", True)
    assert "same" in kerf.verify()


def test_a64_a_changed_class_replaces_its_node_on_ec2(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """D-64: the replacement has the class's new tag, and is there before the old instance ends."""
    (old,) = aws.instances()
    kerf.start()
    before = alone(plane, kerf, 3)
    change = {"spec": {"tags": {"team": "payments"}}}
    assert plane.request("PATCH", f"{CLASSES}/default", change, MERGE)[0] == 200
    until(lambda: not before & names(plane), kerf)
    alone(plane, kerf, 3)
    (new,) = aws.instances()
    assert tags_of(new)["team"] == "payments" != tags_of(old).get("team")
    assert kerf.stop() == 0
    assert tainted(kerf) == [("drifted", before)]
    assert "same" in kerf.verify()


def test_d98_a_node_too_large_for_its_pod_gives_way_to_a_cheaper_instance(
    plane: ControlPlane, aws: Aws, kerf: Kerf
) -> None:
    """Its pod came less than ten minutes ago: more than half of the price has to be saved."""
    kerf.flags += QUICK
    kerf.start()
    assert plane.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/interrupted")[0] == 200
    for name in names(plane):
        assert plane.request("DELETE", f"{CLAIMS}/{name}")[0] == 200
    until(lambda: not names(plane) and not running_pods(plane), kerf)
    change = {"spec": {"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized"}}}
    assert plane.request("PATCH", "/apis/karpenter.sh/v1/nodepools/default", change, MERGE)[0] == 200
    plane.apply(deployment("interrupted", 6, "1"))
    before = alone(plane, kerf, 6)
    (old,) = aws.instances()
    scale = "/apis/apps/v1/namespaces/default/deployments/interrupted/scale"
    assert plane.request("PATCH", scale, {"spec": {"replicas": 1}}, MERGE)[0] == 200
    until(lambda: not before & names(plane), kerf)
    alone(plane, kerf, 1)
    (new,) = aws.instances()
    sizes = [tables().types[instance["InstanceType"]].vcpus for instance in (old, new)]
    assert sizes[1] < sizes[0]
    assert kerf.stop() == 0
    assert ("underutilized", before) in tainted(kerf)
    assert "same" in kerf.verify()


def test_a_class_is_not_deleted_while_claims_use_it(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """A-81, A-219: it waits with an Event; then its profiles and templates go, and it."""
    kerf.start()
    claims = settled(plane, kerf, 1)
    profile = node_class(plane)["status"]["instanceProfile"]
    assert plane.request("DELETE", f"{CLASSES}/default")[0] == 200
    until(lambda: waiting(plane, claims), kerf)
    assert node_class(plane)["metadata"]["deletionTimestamp"]
    assert plane.request("DELETE", "/apis/karpenter.sh/v1/nodepools/default")[0] == 200
    until(lambda: not node_class(plane), kerf)
    assert not node_claims(plane)
    assert not aws.instances()
    templates = aws.shim.ec2.describe_launch_templates()["LaunchTemplates"]
    assert not templates
    named = [
        instance_profile["InstanceProfileName"]
        for instance_profile in aws.shim.iam.list_instance_profiles()["InstanceProfiles"]
    ]
    assert profile not in named
    plane.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/interrupted")
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def waiting(plane: ControlPlane, claims: set[str]) -> list[dict[str, Any]]:
    events = plane.items("/api/v1/namespaces/default/events")
    told = [event for event in events if event["reason"] == "WaitingOnNodeClaimTermination"]
    return [event for event in told if all(claim in event["message"] for claim in claims)]


def test_what_has_no_capacity_is_bought_elsewhere(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """A-212, A-291: spot is not to be had at all; the next claim is on demand."""
    aws.operator.shortage(capacity_type="spot")
    plane.apply(ec2_node_class())
    pool = ec2_node_pool(disruption={"consolidateAfter": "Never"})
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    (kinds,) = [requirement for requirement in requirements if requirement["key"] == "karpenter.sh/capacity-type"]
    kinds["values"] = ["on-demand", "spot"]
    plane.apply(pool)
    plane.apply(deployment("elsewhere", 2, "1"))
    kerf.start()
    settled(plane, kerf, 2)
    aws.operator.plan.clear()
    assert kerf.stop() == 0
    answers = [payload for payload in recorded(kerf.record) if isinstance(payload, LaunchAnswered)]
    assert answers[0].kind == "insufficient-capacity"
    assert (answers[-1].capacity_type, bool(answers[-1].instance)) == ("on-demand", True)
    (instance,) = aws.instances()
    assert "InstanceLifecycle" not in instance
    assert "same" in kerf.verify()


def test_killed_while_ec2_launches_it_launches_nothing_twice(plane: ControlPlane, aws: Aws, kerf: Kerf) -> None:
    """Design, idea 4: the instance is there, the answer never came; the next process finds it by its tag."""
    kerf.start()
    settled(plane, kerf, 2)
    answered = aws.endpoint.held["CreateFleet"] = threading.Event()
    before, calls = len(aws.instances()), aws.calls("CreateFleet")
    plane.apply(deployment("killed", 2, "3"))
    until(lambda: len(aws.instances()) > before, kerf)
    kerf.kill()
    del aws.endpoint.held["CreateFleet"]
    answered.set()
    kerf.start()
    settled(plane, kerf, 4)
    assert kerf.stop() == 0
    launches = [payload for payload in recorded(kerf.record) if isinstance(payload, Requested)]
    assert len(aws.instances()) == before + len({launch.claim for launch in launches})
    assert aws.calls("CreateFleet") == calls + len(launches)
    found = [payload for payload in recorded(kerf.record) if isinstance(payload, LaunchAnswered) and payload.adopted]
    assert found
    assert "same" in kerf.verify()
