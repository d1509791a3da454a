"""observe mode beside a Karpenter, with rights to read: it records, decides, compares, and writes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.karpenter import Karpenter
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    node_claims,
    node_class,
    node_pool,
    running_pods,
)

AUDITED = True
READING = ("get", "list", "watch")
pytestmark = pytest.mark.slow


@pytest.fixture
def reader(plane: ControlPlane, tmp_path: Path) -> Path:
    """A kubeconfig of a ServiceAccount that may read everything and write nothing."""
    meta = {"name": "kerf-observe", "namespace": "default"}
    rbac = "rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": list(READING)}]
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    for path, body in (
        ("clusterroles", {"kind": "ClusterRole", "metadata": {"name": "kerf-observe"}, "rules": rules}),
        (
            "clusterrolebindings",
            {
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "kerf-observe"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kerf-observe"},
                "subjects": [{"kind": "ServiceAccount", **meta}],
            },
        ),
    ):
        status, found = plane.request("POST", f"/apis/{rbac}/{path}", {"apiVersion": rbac, **body})
        assert status == 201, found
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    status, found = plane.request("POST", "/api/v1/namespaces/default/serviceaccounts/kerf-observe/token", asked)
    assert status == 201, found
    settings = json.loads(plane.kubeconfig.read_text())
    settings["users"][0]["user"]["token"] = found["status"]["token"]
    file = tmp_path / "reader"
    file.write_text(json.dumps(settings))
    return file


def report(kerf: Kerf) -> dict[str, Any]:
    command = [sys.executable, "-m", "kerf", "observe", "report", str(kerf.record), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"batches": [], "removals": [], "wanted": []}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_compares_itself_with_karpenter_and_writes_nothing(
    plane: ControlPlane, reader: Path, tmp_path: Path
) -> None:
    """Issue 6, point 7. Karpenter takes one large node for what fits on a smaller one, and removes another."""
    plane.apply(node_class())
    plane.apply(node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    karpenter = Karpenter(plane)
    kerf = Kerf(plane, tmp_path, "--mode", "observe")
    kerf.kubeconfig = reader
    kerf.start()
    try:
        plane.apply(deployment("a", 6, "500m"))
        eventually(lambda: report(kerf)["batches"], kerf=kerf)
        assert not node_claims(plane)
        karpenter.launch("default-large", "m-16x-amd64-linux", "15900m", "0.537")
        eventually(lambda: len(running_pods(plane)) == 6, kerf=kerf)
        karpenter.launch("default-spare", "c-2x-amd64-linux", "1900m", "0.054")
        empty = eventually(lambda: [w for w in report(kerf)["wanted"] if w["claim"] == "default-spare"], kerf=kerf)
        assert empty[0]["reason"] == "empty"
        karpenter.remove("default-spare", "Empty")
        (removal,) = eventually(lambda: report(kerf)["removals"], kerf=kerf)
        assert (removal["claim"], removal["karpenter"]) == ("default-spare", "empty")
        assert (removal["kerf"], removal["reason"]) == ("remove", "empty")
        assert kerf.stop() == 0
    finally:
        if kerf.running:
            kerf.kill()
    (batch,) = report(kerf)["batches"]
    assert (batch["pods"], batch["bound"], batch["elsewhere"]) == (6, 6, 0)
    assert (batch["kerf"]["nodes"], batch["karpenter"]["nodes"]) == (1, 1)
    assert batch["kerf"]["price"] < batch["karpenter"]["price"]
    assert "same" in kerf.verify()
    asked = plane.requests_by("kerf/")
    assert any(request.startswith("watch pods") for request in asked), "the audit log has kerf's requests"
    assert {request.split()[0] for request in asked} <= set(READING)
    assert all(may(plane, reader, verb) == (verb in READING) for verb in (*READING, "create", "patch", "delete"))


def may(plane: ControlPlane, reader: Path, verb: str) -> bool:
    """Whether the API server lets the reader do so with pods, nodes' status and NodeClaims alike."""
    answers = []
    for group, resource in (("", "pods"), ("", "nodes"), ("karpenter.sh", "nodeclaims")):
        attributes = {"group": group, "resource": resource, "verb": verb, "namespace": ""}
        spec = {"user": "system:serviceaccount:default:kerf-observe", "resourceAttributes": attributes}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answers.append(plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)[1])
    allowed = {answer["status"]["allowed"] for answer in answers}
    assert len(allowed) == 1
    return bool(allowed.pop())


def test_two_observers_do_not_write_one_record(plane: ControlPlane, tmp_path: Path) -> None:
    """A file lock instead of a Lease; and a record of one mode is not continued in the other."""
    first, second = (Kerf(plane, tmp_path, "--mode", "observe") for _ in range(2))
    first.start()
    try:
        eventually(lambda: first.record.exists() and report(first) is not None, kerf=first)
        second.start()
        eventually(lambda: not second.running)
        assert "KERF343" in second.tail(1)
    finally:
        assert first.stop() == 0
    acting = Kerf(plane, tmp_path, "--lease-name", "other-mode")
    acting.start()
    eventually(lambda: not acting.running)
    assert "KERF342" in acting.tail(1)
