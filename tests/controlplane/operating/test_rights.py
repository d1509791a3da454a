"""Rights that are taken away while kerf runs, and given back (issue 6, point 11)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.live import MERGE, QUICK, Live, nodes_of, on, workload
from tests.support.controlplane.operated import Operated, get
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import node_class

pytestmark = pytest.mark.slow
RBAC = "rbac.authorization.k8s.io/v1"
ROLE = f"/apis/{RBAC}/clusterroles/kerf-late"
LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}
READING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Live]:
    """A kerf that is a ServiceAccount of its own, with all rights for now."""
    meta = {"name": "kerf-late", "namespace": "default"}
    role = {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": "kerf-late"}
    documents: list[dict[str, Any]] = [
        node_class(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "kerf-late"}, "rules": [EVERYTHING]},
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kerf-late"},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    ]
    for document in documents:
        plane.apply(document)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.request("POST", "/api/v1/namespaces/default/serviceaccounts/kerf-late/token", asked)[1]
    settings = json.loads(plane.kubeconfig.read_text())
    settings["users"][0]["user"]["token"] = token["status"]["token"]
    kerf = Operated(plane, tmp_path, *QUICK)
    kerf.kubeconfig = tmp_path / "late"
    kerf.kubeconfig.write_text(json.dumps(settings))
    kerf.start()
    try:
        yield Live(plane, kerf)
        assert kerf.stop() == 0
        assert "same" in kerf.verify()
    finally:
        if kerf.running:
            kerf.kill()


def may(cluster: Live, *rules: dict[str, Any]) -> None:
    status, said = cluster.plane.request("PATCH", ROLE, {"rules": [LEASES, *rules]}, MERGE)
    assert status == 200, said


def test_rights_that_go_are_told_and_rights_that_come_back_are_used(cluster: Live) -> None:
    """First the right to write, then the right to read: each is in /readyz with its code, and work goes on after it."""
    kerf = cluster.kerf
    assert isinstance(kerf, Operated)
    cluster.until(kerf.ready)
    may(cluster, READING)
    cluster.make(nodes_of("late"), workload("late", 2, "900m", **on("late")))
    cluster.until(lambda: not_ready(kerf, "KERF601"))  # it may be listing still: one that waits for the Lease is ready
    assert not cluster.nodes("late")
    may(cluster, EVERYTHING)
    cluster.running("late", 2, 90)
    cluster.until(kerf.ready)

    may(cluster)
    cluster.plane.restart_api_server()
    told = cluster.until(lambda: not_ready(kerf, "KERF601"))
    assert "403" in told or "forbidden" in told
    may(cluster, EVERYTHING)
    cluster.until(kerf.ready, 90)
    cluster.scale("late", 4)
    cluster.running("late", 4, 90)


def not_ready(kerf: Operated, *words: str) -> str:
    """What /readyz says that is wrong, as soon as it says all of these."""
    status, text = get(kerf.health, "/readyz")
    return text if status == 503 and all(word in text for word in words) else ""
