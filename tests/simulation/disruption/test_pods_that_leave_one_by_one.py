"""Pods with required affinity to each other on one node that goes, of which a PodDisruptionBudget lets one go at a time
(S-46, S-142, D-88)."""

from __future__ import annotations

import copy
from typing import Any

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.labels import ZONE
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, Run, scale, workshop

CHEAPEST = "us-west-2a"


def pair(*actions: dict[str, Any], policy: str = "WhenEmpty", **template: Any) -> list[Any]:
    """Two pods in one zone under a budget of one; both start in us-west-2a."""
    found = workshop(scale("10s", 2), *actions)
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"]["disruption"] = {"consolidationPolicy": policy, "consolidateAfter": "1m"}
            document["spec"]["template"]["spec"] |= template
        elif document["kind"] == "Deployment":
            term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "inflate"}}}
            affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            document["spec"]["template"]["spec"]["affinity"] = affinity
    selected = {"selector": {"matchLabels": {"app": "inflate"}}, "maxUnavailable": 1}
    metadata = {"name": "inflate", "namespace": "other"}
    found.append({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": selected})
    return found


def drifting(at: str, *actions: dict[str, Any], **template: Any) -> list[Any]:
    """The NodePool gives its nodes another label from then on."""
    pool = copy.deepcopy(next(document for document in pair(**template) if document["kind"] == "NodePool"))
    pool["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["rev"] = "2"
    return pair({"at": at, "action": "apply", "object": pool}, *actions, **template)


def no_capacity(at: str) -> dict[str, Any]:
    return {"at": at, "action": "capacity", "zone": CHEAPEST}


def zones(run: Run) -> set[str]:
    state = run.runtime.state
    return {state.facts.nodes[pod.node].labels[ZONE] for pod in state.facts.pods.values() if pod.node}


def test_d88_a_drifted_node_stays_while_no_other_zone_will_do() -> None:
    """Its replacement came in another zone, where the first pod waited for the second and the second for it."""
    run = Run(drifting("11m", no_capacity("10m")), until=5 * HOUR)
    (node,) = run.runtime.state.facts.nodes.values()
    assert node.labels[ZONE] == CHEAPEST
    assert all(pod.node for pod in run.runtime.state.facts.pods.values())
    results = [getattr(entry.payload, "result", None) for entry in run.entries()]
    said = {verdict.reason.code for result in results for verdict in getattr(result, "verdicts", ())}
    assert DisruptionCode.NO_PLACE_BESIDE in said
    assert verify(run.store).exit_code == 0


def test_d88_it_goes_within_its_zone() -> None:
    run = Run(drifting("11m"), until=HOUR)
    (node,) = run.runtime.state.facts.nodes.values()
    assert (node.labels["rev"], node.labels[ZONE]) == ("2", CHEAPEST)
    assert [pod.node for pod in run.runtime.state.facts.pods.values()] == [node.name] * 2


def test_d88_no_cheaper_zone_is_worth_pods_that_wait_for_each_other() -> None:
    dearer = {"at": "10m", "action": "price", "zone": CHEAPEST, "factor": 3}
    run = Run(pair(dearer, policy="WhenEmptyOrUnderutilized"), until=5 * HOUR)
    assert zones(run) == {CHEAPEST}
    assert len(run.runtime.state.facts.nodes) == 1
    assert all(pod.node for pod in run.runtime.state.facts.pods.values())
