"""The explorer in a cluster: the API server says who may see the record, and forwards the port (docs/explorer.md)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.operated import free_port, get
from tests.support.controlplane.plane import CONDITION, STAGES, ControlPlane, assets
from tests.support.controlplane.rights import PATHS, kubeconfig, token_of
from tests.support.controlplane.running import Controller, eventually
from tests.support.records import stored, whole_life
from tests.support.servers.helm import rendered

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)")
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def port() -> int:
    """Of the explorer: KWOK forwards each pod's port to the same one of this machine."""
    return free_port()


@pytest.fixture
def plane(port: int, tmp_path: Path) -> Iterator[ControlPlane]:
    """One whose KWOK is asked by the API server, as a kubelet is."""
    binaries = assets()
    if binaries is None:
        pytest.skip(CONDITION)
    kubelet, folder = free_port(), tmp_path / "plane"
    stages = tmp_path / "stages.yaml"
    spec = {"forwards": [{"ports": [port], "target": {"address": "127.0.0.1", "port": port}}]}
    forward = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterPortForward", "metadata": {"name": "all"}}
    stages.write_text(f"{STAGES.read_text()}\n---\n{json.dumps(forward | {'spec': spec})}\n")
    certificate = folder / "certs" / "apiserver"
    flags = [
        f"--server-address=127.0.0.1:{kubelet}",
        f"--tls-cert-file={certificate}.crt",
        f"--tls-private-key-file={certificate}.key",
    ]
    made = ControlPlane(binaries, folder, stages=stages, flags={"kwok": flags})
    try:
        made.start()
        made.apply(node(kubelet))
        yield made
    finally:
        made.stop()


def node(kubelet: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "here", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet}},
        },
    }


def pod(port: int) -> dict[str, Any]:
    container = {"name": "explorer", "image": "kerf", "ports": [{"name": "explorer", "containerPort": port}]}
    meta = {"name": "kerf-0", "namespace": "kerf"}
    spec = {"nodeName": "here", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def binding(kind: str, role: str, name: str, account: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kerf"}],
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": "kerf-explorer-reader"},
    }


def of(plane: ControlPlane, account: str, place: Path) -> Path:
    """The kubeconfig of a ServiceAccount."""
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token_of(plane, account)}
    place.write_text(json.dumps(config))
    return place


class Explorer(Controller):
    """`kerf ui --tokens cluster`, as in the pod."""

    def start(self, record: Path, port: int, kubeconfig: Path) -> None:
        command = [sys.executable, "-m", "kerf", "ui", str(record), "--tokens", "cluster", "--port", str(port)]
        self._run([*command, "--kubeconfig", str(kubeconfig)], {})


@contextmanager
def laptop(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kerf", "ui", "--cluster", "--kubeconfig", str(kubeconfig)]
    shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield shown
    finally:
        shown.terminate()
        shown.communicate(timeout=20)


def refused(kubeconfig: Path) -> str:
    """What somebody is told who may not."""
    with laptop(kubeconfig) as shown:
        out, error = shown.communicate(timeout=60)
        assert (shown.returncode, out) == (2, ""), error
        return error


def test_who_may_see_the_record_reaches_it_by_a_forwarded_port(plane: ControlPlane, port: int, tmp_path: Path) -> None:
    """With the rights that the chart gives the explorer, and the roles that it makes for people."""
    documents = rendered("explorer.enabled=true")
    kubeconfig(plane, documents, tmp_path / "kerf")
    people = ("ana", "stranger", "nobody")
    for name in people:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        assert plane.request("POST", PATHS["ServiceAccount"], account)[0] == 201
    bindings = [
        binding("ClusterRoleBinding", "ClusterRole", "ana-sees-kerf", "ana"),
        binding("RoleBinding", "Role", "ana-reaches-kerf", "ana"),
        binding("RoleBinding", "Role", "stranger-reaches-kerf", "stranger"),
    ]
    for document in bindings:
        assert plane.request("POST", PATHS[document["kind"]], document)[0] == 201
    plane.apply(pod(port))
    record = stored(tmp_path / "record.kerf", whole_life().store)
    explorer = Explorer(tmp_path / "explorer.log")
    explorer.start(record, port, of(plane, "kerf-explorer", tmp_path / "explorer"))
    try:
        eventually(lambda: get(port, "/")[0] == 200)
        kubeconfigs = {name: of(plane, name, tmp_path / name) for name in people}
        pods = "/api/v1/namespaces/kerf/pods/kerf-0"
        eventually(lambda: plane.get(pods)["status"].get("phase") == "Running")
        with laptop(kubeconfigs["ana"]) as shown:
            assert shown.stdout is not None
            link = LINK.search(shown.stdout.readline())
            assert link, shown.communicate(timeout=20)
            here, token = int(link[1]), link[2]
            status, found = get(here, "/api/v1/record", token)
            assert (status, json.loads(found)["record"]) == (200, str(record))
            assert get(here, "/")[1].startswith("<!doctype html>")
            assert get(here, "/api/v1/record", token_of(plane, "ana"))[0] == 401, "the link's token, and no other"
        assert "KERF864: the explorer answers 403" in refused(kubeconfigs["stranger"])
        assert "KERF601" in refused(kubeconfigs["nobody"])
        statuses = {name: get(port, "/api/v1/record", token_of(plane, name))[0] for name in people}
        assert statuses == {"ana": 200, "stranger": 403, "nobody": 403}
        assert explorer.stop() == 0, explorer.tail()
    finally:
        if explorer.running:
            explorer.kill()
