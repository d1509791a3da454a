"""Pods that are told their nodes (KEP-5278) in the whole of a simulated cluster: the scheduler follows the plan."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import ProvisionResult
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import Run, documents


def crowd(name: str, dice: random.Random) -> dict[str, Any]:
    requests = {"cpu": f"{dice.choice([100, 300, 700, 900, 1500])}m", "memory": f"{dice.choice([256, 1024, 6000])}Mi"}
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}
    spec = {
        "replicas": dice.randint(2, 8),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    metadata = {"name": name, "namespace": "other"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def scene(seed: int, *, told: bool) -> tuple[Run, list[int]]:
    """And how many nodes each plan that has any launches."""
    dice = random.Random(seed)
    given = documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml")
    run = Run(
        [*given, *(crowd(f"w{n}", dice) for n in range(5))], settings=Settings(nominations=told), until=4 * 60_000
    )
    results = (entry.payload.result for entry in run.entries("decision.made"))
    plans = [len(result.claims) for result in results if isinstance(result, ProvisionResult)]
    return run, [plan for plan in plans if plan]


@pytest.mark.parametrize("seed", [0, 6, 17])
def test_no_node_is_launched_in_vain_where_pods_are_told_theirs(seed: int) -> None:
    run, plans = scene(seed, told=True)
    assert len(plans) == 1
    assert not [pod for pod in run.simulation.cluster.api.pods.values() if not pod.node]
    assert any(getattr(entry.payload, "nominated", "") for entry in run.entries("pod.seen"))
    assert verify(run.store).exit_code == 0
    assert len(scene(seed, told=False)[1]) > 1, "nodes become ready one after another, and pods take others' places"
