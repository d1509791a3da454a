"""kerf with exactly the rights that the chart gives it (L-343 to L-354)."""

from __future__ import annotations

from pathlib import Path

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.rights import doctor, kubeconfig
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
        own = [
            request for request in plane.audited() if request["user"]["username"] == "system:serviceaccount:kerf:kerf"
        ]
        assert own
        forbidden = {request["requestURI"] for request in own if request.get("responseStatus", {}).get("code") == 403}
        assert {uri for uri in forbidden if "/elsewhere/" not in uri} == set()  # there only the doctor was
        written = {
            (request["verb"], request.get("objectRef", {}).get("resource"))
            for request in own
            if request["verb"] not in ("list", "watch")
        }
        assert {("create", "leases"), ("create", "events"), ("create", "nodes"), ("delete", "nodes")} <= written
    finally:
        if kerf.running:
            assert kerf.stop() == 0
    kerf.verify()
