"""What happens to the work under way when kerf, the API server, the Lease or a watch's history goes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import Adopted, Launched, Requested
from kerf.engine.record.observations import OfficeTaken, WatchGap
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import (
    Kerf,
    deployment,
    eventually,
    is_true,
    node_claims,
    node_class,
    node_pool,
    recorded,
    running_pods,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _pools(plane: ControlPlane) -> None:
    """What every test needs is there; what an earlier one left is taken over by adoption."""
    for document, path in (
        (node_class(), "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"),
        (node_pool(disruption={"consolidateAfter": "Never"}), "/apis/karpenter.sh/v1/nodepools"),
    ):
        assert plane.request("POST", path, document)[0] in (201, 409)


def all_ready(plane: ControlPlane) -> bool:
    claims = node_claims(plane)
    return bool(claims) and all(is_true(claim, "Ready") for claim in claims)


def sees_pods(kerf: Kerf) -> bool:
    return any(isinstance(payload, Pod) for payload in recorded(kerf.record))


def launched(kerf: Kerf) -> list[str]:
    return [payload.claim for payload in recorded(kerf.record) if isinstance(payload, Launched)]


def test_killed_in_the_middle_of_launches_it_goes_on_and_launches_none_twice(plane: ControlPlane, kerf: Kerf) -> None:
    """Design, idea 4: intent before effect, look first."""
    plane.apply(deployment("killed", 24, "1500m"))
    kerf.start()
    eventually(lambda: plane.items("/api/v1/nodes"), kerf=kerf)
    kerf.kill()
    kerf.start()
    eventually(lambda: len(running_pods(plane)) == 24, kerf=kerf)
    eventually(lambda: all_ready(plane), kerf=kerf)
    assert kerf.stop() == 0
    names = launched(kerf)
    assert len(names) == len(set(names))
    nodes = {node["metadata"]["labels"]["kubernetes.io/hostname"] for node in plane.items("/api/v1/nodes")}
    assert nodes == {claim["metadata"]["name"] for claim in node_claims(plane)}
    assert len(nodes) == len(plane.items("/api/v1/nodes"))
    assert sum(isinstance(payload, OfficeTaken) for payload in recorded(kerf.record)) == 2
    assert "same" in kerf.verify()


def test_a_record_that_is_lost_loses_no_node(plane: ControlPlane, kerf: Kerf) -> None:
    """Design, idea 5: a new record adopts what there is, and requests nothing."""
    before = {node["metadata"]["uid"] for node in plane.items("/api/v1/nodes")}
    assert before
    kerf.start()
    names = {claim["metadata"]["name"] for claim in node_claims(plane)}
    eventually(lambda: {p.claim for p in recorded(kerf.record) if isinstance(p, Adopted)} == names, kerf=kerf)
    plane.apply(deployment("after", 1, "100m"))
    eventually(lambda: len(running_pods(plane)) == 25, kerf=kerf)
    assert before <= {node["metadata"]["uid"] for node in plane.items("/api/v1/nodes")}
    assert names <= {claim["metadata"]["name"] for claim in node_claims(plane)}
    assert kerf.stop() == 0
    assert not [p for p in recorded(kerf.record) if isinstance(p, Requested) and p.claim in names]
    assert "same" in kerf.verify()


def test_an_api_server_that_comes_back_is_watched_on(plane: ControlPlane, kerf: Kerf) -> None:
    kerf.start()
    eventually(lambda: sees_pods(kerf), kerf=kerf)
    plane.restart_api_server()
    plane.apply(deployment("restarted", 3, "3000m"))
    eventually(lambda: len([p for p in running_pods(plane) if "restarted" in p["metadata"]["name"]]) == 3, kerf=kerf)
    eventually(lambda: all_ready(plane), kerf=kerf)
    assert kerf.stop() == 0
    assert "same" in kerf.verify()


def test_a_second_replica_waits_and_takes_over_with_a_higher_epoch(
    plane: ControlPlane, kerf: Kerf, tmp_path: Path
) -> None:
    """L-296; the record's epoch follows the Lease's transitions."""
    kerf.start()
    eventually(lambda: sees_pods(kerf), kerf=kerf)
    other = Kerf(plane, tmp_path, *kerf.flags)
    other.start()
    try:
        assert kerf.stop() == 0
        plane.apply(deployment("second", 2, "3000m"))
        eventually(lambda: len([p for p in running_pods(plane) if "second" in p["metadata"]["name"]]) == 2, kerf=other)
        assert other.stop() == 0
    finally:
        if other.running:
            other.kill()
    offices = [payload for payload in recorded(kerf.record) if isinstance(payload, OfficeTaken)]
    assert len({office.holder for office in offices}) == 2
    assert offices[0].epoch < offices[1].epoch
    assert "same" in kerf.verify()


def test_after_a_compaction_everything_is_listed_again(plane: ControlPlane, kerf: Kerf) -> None:
    """410: a kerf that was held up for longer than the API server remembers misses nothing."""
    kerf.start()
    eventually(lambda: sees_pods(kerf), kerf=kerf)
    kerf.suspend()
    plane.restart_api_server()
    plane.apply(deployment("compacted", 2, "3000m"))
    plane.compact()
    plane.restart_api_server()
    kerf.resume()
    eventually(lambda: len([p for p in running_pods(plane) if "compacted" in p["metadata"]["name"]]) == 2, kerf=kerf)
    assert kerf.stop() == 0
    assert [p for p in recorded(kerf.record) if isinstance(p, WatchGap) and p.since]
    assert "same" in kerf.verify()
