"""kerf with the rights of a service account."""

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
)

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
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token_of(plane, "kerf")}
    place.write_text(json.dumps(config))
    return place


def token_of(plane: ControlPlane, account: str) -> str:
    """A token of a ServiceAccount in the namespace kerf."""
    spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    status, made = plane.request("POST", f"{PATHS['ServiceAccount']}/{account}/token", spec)
    assert status == 201, made
    return str(made["status"]["token"])


def doctor(kerf: Kerf, *flags: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """While kerf runs, as whoever it runs as."""
    command = [sys.executable, "-m", "kerf", "doctor", "--store", f"sqlite://{kerf.record}"]
    command += ["--kubeconfig", str(kerf.kubeconfig), *(flags or kerf.flags)]
    own = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=own)
