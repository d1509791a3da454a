"""kerf as its operators see it: its probes, metrics and record."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


def get(port: int, path: str, token: str = "") -> tuple[int, str]:
    """Status and text; 0 while nobody listens. `token` is sent as whoever scrapes does."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Operated(Kerf):
    """With its ports open."""

    def __init__(self, plane: ControlPlane, folder: Path, *flags: str) -> None:
        self.metrics, self.health = free_port(), free_port()
        super().__init__(plane, folder, *flags)
        self.environment = {"METRICS_PORT": str(self.metrics), "HEALTH_PROBE_PORT": str(self.health)}

    def ready(self) -> bool:
        return get(self.health, "/readyz")[0] == 200
