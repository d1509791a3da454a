"""Metrics that the API server says who may read (L-299, docs/operations.md#who-may-read-them)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.controlplane.operated import Operated, get
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.rights import PATHS, kubeconfig, token_of
from tests.support.controlplane.running import eventually
from tests.support.servers.helm import rendered

BINDING: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "prometheus-reads-kerf"},
    "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "kerf"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kerf-metrics-reader"},
}


def account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def test_l299_only_a_token_that_may_get_metrics_reads_them(plane: ControlPlane, tmp_path: Path) -> None:
    """With the rights that the chart gives kerf for that and no others, and the role that it makes for scrapers."""
    kerf = Operated(plane, tmp_path, "--leader-election-namespace", "kerf")
    kerf.kubeconfig = kubeconfig(plane, rendered("settings.metricsAuthorization=true"), tmp_path / "kubeconfig")
    for document in (account("prometheus"), account("stranger"), BINDING):
        status, made = plane.request("POST", PATHS[document["kind"]], document)
        assert status == 201, made
    kerf.environment["METRICS_AUTHORIZATION"] = "true"
    kerf.start()
    try:
        eventually(kerf.ready, kerf=kerf)
        token = token_of(plane, "prometheus")
        eventually(lambda: "karpenter_cluster_state_synced 1.0" in get(kerf.metrics, "/metrics", token)[1], kerf=kerf)
        refused = {"": 401, "guessed": 401, token_of(plane, "stranger"): 403, token_of(plane, "kerf"): 403}
        assert {token: get(kerf.metrics, "/metrics", token)[0] for token in refused} == refused
        assert get(kerf.health, "/healthz")[0] == 200, "the kubelet brings no token"
        assert kerf.stop() == 0
    finally:
        if kerf.running:
            kerf.kill()
