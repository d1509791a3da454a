"""A real control plane on 127.0.0.1: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, and KWOK for nodes.

The binaries are those of `make controlplane`, or of the folder that KUBEBUILDER_ASSETS names. Everything a plane keeps
is in one folder; its processes end with it. One token of group system:masters opens it.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

BINARIES = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok")
TOKEN = "kerf-test-token"
STARTING = 60.0  # seconds that an API server may take
STAGES = Path(__file__).with_name("stages.yaml")
CONDITION = "needs a control plane: run `make controlplane`, or set KUBEBUILDER_ASSETS to a folder with " + ", ".join(
    BINARIES
)


def assets() -> Path | None:
    """The folder with all the binaries, None if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kerf" / "controlplane"
    built = os.environ.get("KERF_CONTROLPLANE")
    named = os.environ.get("KUBEBUILDER_ASSETS")
    folder = Path(named or built or cache)
    return folder if all(os.access(folder / name, os.X_OK) for name in BINARIES) else None


class ControlPlane:
    """`start`, then talk to `url` with `token`, or give `kubeconfig` to somebody. `audit` has all requests logged;
    `stages` is what KWOK does with nodes and pods; `flags` are further ones of a process, by its name."""

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        *,
        audit: bool = False,
        stages: Path = STAGES,
        flags: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self._audit, self._stages, self._flags = audit, stages, flags
        self.kubeconfig = folder / "kubeconfig"
        self.token = TOKEN
        self._binaries = binaries
        self._etcd, self._etcd_peer, self._api = _free_ports(3)
        self.url = f"https://127.0.0.1:{self._api}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._context: ssl.SSLContext | None = None

    def start(self) -> None:
        """Returns when the API server is ready and the others have been started."""
        self.start_scheduling()
        self._run("kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                  "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000",
                  f"--service-account-private-key-file={self.folder / 'sa.key'}")  # fmt: skip
        self._run("kwok", f"--kubeconfig={self.kubeconfig}", f"--config={self._stages}",
                  "--node-lease-duration-seconds=40",
                  "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")  # fmt: skip

    def start_scheduling(self) -> None:
        """The API server and the scheduler alone: nobody makes objects of objects, and pods that are bound stay as they
        are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_files()
        self.start_etcd()
        self.start_api_server()
        self._run("kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
                  "--kube-api-qps=500", "--kube-api-burst=1000")  # fmt: skip

    def start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._etcd_peer}"
        self._run("etcd", f"--data-dir={self.folder / 'etcd'}", "--name=kerf", "--unsafe-no-fsync",
                  f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                  f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                  f"--initial-cluster=kerf={peer}", "--log-level=warn")  # fmt: skip

    def start_api_server(self) -> None:
        """Also after `stop_process`: on the same port, with the same certificate."""
        self._run("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd}", "--bind-address=127.0.0.1",
                  "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                  f"--secure-port={self._api}", f"--cert-dir={self.folder / 'certs'}",
                  f"--token-auth-file={self.folder / 'tokens.csv'}", "--authorization-mode=RBAC",
                  "--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount",
                  "--service-account-issuer=https://kubernetes.default.svc",
                  f"--service-account-signing-key-file={self.folder / 'sa.key'}",
                  f"--service-account-key-file={self.folder / 'sa.key'}", *self._audit_flags())  # fmt: skip
        self._wait_until_ready()

    def _audit_flags(self) -> list[str]:
        if not self._audit:
            return []
        policy = self.folder / "audit.json"
        rules = [{"level": "Metadata"}]
        stages = ["RequestReceived"]
        policy.write_text(
            json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": stages, "rules": rules})
        )
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.folder / 'audit.log'}"]

    def requests_by(self, user_agent: str, since: float = 0.0, until: float = math.inf) -> dict[str, int]:
        """Requests of clients whose user agent begins so, finished between two times (s since the epoch), by "verb
        resource"; needs `audit`."""
        counts: dict[str, int] = {}
        for event in self.audited():
            at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
            if event.get("userAgent", "").startswith(user_agent) and since <= at < until:
                ref = event.get("objectRef") or {}
                parts = [ref.get("resource", event["requestURI"]), ref.get("subresource", "")]
                what = f"{event['verb']} {'/'.join(part for part in parts if part)}"
                counts[what] = counts.get(what, 0) + 1
        return dict(sorted(counts.items()))

    def audited(self) -> Iterator[dict[str, Any]]:
        """Finished requests in the order in which they were finished, as audit events; needs `audit`."""
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["stage"] == "ResponseComplete":
                yield event

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def stop_process(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        process = self._processes.pop(name)
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def signal_process(self, name: str, what: signal.Signals) -> None:
        """As to pause one (SIGSTOP) and to let it go on (SIGCONT)."""
        self._processes[name].send_signal(what)

    def stop(self) -> None:
        for name in list(reversed(self._processes)):
            self.stop_process(name, signal.SIGKILL)

    def compact(self) -> None:
        """etcd forgets all that was before now: a watch that has not seen it gets 410."""
        revision = self._etcd_call("kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd_call("kv/compaction", {"revision": revision, "physical": True})

    def _etcd_call(self, method: str, body: object) -> Any:
        """etcd's own HTTP gateway."""
        url = f"http://127.0.0.1:{self._etcd}/v3/{method}"
        request = urllib.request.Request(url, data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read())

    def restart_api_server(self) -> None:
        """As after a crash: a graceful end takes it ten seconds."""
        self.stop_process("kube-apiserver", signal.SIGKILL)
        self.start_api_server()

    def log(self, name: str, lines: int = 30) -> str:
        """The end of what a process has said."""
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    # ── talking to it ───────────────────────────────────────────────────────────────────────────────────────

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Status and answer (JSON, or text)."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls()) as response:
                return response.status, _parsed(response.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())

    def connection(self) -> http.client.HTTPSConnection:
        """One to be kept, for many requests; its user gives the token."""
        return http.client.HTTPSConnection("127.0.0.1", self._api, timeout=30, context=self._tls())

    def get(self, path: str) -> Any:
        status, found = self.request("GET", path)
        if status != 200:
            raise AssertionError(f"GET {path}: {status} {found}")
        return found

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(path)["items"]
        return found

    def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        """Creates an object; of a List, each item. Returns what the API server made of it."""
        if document["kind"] == "List":
            for item in document["items"]:
                self.apply(item)
            return document
        status, found = self.request("POST", collection(document), document)
        if status not in (200, 201):
            raise AssertionError(f"{document['kind']} {document['metadata'].get('name')}: {status} {found}")
        return dict(found)

    # ── inside ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write_files(self) -> None:
        (self.folder / "tokens.csv").write_text(f'{TOKEN},kerf,kerf,"system:masters"\n')
        subprocess.run(
            ["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"], check=True, capture_output=True
        )
        certificate = self.folder / "certs" / "apiserver.crt"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "kerf",
                    "contexts": [{"name": "kerf", "context": {"cluster": "kerf", "user": "kerf"}}],
                    "clusters": [
                        {"name": "kerf", "cluster": {"server": self.url, "certificate-authority": str(certificate)}}
                    ],
                    "users": [{"name": "kerf", "user": {"token": TOKEN}}],
                }
            )
        )

    def _run(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [self._binaries / name, *flags, *self._flags.get(name, ())],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                env={"HOME": str(self.folder), "PATH": os.environ.get("PATH", "")},
            )  # fmt: skip

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + STARTING
        while time.monotonic() < until:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} has ended with {process.returncode}:\n{self.log(name)}")
            try:
                if self.request("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the API server is not ready after {STARTING:.0f} s:\n{self.log('kube-apiserver')}")

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=str(self.folder / "certs" / "apiserver.crt"))
        return self._context


_CLUSTER_SCOPED = (
    "NodePool", "NodeClaim", "KWOKNodeClass", "EC2NodeClass", "NodeOverlay", "Node", "Namespace",
    "CustomResourceDefinition", "PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment", "PriorityClass",
    "RuntimeClass", "ClusterRole", "ClusterRoleBinding",
)  # fmt: skip


def collection(document: dict[str, Any]) -> str:
    """The path of the collection that an object belongs to."""
    version, kind = document["apiVersion"], document["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    if kind in _CLUSTER_SCOPED:
        return f"{root}/{plural}"
    return f"{root}/namespaces/{document['metadata'].get('namespace', 'default')}/{plural}"


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses, found together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()
