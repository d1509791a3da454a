"""Two replicas of the chart with the PostgreSQL store: one record, one that acts, and one that goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.engine.record.claim_events import Launched, Requested
from kerf.engine.record.observations import OfficeTaken
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    node_claims,
    node_class,
    node_pool,
    recorded,
    running_pods,
)
from tests.support.servers.postgres import MISSING, binaries, running

pytestmark = [pytest.mark.slow, pytest.mark.skipif(binaries() is None, reason=MISSING)]
LEASE = "replicas"


class Replica(Kerf):
    """One of two: both name the same store and the same Lease."""

    def __init__(self, plane: ControlPlane, folder: Path, url: str) -> None:
        super().__init__(plane, folder, "--lease-name", LEASE)
        self.store = url


@pytest.fixture
def url() -> Iterator[str]:
    with running() as postgres:
        yield f"{postgres.url}?schema=kerf"


@pytest.fixture
def replicas(plane: ControlPlane, url: str, tmp_path: Path) -> Iterator[list[Replica]]:
    for document, path in (
        (node_class(), "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"),
        (node_pool(disruption={"consolidateAfter": "Never"}), "/apis/karpenter.sh/v1/nodepools"),
    ):
        assert plane.request("POST", path, document)[0] in (201, 409)
    made = []
    for name in "ab":
        (tmp_path / name).mkdir()
        made.append(Replica(plane, tmp_path / name, url))
    try:
        yield made
    finally:
        for process in made:
            if process.running:
                process.kill()


def offices(url: str) -> list[OfficeTaken]:
    return [payload for payload in recorded(url) if isinstance(payload, OfficeTaken)]


def holder(plane: ControlPlane) -> str:
    _, lease = plane.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}")
    return str(lease.get("spec", {}).get("holderIdentity") or "") if isinstance(lease, dict) else ""


def verified(url: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kerf", "verify", url], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def test_when_one_is_lost_the_other_goes_on_with_the_same_record(
    plane: ControlPlane, replicas: list[Replica], url: str
) -> None:
    """L-296: in the middle of launches the one that acts stands still, and so loses the Lease. The other goes on from
    the record; when the first wakes up it finds itself fenced, and does nothing. Nothing is launched twice."""
    first, second = replicas
    first.start()
    eventually(lambda: offices(url), kerf=first)
    second.start()
    plane.apply(deployment("replicas", 30, "1500m"))
    eventually(lambda: any(isinstance(payload, Requested) for payload in recorded(url)), kerf=first)
    held = holder(plane)
    first.suspend()
    eventually(lambda: len(offices(url)) == 2, kerf=second, seconds=90)
    assert holder(plane) not in ("", held)
    eventually(lambda: len(running_pods(plane)) == 30, kerf=second, seconds=120)
    first.resume()
    eventually(lambda: not first.running, seconds=60)
    assert "KERF103" in first.tail() or "KERF604" in first.tail()
    plane.apply(deployment("after", 3, "3000m"))
    eventually(lambda: len(running_pods(plane)) == 33, kerf=second, seconds=120)
    assert second.stop() == 0
    seen = recorded(url)
    launched = [payload.claim for payload in seen if isinstance(payload, Launched)]
    assert len(launched) == len(set(launched))
    assert {claim["metadata"]["name"] for claim in node_claims(plane)} == set(launched)
    nodes = [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in plane.items("/api/v1/nodes")]
    assert sorted(nodes) == sorted(launched)
    taken = offices(url)
    assert len({office.holder for office in taken}) == 2
    assert [office.epoch for office in taken] == sorted({office.epoch for office in taken})
    assert "same" in verified(url)


def test_one_that_is_told_to_end_gives_its_office_up_at_once(
    plane: ControlPlane, replicas: list[Replica], url: str
) -> None:
    """A rolling update: the Lease is released, and the other need not wait for it to expire."""
    first, second = replicas
    first.start()
    eventually(lambda: offices(url), kerf=first)
    second.start()
    assert first.stop() == 0
    eventually(lambda: len(offices(url)) == 2, kerf=second, seconds=30)
    assert second.stop() == 0
    assert "same" in verified(url)
