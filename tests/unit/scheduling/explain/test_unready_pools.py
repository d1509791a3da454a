"""A pod whose own NodePool is not ready is told so (S-61, S-174)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.observations import Observation
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.prose.reasons import sentence
from tests.support.records import re_derived
from tests.support.world import World, pool

MISSING = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "missing")
TAINT = Taint("team", "NoSchedule", "ml")


def told(own: NodePool, **shape: Any) -> list[str]:
    """What a pod without a place is told, the nearest to one first. The NodePool `default` is ready, and has no place
    for it."""
    world = World()
    world.prepare(pool(limits={"cpu": 0}))
    world.see(Observation(own))
    world.pending("a", **shape)
    world.after(1_000)
    results = (entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision))
    (group,) = [result for result in results if isinstance(result, ProvisionResult)][-1].unplaced
    assert re_derived(world.store) == world.store.entries
    return [sentence(reason) for reason in nearest_first(group.reasons)]


@pytest.mark.parametrize("selector", [{"team": "ml"}, {}])
def test_s61_s174_a_nodepool_that_is_not_ready_comes_first(selector: dict[str, str]) -> None:
    own = replace(pool("gpu", labels={"team": "ml"}, taints=(TAINT,)), node_class=MISSING)
    tolerations = (Toleration("team", "Exists"),)
    said = told(own, node_selector=selector, tolerations=tolerations)
    assert said[0].startswith("NodePool gpu: it is not ready")
    assert said[1].startswith("NodePool default: ")


def test_s61_s174_one_whose_nodes_would_not_do_is_not_named() -> None:
    own = replace(pool("gpu", labels={"team": "ml"}, taints=(TAINT,)), node_class=MISSING)
    assert all("gpu" not in text for text in told(own))
    assert all("gpu" not in text for text in told(own, node_selector={"team": "web"}))
