"""A Pod for kerf where the suite `performance` looks for Karpenter's: named as the holder of the Lease, with this
machine's address, so that the API server's proxy finds kerf's metrics."""

from __future__ import annotations

import socket
from typing import Any

from tests.support.controlplane.plane import ControlPlane

METRICS_PORT = 8080  # where the suite asks for them
_PODS = "/api/v1/namespaces/kube-system/pods"


def make(plane: ControlPlane) -> None:
    """Gated: no scheduler looks at it, and nobody plans for it."""
    name = socket.gethostname().partition("_")[0]
    container = {"name": "controller", "image": "kerf"}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"schedulingGates": [{"name": "kerf/stand-in"}], "containers": [container]},
    }
    plane.apply(pod)
    address = {"podIP": _address(), "podIPs": [{"ip": _address()}]}
    status, found = plane.request(
        "PATCH", f"{_PODS}/{name}/status", {"status": address}, "application/strategic-merge-patch+json"
    )
    if status != 200:
        raise AssertionError(f"{name}: {status} {found}")


def _address() -> str:
    """One that is not the loopback's, which the API server's proxy refuses. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
