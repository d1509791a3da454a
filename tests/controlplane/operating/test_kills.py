"""kerf killed (SIGKILL) while something is under way, and started again: with its record, and with a new one.

Nothing is launched twice, nothing is evicted against a PodDisruptionBudget, and all ends still (design, ideas 4 and 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kerf.engine.record.claim_events import Adopted, Launched, Tainted
from kerf.engine.record.observations import OfficeTaken
from tests.support.controlplane.live import (
    BUDGETS,
    CLAIMS,
    NODES,
    POOLS,
    QUICK,
    Live,
    budget,
    names,
    nodes_of,
    on,
    workload,
)
from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import Kerf, node_class

pytestmark = pytest.mark.slow
FORGETTING = pytest.mark.parametrize("forgets", [False, True], ids=["with its record", "with a new record"])


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Live]:
    """A kerf of the test's own: its record is only what the test did. In the end it must verify."""
    plane.request("POST", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", node_class())
    kerf = Kerf(plane, tmp_path, *QUICK)
    kerf.start()
    made = Live(plane, kerf)
    try:
        yield made
        made.clear()
        made.until(lambda: not plane.items(CLAIMS) and not plane.items(NODES), 90)
        assert kerf.stop() == 0
        assert "same" in kerf.verify()
    finally:
        if kerf.running:
            kerf.kill()


def kill(cluster: Live, forgets: bool) -> None:
    """And start again. A record that is forgotten is verified before."""
    cluster.kerf.kill()
    if forgets:
        assert "same" in cluster.kerf.verify()
        for file in cluster.kerf.record.parent.glob(f"{cluster.kerf.record.name}*"):
            file.unlink()
    cluster.kerf.start()


@FORGETTING
def test_killed_while_it_launches(cluster: Live, forgets: bool) -> None:
    """Intent before effect, look first: whoever comes next finds what was begun."""
    cluster.make(nodes_of("launching"), workload("launching", 12, "1500m", **on("launching")))
    cluster.until(lambda: cluster.nodes("launching"))
    kill(cluster, forgets)
    cluster.running("launching", 12, 90)
    claims = cluster.ready("launching", len(cluster.claims("launching")))
    nodes = cluster.nodes("launching")
    assert {claim["status"]["nodeName"] for claim in claims} == names(nodes)
    assert len(nodes) == len(claims)
    assert len(cluster.payloads(OfficeTaken)) == (1 if forgets else 2)
    launched = [payload.claim for payload in cluster.payloads(Launched)]
    assert len(launched) == len(set(launched))


@FORGETTING
def test_killed_while_a_node_drains_under_a_budget(cluster: Live, forgets: bool) -> None:
    """The drain goes on, and the budget holds whoever drains."""
    cluster.make(
        nodes_of("draining"), workload("draining", 2, "300m", **on("draining")), budget("draining", minAvailable=2)
    )
    cluster.running("draining", 2)
    (claim,) = cluster.ready("draining", 1)
    path = f"{CLAIMS}/{claim['metadata']['name']}"
    cluster.delete(path)
    cluster.until(lambda: cluster.conditions(path).get("Drained") == ("Unknown", "Draining"))
    kill(cluster, forgets)
    cluster.until(lambda: cluster.payloads(Adopted) if forgets else len(cluster.payloads(OfficeTaken)) == 2)
    cluster.until(lambda: any("FailedDraining" in reason for reason in reasons(cluster, claim["status"]["nodeName"])))
    assert len(cluster.running("draining", 2)) == 2
    assert cluster.plane.request("GET", path)[0] == 200
    cluster.patch(f"{BUDGETS}/draining", {"spec": {"minAvailable": 1}})
    cluster.gone(path, 120)
    cluster.running("draining", 2)
    taints = [payload for payload in cluster.payloads(Tainted) if payload.claim == claim["metadata"]["name"]]
    assert len(taints) <= 1  # a drain is not begun twice


def reasons(cluster: Live, node: str) -> set[str]:
    found = cluster.plane.get(f"{NODES}/{node}")
    return {reason for reason, _ in cluster.events(found["metadata"]["uid"])}


@FORGETTING
def test_killed_while_a_node_is_replaced(cluster: Live, forgets: bool) -> None:
    """The replacement is up, the old node not yet gone: no second replacement, and one of both stays."""
    disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}
    cluster.make(nodes_of("replaced", disruption=disruption), workload("replaced", 2, "300m", **on("replaced")))
    cluster.running("replaced", 2)
    (claim,) = cluster.ready("replaced", 1)
    cluster.patch(f"{POOLS}/replaced", {"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}})
    cluster.until(lambda: len(cluster.nodes("replaced")) == 2, 90)
    kill(cluster, forgets)
    old = claim["metadata"]["name"]
    cluster.until(lambda: old not in names(cluster.claims("replaced")), 120)
    cluster.running("replaced", 2)
    (new,) = cluster.ready("replaced", 1)
    assert new["metadata"]["labels"]["example.com/new"] == "yes"
    (node,) = cluster.nodes("replaced")
    assert "taints" not in node["spec"]
