"""kerf capture on a real API server, with the rights that docs/capture.md gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.controlplane.karpenter import Karpenter
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.rights import RBAC, kubeconfig
from tests.support.controlplane.running import deployment, eventually, node_class, node_pool, running_pods
from tests.support.repository import ROOT

AUDITED = True
pytestmark = pytest.mark.slow


def kerf(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kerf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def json_of(*arguments: str) -> Any:
    done = kerf(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reader(plane: ControlPlane, place: Path) -> Path:
    """A kubeconfig of a ServiceAccount with the ClusterRole of the page, and nothing else."""
    page = (ROOT / "docs/capture.md").read_text()
    role = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "kerf-capture"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kerf-capture"},
        "subjects": [{"kind": "ServiceAccount", "name": "kerf", "namespace": "kerf"}],
    }  # fmt: skip
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kerf", "namespace": "kerf"}}
    return kubeconfig(plane, [account, role, binding], place)


def test_a_live_cluster_is_captured_without_a_trace(plane: ControlPlane, tmp_path: Path) -> None:
    """Issue 16, point 8. One node runs pods, one is empty, and one pod fits on neither."""
    plane.apply(node_class())
    plane.apply(node_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}))
    karpenter = Karpenter(plane)
    karpenter.launch("default-used", "c-2x-amd64-linux", "1900m", "0.054")
    plane.apply(deployment("web", 2, "800m"))
    eventually(lambda: len(running_pods(plane)) == 2)
    karpenter.launch("default-spare", "c-2x-amd64-linux", "1900m", "0.054")
    plane.apply(deployment("huge", 1, "12"))
    eventually(lambda: len(plane.items("/api/v1/namespaces/default/pods")) == 3)
    file, config = str(tmp_path / "now.kerfb"), str(reader(plane, tmp_path / "kubeconfig"))

    done = kerf("capture", file, "--kubeconfig", config)
    assert (done.returncode, "kwok built-in" in done.stdout) == (0, True), done.stderr

    status = json_of("status", file)
    assert {node["name"]: node["pods"] for node in status["nodes"]} == {"default-used": 2, "default-spare": 0}
    assert [(group["workload"], group["outlook"]) for group in status["waiting"]] == [("default/huge", "on-its-way")]
    assert [(work["kind"], work["subjects"]) for work in status["under_way"]] == [("move", ["default-spare"])]
    answer = kerf("whatif", file, "--set", "nodepool/default.spec.limits.cpu=4")
    assert answer.returncode == 0, answer.stderr
    assert "1 node launched" in answer.stdout
    assert "1 pod without a place" in answer.stdout
    verified = kerf("verify", file)
    assert verified.returncode == 0, verified.stdout

    asked = [entry for entry in plane.audited() if entry["user"]["username"] == "system:serviceaccount:kerf:kerf"]
    assert {entry["verb"] for entry in asked} == {"list", "get"}
    assert all(entry.get("responseStatus", {}).get("code") in (200, 404) for entry in asked)

    status_code, _ = plane.request("DELETE", f"{RBAC}/clusterrolebindings/kerf-capture")
    assert status_code == 200
    again = tmp_path / "again.kerfb"
    refused = eventually(lambda: refusal(again, config))
    assert "KERF601: these may not be listed: " in refused
    assert not again.exists()


def refusal(file: Path, config: str) -> str:
    """What a capture says that fails; "" for one that succeeds, whose bundle is removed."""
    done = kerf("capture", str(file), "--kubeconfig", config)
    if done.returncode == 0:
        file.unlink()
    return done.stderr if done.returncode else ""
