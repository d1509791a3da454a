"""Pods with required affinity to each other on one node that goes, of which a PodDisruptionBudget lets one go at a time
(S-46, S-142, D-88)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.labels import HOSTNAME, ZONE
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import HOUR, Run, scale, workshop

CHEAPEST = "us-west-2a"


def pair(*actions: dict[str, Any], policy: str = "WhenEmpty", key: str = ZONE, **template: Any) -> list[Any]:
    """Two pods that must be together (in one zone) under a budget of one; both start in us-west-2a."""
    found = workshop(scale("10s", 2), *actions)
    for document in found:
        if document["kind"] == "NodePool":
            document["spec"]["disruption"] = {"consolidationPolicy": policy, "consolidateAfter": "1m"}
            document["spec"]["template"]["spec"] |= template
        elif document["kind"] == "Deployment":
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "inflate"}}}
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


# ── nodes that have to go ───────────────────────────────────────────────────────────────────────────────────────────


def launched_in(run: Run) -> list[str]:
    """The zone of each node launched, in order."""
    return [entry.payload.zone for entry in run.entries("claim.launched")]


def all_bound(run: Run) -> bool:
    return all(pod.node for pod in run.runtime.state.facts.pods.values())


def test_s46_a_pod_waits_for_a_node_beside_the_one_that_is_held() -> None:
    """A node was launched in another zone, where it could not run, and none in its own when there was capacity."""
    back = {"at": "45m", "action": "restore-capacity"}
    run = Run(pair(no_capacity("20m"), back, expireAfter="30m"), until=HOUR - 60_000)
    assert launched_in(run) == [CHEAPEST, CHEAPEST]
    assert all_bound(run)
    assert len(run.runtime.state.facts.nodes) == 1
    results = [getattr(entry.payload, "result", None) for entry in run.entries()]
    reasons = [reason for result in results for group in getattr(result, "unplaced", ()) for reason in group.reasons]
    why = next(reason for reason in reasons if reason.code == SchedulingCode.BESIDE_HELD_PODS)
    assert (why.params["budgets"], why.params["where"]) == (["other/inflate"], [f"{ZONE}={CHEAPEST}"])
    assert verify(run.store).exit_code == 0


def test_s46_a_pod_is_planned_onto_no_node_of_another_zone_that_has_room() -> None:
    """There kube-scheduler never bound it: it was told that its node was on its way, for hours."""
    found = pair({**scale("15m", 1), "name": "elsewhere"}, expireAfter="30m")
    elsewhere = copy.deepcopy(next(document for document in found if document["kind"] == "Deployment"))
    elsewhere["metadata"]["name"] = "elsewhere"
    elsewhere["spec"]["selector"]["matchLabels"] = {"app": "elsewhere"}
    template = elsewhere["spec"]["template"]
    template["metadata"]["labels"] = {"app": "elsewhere"}
    template["spec"] |= {"affinity": {}, "nodeSelector": {ZONE: "us-west-2b"}}
    run = Run([*found, elsewhere], until=40 * 60_000)
    assert all_bound(run)
    assert launched_in(run) == [CHEAPEST, "us-west-2b", CHEAPEST]


def test_s46_an_ordinary_drain_launches_one_node() -> None:
    run = Run(pair(expireAfter="30m"), until=2 * HOUR)
    assert launched_in(run) == [CHEAPEST] * 4
    assert all_bound(run)


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
def test_d132_the_next_node_is_there_at_the_deadline(key: str) -> None:
    """At the deadline the held pod is deleted by force, and both may go to any zone."""
    given = pair(no_capacity("20m"), key=key, expireAfter="30m", terminationGracePeriod="10m")
    run = Run(given, until=50 * 60_000)
    (forced,) = run.entries("claim.pod-forced")
    _, ready = run.entries("claim.initialized")
    assert ready.at < forced.at < ready.at + 5 * 60_000
    assert len(launched_in(run)) == 2
    assert all_bound(run)
    results = [getattr(entry.payload, "result", None) for entry in run.entries()]
    assert not any(getattr(result, "ignored", ()) for result in results), "a pod may not ask for a hostname; this may"


def test_s46_an_interrupted_node_gives_its_pods_no_time_to_wait_for_their_zone() -> None:
    run = Run(pair(no_capacity("20m"), {"at": "30m", "action": "interrupt"}), until=35 * 60_000)
    assert launched_in(run)[0] == CHEAPEST
    assert launched_in(run)[1] != CHEAPEST
    ready = run.entries("claim.initialized")[1]
    assert ready.at < run.entries("claim.drain-started")[0].at + 60_000
    assert all_bound(run)
