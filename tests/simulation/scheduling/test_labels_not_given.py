"""A NodePool, or a pod, asks for a label that no launch gives: three launches are enough to know (D-125, S-103).

Karpenter takes it for granted that nodes get every well-known label. So it launches, finds that the node does not do,
and launches again, without end.
"""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.simulation.build import START
from kerf.engine.model.karpenter.nodepool_health import MAX_VAIN_LAUNCHES
from kerf.engine.model.settings import Settings
from kerf.projections.status.nodepool import nodepool_status
from kerf.replay.explain.claim import explain_claim
from kerf.replay.verify.verify import verify
from tests.support.simulation.edits import apply
from tests.support.simulation.run import Run, scale, workshop

PARTITION = "karpenter.k8s.aws/placement-group-partition"
"""A well-known label that no node has here: the NodeClass has no placement group."""
TENANCY = "karpenter.k8s.aws/instance-tenancy"
MINUTE = 60_000


def asked_by_pool(key: str = PARTITION, value: str = "1", *actions: dict[str, Any], **spec: Any) -> list[Any]:
    found = workshop(scale("10s", 2), *actions)
    for document in found:
        if document["kind"] == "NodePool":
            wanted = {"key": key, "operator": "In", "values": [value]}
            document["spec"]["template"]["spec"]["requirements"].append(wanted)
            document["spec"] |= spec
    return found


def asked_by_pods(key: str = PARTITION, value: str = "1", *actions: dict[str, Any]) -> list[Any]:
    found = workshop(scale("10s", 2), *actions)
    for document in found:
        if document["kind"] == "Deployment":
            document["spec"]["template"]["spec"]["nodeSelector"] = {key: value}
    return found


def launches(run: Run, since: int = 0) -> int:
    return sum(entry.at >= START + since for entry in run.entries("claim.launched"))


def test_d125_a_node_that_drifts_from_its_launch_on_is_replaced_twice() -> None:
    """It was replaced each minute, for ever."""
    run = Run(asked_by_pool(), until=40 * MINUTE)
    assert launches(run) == MAX_VAIN_LAUNCHES
    (claim,) = run.runtime.state.facts.claims.values()
    assert claim.verdict == "not-replaced-again"
    explained = explain_claim(run.store, claim.name)
    assert f"without {PARTITION} In [1]" in {step.type: step.detail for step in explained.steps}["launched"]
    assert verify(run.store).exit_code == 0


def test_s103_pods_that_no_node_can_take_are_launched_for_three_times() -> None:
    """107 nodes were launched in ten minutes."""
    run = Run(asked_by_pods(), until=20 * MINUTE)
    assert launches(run) == MAX_VAIN_LAUNCHES
    assert not run.runtime.state.facts.claims
    plans = [entry.payload.result for entry in run.entries("decision.made") if entry.payload.decider == "provision"]
    (group,) = [plan for plan in plans if not plan.repeats][-1].unplaced
    assert [(reason.code, reason.params["requirements"]) for reason in group.reasons] == [
        ("label-not-given", [f"{PARTITION} In [1]"])
    ]
    assert verify(run.store).exit_code == 0


def test_s103_the_nodepool_says_which_label_and_serves_other_pods() -> None:
    found = asked_by_pods()
    other = next(document for document in workshop() if document["kind"] == "Deployment")
    other["metadata"]["name"], other["spec"]["replicas"] = "other", 1
    run = Run([*found, other], until=20 * MINUTE)
    condition = nodepool_status(run.runtime.state, "default").condition("RequirementsMet")
    assert (condition.status, condition.reason) == ("False", "LabelNotGiven")
    assert f"{PARTITION} In [1]" in condition.message
    assert nodepool_status(run.runtime.state, "default").ready
    assert [claim.state for claim in run.runtime.state.facts.claims.values()] == ["initialized"]


def test_d125_a_change_of_the_nodepool_starts_anew() -> None:
    changed = next(manifest for manifest in asked_by_pool(weight=7) if manifest["kind"] == "NodePool")
    run = Run(asked_by_pool(PARTITION, "1", apply("20m", changed)), until=50 * MINUTE)
    assert launches(run) == 2 * MAX_VAIN_LAUNCHES
    assert launches(run, since=20 * MINUTE) == MAX_VAIN_LAUNCHES


def test_d167_nodes_of_a_fixed_number_are_replaced_twice() -> None:
    given = asked_by_pool(PARTITION, "1", replicas=1)
    for document in given:
        if document["kind"] == "NodePool":
            document["spec"].pop("limits", None)
            document["spec"]["disruption"] = {}
    run = Run(given, until=40 * MINUTE, settings=Settings(static_capacity=True))
    assert launches(run) == MAX_VAIN_LAUNCHES
    (claim,) = run.runtime.state.facts.claims.values()
    assert claim.verdict == "not-replaced-again"


@pytest.mark.parametrize(("value", "launched"), [("default", 1), ("dedicated", 0)])
@pytest.mark.parametrize("make", [asked_by_pool, asked_by_pods])
def test_a165_tenancy_is_given_or_not_launched_for(make: Any, value: str, launched: int) -> None:
    """24 nodes in twenty minutes for the NodePool, and 109 in ten for the pods. The table has no price of dedicated
    hardware."""
    run = Run(make(TENANCY, value), until=20 * MINUTE)
    assert launches(run) == launched


@pytest.mark.parametrize("make", [asked_by_pool, asked_by_pods])
def test_s103_a_zone_by_an_id_that_is_not_there_is_launched_for_three_times_at_most(make: Any) -> None:
    """15 nodes in fifteen minutes."""
    run = Run(make("topology.k8s.aws/zone-id", "usw2-az9"), until=15 * MINUTE)
    assert launches(run) <= MAX_VAIN_LAUNCHES
