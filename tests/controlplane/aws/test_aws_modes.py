"""`kerf run --provider aws` with the chart's rights and no others, and in observe mode, which changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.engine.record.decisions import Decision, ProvisionResult
from tests.support.controlplane.aws import Aws, aws_of, ec2_node_class, ec2_node_pool
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.rights import doctor, kubeconfig
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    is_true,
    node_claims,
    recorded,
    running_pods,
)
from tests.support.servers.helm import rendered

AUDITED = True
CLASS = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default"
KARPENTERS = {
    "karpenter.k8s.aws/ec2nodeclass-hash": "1234",
    "karpenter.k8s.aws/ec2nodeclass-hash-version": "v6",
}
READING = ("Describe", "Get", "List")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def aws(plane: ControlPlane) -> Iterator[Aws]:
    with aws_of(plane) as made:
        yield made


def kerf_on(plane: ControlPlane, aws: Aws, folder: Path, *flags: str) -> Kerf:
    process = Kerf(plane, folder, "--provider", "aws", *flags)
    process.environment = {**aws.endpoint.environment, "CLUSTER_NAME": CLUSTER, "INTERRUPTION_QUEUE": CLUSTER}
    return process


def planned(kerf: Kerf) -> list[ProvisionResult]:
    """The passes that would launch something."""
    found = [payload.result for payload in recorded(kerf.record) if isinstance(payload, Decision)]
    return [result for result in found if isinstance(result, ProvisionResult) and result.claims]


def test_observe_mode_plans_by_karpenters_status_and_changes_nothing(
    plane: ControlPlane, aws: Aws, tmp_path: Path
) -> None:
    """Issue 6, point 7: reads only, of the API server and of AWS; the queue is left to Karpenter."""
    plane.apply({**ec2_node_class(), "metadata": {"name": "default", "annotations": KARPENTERS}})
    plane.apply(ec2_node_pool())
    subnets = aws.shim.ec2.describe_subnets(Filters=[{"Name": "tag-key", "Values": ["karpenter.sh/discovery"]}])
    (group,) = aws.shim.ec2.describe_security_groups(GroupNames=["nodes"])["SecurityGroups"]
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    status = {
        "subnets": [{"id": subnet["SubnetId"], "zone": subnet["AvailabilityZone"]} for subnet in subnets["Subnets"]],
        "securityGroups": [{"id": group["GroupId"]}],
        "amis": [
            {"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}
        ],
        "instanceProfile": "karpenters",
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    answer = plane.request("PATCH", f"{CLASS}/status", {"status": status}, "application/merge-patch+json")
    assert answer[0] == 200, answer
    plane.apply(deployment("web", 3, "1"))
    before = len(aws.endpoint.calls)
    kerf = kerf_on(plane, aws, tmp_path, "--mode", "observe")
    kerf.start()
    try:
        (result,) = eventually(lambda: planned(kerf), kerf=kerf)
        assert result.claims[0].instance_types
        aws.operator.interrupt_spot("i-0123456789abcdef0")
        assert kerf.stop() == 0
    finally:
        if kerf.running:
            kerf.kill()
    assert not node_claims(plane)
    assert {call for call in aws.endpoint.calls[before:] if not call.startswith(READING)} == set()
    asked = plane.requests_by("kerf/")
    assert asked
    assert {request.split()[0] for request in asked} <= {"get", "list", "watch"}
    found = plane.request("GET", CLASS)[1]
    assert "finalizers" not in found["metadata"]
    assert found["status"]["instanceProfile"] == "karpenters"
    counted = aws.shim.sqs.get_queue_attributes(
        QueueUrl=aws.operator.queue_url, AttributeNames=["ApproximateNumberOfMessages"]
    )
    assert counted["Attributes"]["ApproximateNumberOfMessages"] == "1"
    assert "same" in kerf.verify()


def test_the_charts_rights_are_enough(plane: ControlPlane, aws: Aws, tmp_path: Path) -> None:
    """A-403, and taking over what Karpenter has left: nothing of kerf's is forbidden on the way."""
    kerf = kerf_on(plane, aws, tmp_path, "--leader-election-namespace", "kerf")
    kerf.kubeconfig = kubeconfig(
        plane, rendered("provider=aws", "settings.clusterName=workshop"), tmp_path / "kubeconfig"
    )
    kerf.start()
    try:
        eventually(lambda: len(running_pods(plane)) == 3, kerf=kerf, seconds=90)
        found = plane.request("GET", CLASS)[1]
        assert is_true(found, "ValidationSucceeded")
        assert KARPENTERS.items() <= found["metadata"]["annotations"].items()  # what drifted stays drifted
        done = doctor(kerf, *kerf.flags, environment=kerf.environment)
        assert (done.returncode, "all 11 kinds" in done.stdout) == (0, True), done.stdout
        aws.endpoint.refuse = {"DescribeImages"}
        refused = doctor(kerf, *kerf.flags, environment=kerf.environment)
        assert (refused.returncode, "ec2:DescribeImages" in refused.stdout) == (1, True), refused.stdout
        aws.endpoint.refuse = set()
        assert plane.request("DELETE", "/apis/karpenter.sh/v1/nodepools/default")[0] == 200
        assert plane.request("DELETE", CLASS)[0] == 200
        eventually(lambda: plane.request("GET", CLASS)[0] == 404, kerf=kerf, seconds=120)
    finally:
        if kerf.running:
            assert kerf.stop() == 0
    own = [request for request in plane.audited() if request["user"]["username"] == "system:serviceaccount:kerf:kerf"]
    assert {request["requestURI"] for request in own if request.get("responseStatus", {}).get("code") == 403} == set()
    assert "same" in kerf.verify()


def test_told_to_stop_while_it_still_asks_ec2_it_stops(plane: ControlPlane, aws: Aws, tmp_path: Path) -> None:
    """Before anything was recorded of NodeClasses, and without an error."""
    answered = aws.endpoint.held["DescribeInstanceTypes"] = threading.Event()
    kerf = kerf_on(plane, aws, tmp_path, "--lease-name", "stopped")
    kerf.start()
    try:
        eventually(lambda: kerf.record.exists() and aws.calls("DescribeInstanceTypes"), kerf=kerf)
        threading.Timer(1, answered.set).start()
        assert kerf.stop() == 0
    finally:
        answered.set()
        del aws.endpoint.held["DescribeInstanceTypes"]
        if kerf.running:
            kerf.kill()
