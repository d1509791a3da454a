"""Default spread, buffers and overlays through whole lives of a cluster: the virtual scheduler spreads by the same
constraints, and a pod that comes finds the room that a buffer kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import SpreadConstraint
from kerf.engine.model.settings import Settings
from kerf.projections.timeline.event import DEBUG, event_sentence
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.verify.verify import verify
from tests.support.simulation.manifests import MINUTE, deployment, pool_and_class
from tests.support.simulation.run import Run


def timeline(*actions: dict[str, Any]) -> dict[str, Any]:
    spec = {"actions": list(actions)}
    return {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "t"}, "spec": spec}


def zones(run: Run) -> Counter[str]:
    facts = run.runtime.state.facts
    return Counter(facts.nodes[pod.node].labels[lbl.ZONE] for pod in facts.pods.values() if pod.node)


@pytest.mark.parametrize("spread", [(), (SpreadConstraint(lbl.ZONE),)], ids=["without", "with"])
def test_s150_a_deployment_is_spread_by_the_clusters_default(spread: tuple[SpreadConstraint, ...]) -> None:
    run = Run([*pool_and_class(), deployment("app", 4, "500Mi")], until=5 * MINUTE,
              settings=Settings(default_spread=spread))  # fmt: skip
    expected = [2, 1, 1] if spread else [4]
    assert sorted(zones(run).values(), reverse=True) == expected
    assert len(run.runtime.state.facts.workloads) == (2 if spread else 0)  # the Deployment and its ReplicaSet
    assert len(run.entries("claim.requested")) == len(expected)  # consolidation knows of it, too
    assert verify(run.memory).exit_code == 0


TEMPLATE = {
    "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "spare"},
    "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "2Gi"}}}]}},
}  # fmt: skip


def buffer(replicas: int) -> dict[str, Any]:
    spec = {"podTemplateRef": {"name": "spare"}, "replicas": replicas}
    return {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "b"},
            "spec": spec}  # fmt: skip


def test_s180_s182_a_buffers_node_stays_and_takes_pods_at_once() -> None:
    actions = timeline({"at": "30m", "action": "apply", "object": deployment("app", 2, "2Gi")})
    run = Run([*pool_and_class(), TEMPLATE, buffer(2), actions], until=60 * MINUTE,
              settings=Settings(capacity_buffers=True))  # fmt: skip
    bound = [e for e in run.entries("pod.seen") if e.payload.node and e.payload.namespace == "default"]
    since = run.simulation.start + 30 * MINUTE
    assert {e.at - since < 5_000 for e in bound[:2]} == {True}  # no node had to start
    facts = run.runtime.state.facts
    assert sum(facts.buffered.values()) == 2
    assert len([c for c in facts.claims.values() if c.state == "initialized"]) == 2
    assert len(run.entries("claim.requested")) == 2
    assert verify(run.memory).exit_code == 0


def test_s177_without_the_gate_a_note_says_that_it_does_nothing() -> None:
    run = Run([*pool_and_class(), TEMPLATE, buffer(2)], until=5 * MINUTE)
    assert run.runtime.state.facts.claims == {}
    assert [(item, note.code) for item, note in run.simulation.notes] == [
        ("PodTemplate spare", "gate-off"),
        ("CapacityBuffer b", "gate-off"),
    ]


def test_s185_an_overlay_moves_the_choice() -> None:
    wanted = {"key": lbl.INSTANCE_TYPE, "operator": "In", "values": ["r5.large"]}
    overlay = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "saved"},
               "spec": {"requirements": [wanted], "priceAdjustment": "-90%"}}  # fmt: skip
    run = Run([*pool_and_class(), overlay, deployment("app", 1, "500Mi")], until=5 * MINUTE,
              settings=Settings(node_overlays=True))  # fmt: skip
    (launched,) = run.entries("claim.launched")  # the cloud draws by the overlay's price: nothing is to be replaced
    assert launched.payload.instance_type == "r5.large"
    assert launched.payload.price == pytest.approx(0.0126)
    assert verify(run.memory).exit_code == 0


def test_s181_what_is_deleted_does_nothing_any_more() -> None:
    gone = {"at": "10m", "action": "delete", "kind": "CapacityBuffer", "namespace": "default", "name": "b"}
    run = Run([*pool_and_class(), TEMPLATE, buffer(2), timeline(gone)], until=30 * MINUTE,
              settings=Settings(capacity_buffers=True))  # fmt: skip
    facts = run.runtime.state.facts
    assert (facts.buffers, facts.buffered) == ({}, {})
    assert len(run.entries("claim.terminated")) == 1  # its empty node went
    assert verify(run.memory).exit_code == 0


def test_s179_the_story_names_the_pods_of_a_buffer_and_who_changed_what_is_planned_by() -> None:
    large = {**TEMPLATE, "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "99"}}}]}}}
    run = Run([*pool_and_class(), large, buffer(2)], until=MINUTE, settings=Settings(capacity_buffers=True))
    told = Timeline()
    shown = [event_sentence(event) for entry in run.entries() for event in told.apply(entry) if event.level != DEBUG]
    assert "CapacityBuffer default/b is there" in shown
    assert any(line.startswith("no place for default/capacity-buffer-b-1 and 1 more") for line in shown)
