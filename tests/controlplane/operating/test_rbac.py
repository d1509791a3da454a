"""kerf with exactly the rights that the chart gives it (L-343 to L-354)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from tests.support.servers.helm import rendered

AUDITED = True
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/kerf/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/kerf/roles",
    "RoleBinding": f"{RBAC}/namespaces/kerf/rolebindings",
}


def kubeconfig(plane: ControlPlane, documents: list[dict[str, Any]], place: Path) -> Path:
    """Of the chart's ServiceAccount, with the chart's roles."""
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kerf"}})
    for document in documents:
        if document["kind"] in PATHS:
            status, found = plane.request("POST", PATHS[document["kind"]], document)
            assert status == 201, found
    spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    status, made = plane.request("POST", f"{PATHS['ServiceAccount']}/kerf/token", spec)
    assert status == 201, made
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": made["status"]["token"]}
    place.write_text(json.dumps(config))
    return place


def doctor(kerf: Kerf, *flags: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """While kerf runs, as whoever it runs as."""
    command = [sys.executable, "-m", "kerf", "doctor", "--store", f"sqlite://{kerf.record}"]
    command += ["--kubeconfig", str(kerf.kubeconfig), *(flags or kerf.flags)]
    own = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=own)


def test_the_charts_rights_are_enough_for_a_node_to_come_and_go(plane: ControlPlane, tmp_path: Path) -> None:
    """No request of kerf's is forbidden on the way, of the Lease and the Events neither."""
    plane.apply(node_class())
    plane.apply(node_pool(disruption={"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}))
    kerf = Kerf(plane, tmp_path, "--leader-election-namespace", "kerf")
    kerf.kubeconfig = kubeconfig(plane, rendered(), tmp_path / "kubeconfig")
    kerf.start()
    try:
        plane.apply(deployment("web", 3, "1"))
        eventually(lambda: len(running_pods(plane)) == 3, kerf=kerf)
        healthy = doctor(kerf)
        assert healthy.returncode == 0, healthy.stdout
        observer = doctor(kerf, "--leader-election-namespace", "elsewhere")
        assert (observer.returncode, "get leases.coordination.k8s.io elsewhere" in observer.stdout) == (1, True)
        status, _ = plane.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
        assert status == 200
        eventually(lambda: not node_claims(plane), seconds=120, kerf=kerf)
        own = [each for each in plane.audited() if each["user"]["username"] == "system:serviceaccount:kerf:kerf"]
        assert own
        forbidden = {each["requestURI"] for each in own if each.get("responseStatus", {}).get("code") == 403}
        assert {uri for uri in forbidden if "/elsewhere/" not in uri} == set()  # there only the doctor was
        written = {
            (each["verb"], each.get("objectRef", {}).get("resource"))
            for each in own
            if each["verb"] not in ("list", "watch")
        }
        assert {("create", "leases"), ("create", "events"), ("create", "nodes"), ("delete", "nodes")} <= written
    finally:
        if kerf.running:
            assert kerf.stop() == 0
    kerf.verify()
