"""kerf as a process on a control plane, and waiting for what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from kerf.adapters.store.open import open_record
from kerf.engine.record.errors import NotARecord, RecordNotFound
from tests.support.controlplane.plane import ControlPlane

T = TypeVar("T")


class Controller:
    """A controller's process on a plane: what it writes goes to `log`, its processor time and memory can be read."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, command: list[str], environment: dict[str, str]) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **environment, **self.environment},
            )  # fmt: skip

    def stop(self) -> int:
        """As Kubernetes does it. Returns the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """It does nothing until `resume`: no watch is read, no Lease renewed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        code = self._process.wait(30)
        self._process = None
        return code

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def memory_mb(self) -> float:
        """What it has resident, in MB."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1)

    def cpu_seconds(self) -> float:
        """What it has used of a processor."""
        assert self._process is not None
        return cpu_seconds(self._process.pid)

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Kerf(Controller):
    """`kerf run` on a plane. Start it again after `kill` or `stop`, and it goes on with the same record."""

    def __init__(self, plane: ControlPlane, folder: Path, *flags: str) -> None:
        super().__init__(folder / "kerf.log")
        self.record = folder / "record.kerf"
        self.store = f"sqlite://{self.record}"
        self.kubeconfig = plane.kubeconfig
        self.flags = flags
        self._plane = plane

    def start(self) -> None:
        command = [sys.executable, "-m", "kerf", "run", "--store", self.store]
        alone = {"KUBECONFIG": "", "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0"}
        self._run([*command, "--kubeconfig", str(self.kubeconfig), *self.flags], alone)

    def verify(self) -> str:
        """What `kerf verify` says. Fails the test unless all is decided as recorded."""
        done = subprocess.run(
            [sys.executable, "-m", "kerf", "verify", str(self.record)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.tail()}"
        return done.stdout


def cpu_seconds(pid: int) -> float:
    """What a process has used of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 2)


def recorded(record: Path | str) -> list[Any]:
    """The payloads of a record so far; none while it is being made."""
    try:
        store = open_record(record)
    except (RecordNotFound, NotARecord):
        return []
    try:
        return [entry.payload for entry in store.scan()]
    finally:
        store.close()


def eventually(what: Callable[[], T], *, seconds: float = 60, kerf: Kerf | None = None) -> T:
    """The first truthy result of `what`; fails after `seconds`, or when kerf has ended. One that has lost its Lease
    is started again, as Kubernetes does it."""
    until = time.monotonic() + seconds
    while not (found := what()):
        ended = kerf is not None and not kerf.running
        if kerf is not None and ended and "KERF604" in kerf.tail(1):
            kerf.start()
            continue
        if ended or time.monotonic() > until:
            said = f"\n{kerf.tail()}" if kerf is not None else ""
            raise AssertionError(f"{'kerf has ended' if ended else f'not within {seconds:.0f} s'}: {found!r}{said}")
        time.sleep(0.2)
    return found


def node_pool(name: str = "default", **spec: Any) -> dict[str, Any]:
    """A NodePool of linux, amd64 and on-demand nodes."""
    requirements = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {"spec": {"requirements": requirements, "nodeClassRef": ref, "expireAfter": "720h"}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def node_class(name: str = "default") -> dict[str, Any]:
    return {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": name}}


def deployment(name: str, replicas: int, cpu: str, memory: str = "128Mi") -> dict[str, Any]:
    """One of pods that ask for so much, and end at once."""
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    labelled = {"labels": {"app": name}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return deployment_of(name, replicas, {"metadata": labelled, "spec": spec})


def deployment_of(name: str, replicas: int, template: dict[str, Any]) -> dict[str, Any]:
    """One of such pods, which carry the label `app`."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def running_pods(plane: ControlPlane) -> list[dict[str, Any]]:
    pods = plane.items("/api/v1/namespaces/default/pods")
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def node_claims(plane: ControlPlane) -> list[dict[str, Any]]:
    return plane.items("/apis/karpenter.sh/v1/nodeclaims")


def is_true(document: dict[str, Any], kind: str) -> bool:
    conditions = document.get("status", {}).get("conditions", [])
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)
