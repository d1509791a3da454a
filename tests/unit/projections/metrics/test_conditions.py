"""Metrics of conditions and deletions (L-415 to L-420, L-424)."""

from __future__ import annotations

from kerf.adapters.manager.metrics.exposition import exposition
from kerf.engine.state.state import Facts, State
from kerf.projections.metrics.conditions import ConditionMetrics, condition_families
from tests.support import lives
from tests.support.lives import claim_of
from tests.support.metrics import scraped, value
from tests.support.records import whole_life

OF_CLAIM = "operator_nodeclaim_status_condition"


def test_gauges_tell_the_conditions_as_they_are() -> None:
    """Gauges tell the conditions as they are (L-415, L-416, L-424)."""
    world = lives.in_service()
    claim = claim_of(world)
    found = scraped(exposition(condition_families(world.runtime.state, world.now + 5_000, "aws")))
    own = {"karpenter_sh_nodepool": "default", "karpenter_k8s_aws_ec2nodeclass": claim.node_class.name}
    assert value(found, f"{OF_CLAIM}_count", name=claim.name, type="Ready", status="True", **own) == 1
    age = value(found, f"{OF_CLAIM}_current_status_seconds", name=claim.name, type="Initialized", status="True")
    assert age == (world.now + 5_000 - claim.initialized) / 1000
    pool = value(found, "operator_nodepool_status_condition_count", name="default", type="Ready", status="True")
    assert pool == 1
    assert "operator_nodeclaim_termination_current_time_seconds" not in found


def test_a_claim_on_its_way_out_says_since_when() -> None:
    """A claim on its way out says since when (L-419)."""
    world = lives.in_service()
    for name in lives.PODS:
        world.gone(name)
    lives.decide(world)
    since = claim_of(world).tainted
    found = scraped(exposition(condition_families(world.runtime.state, since + 7_000, "aws")))
    assert value(found, "operator_nodeclaim_termination_current_time_seconds", name=claim_of(world).name) == 7


def test_a_whole_life_moves_each_condition_once() -> None:
    """A whole life moves each condition once (L-417, L-418, L-420)."""
    world = whole_life()
    metrics = ConditionMetrics(State(Facts(), world.runtime.state.indexes.blobs), "aws")
    for entry in world.store.entries:
        metrics.apply(entry)
    found = scraped(exposition(metrics.families()))
    for kind in ("Launched", "Registered", "Initialized", "Ready"):
        assert value(found, f"{OF_CLAIM}_transitions_total", type=kind, status="True") == 1
        assert value(found, f"{OF_CLAIM}_transition_seconds_count", type=kind, status="Unknown") == 1
    assert value(found, "operator_nodeclaim_termination_duration_seconds_count", karpenter_sh_nodepool="default") == 1
