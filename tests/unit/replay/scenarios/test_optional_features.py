"""What only some scenarios name: default spread, overlays, buffers, devices, and a limit of steps."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.cli.render.plan import describe
from kerf.engine.model import labels as lbl
from kerf.replay.scenarios.plan_scenarios import plan_scenario
from tests.support.scenarios.plan_documents import CATALOGUES, instance_type, node, pod, pool, scenario

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": pod("x", "1500m")["spec"]}
ZONAL = {"maxSkew": 1, "topologyKey": lbl.ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def planned(**fields: Any) -> dict[str, Any]:
    return plan_scenario(scenario(**fields), CATALOGUES, effort=0)


def owned(name: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-1", "controller": True}
    found = pod(name, "100m")
    found["metadata"] |= {"labels": {"app": "a"}, "ownerReferences": [owner]}
    return found


REPLICA_SET = {
    "kind": "ReplicaSet", "metadata": {"name": "a-1"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
}  # fmt: skip


def test_s150_a_scheduler_config_spreads_the_pods_of_a_replica_set() -> None:
    pods = [owned("a"), owned("b"), pod("bare", "100m")]
    alone = planned(pods=pods, workloads=[REPLICA_SET])
    assert alone["summary"]["nodes"] == 1
    config = {"podTopologySpread": {"defaultConstraints": [ZONAL]}}
    spread = planned(pods=pods, workloads=[REPLICA_SET], schedulerConfig=config)
    assert spread["summary"]["nodes"] == 2
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}}}
    assert planned(pods=pods, services=[service], schedulerConfig=config)["summary"]["nodes"] == 2
    bad = planned(schedulerConfig={"podTopologySpread": {"defaultConstraints": [{**ZONAL, "maxSkew": 0}]}})
    assert bad["result"]["error"].startswith("KERF338")


def test_s185_an_overlay_changes_the_choice_and_tells_of_conflicts() -> None:
    def overlay(name: str, kind: str, price: str) -> dict[str, Any]:
        wanted = {"key": lbl.INSTANCE_TYPE, "operator": "In", "values": [kind]}
        return {"metadata": {"name": name}, "spec": {"requirements": [wanted], "price": price}}

    pods = [pod("w", "500m")]
    assert planned(pods=pods)["result"]["newNodeClaims"][0]["cheapestInstanceType"] == "a"
    found = planned(pods=pods, nodeOverlays=[overlay("cheap", "b", "0.01"), overlay("also", "b", "0.02")])
    (claim,) = found["result"]["newNodeClaims"]
    assert (claim["cheapestInstanceType"], claim["cheapestPrice"]) == ("b", 0.01)
    assert found["kerf"]["overlays"] == {"also": "Conflict", "cheap": "ValidationSucceeded"}
    assert "  NodeOverlay also is not applied: Conflict" in describe(found)
    bad = planned(nodeOverlays=[{"metadata": {"name": "x"}, "spec": {"requirements": [], "price": "cheap"}}])
    assert bad["result"]["error"].startswith("KERF306")


def test_s177_a_buffer_gets_nodes_and_says_how_it_stands() -> None:
    buffer = {"metadata": {"name": "b"}, "spec": {"podTemplateRef": {"name": "t"}, "replicas": 2}}
    given = {"metadata": {"name": "t"}, "template": TEMPLATE}
    found = planned(capacityBuffers=[buffer], podTemplates=[given])
    (claim,) = found["result"]["newNodeClaims"]
    assert claim["pods"] == ["capacity-buffer-b-1", "capacity-buffer-b-2"]
    assert found["kerf"]["buffers"] == [
        {"name": "default/b", "readyForProvisioning": "Resolved", "replicas": 2, "provisioning": "RequiresNewCapacity"}
    ]
    missing = planned(capacityBuffers=[buffer])
    assert "  CapacityBuffer default/b is not ready: PodTemplateNotFound" in describe(missing)
    scaled = {"metadata": {"name": "b"}, "spec": {"scalableRef": {"kind": "ReplicaSet", "name": "a-1"}, "replicas": 1}}
    assert planned(capacityBuffers=[scaled], workloads=[REPLICA_SET])["kerf"]["buffers"][0]["replicas"] == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [({}, "resource-claims-ignored"), ({"ignoreDraRequests": False}, "resource-claim")],
)
def test_s194_devices(options: dict[str, Any], code: str) -> None:
    found = planned(pods=[pod("w", spec={"resourceClaims": [{"name": "gpu"}]})], options=options)
    assert found["result"]["errors"]["w"].startswith(code)


def test_a_plan_that_ends_at_its_limit_says_so() -> None:
    given = scenario(pods=[pod(f"w-{i}", "1500m") for i in range(4)], nodePools=[pool()])
    found = plan_scenario(given, CATALOGUES, max_steps=1)
    assert found["kerf"]["truncated"] == found["result"]["unprocessed"] == ["w-1", "w-2", "w-3"]
    lines = describe(found)
    assert lines[0].endswith("3 pods not looked at")
    assert "  the plan ended at its limit of steps before w-1, w-2, w-3" in lines


def test_s176_a_trace_counts_pods_by_the_zone_that_they_wait_for() -> None:
    pods = [pod("a", spec={"nodeSelector": {lbl.ZONE: "z1"}}), pod("b"), pod("c")]
    found = plan_scenario(scenario(pods=pods), CATALOGUES, trace=True)
    assert found["kerf"]["effectiveZones"] == {"flexible": 2, "z1": 1}


def test_s200_a_scenario_with_devices() -> None:
    spec = {"driver": "gpu.io", "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [{"name": "g0"}]}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claims = [{"metadata": {"name": n}, "spec": {"devices": {"requests": [request]}}} for n in ("one", "two")]
    pods = [pod(n, spec={"resourceClaims": [{"name": "g", "resourceClaimName": n}]}) for n in ("one", "two", "gone")]
    node_slice = {"metadata": {"name": "s"}, "spec": {**spec, "nodeName": "n1"}}
    found = plan_scenario(
        scenario(
            pods=pods,
            nodes=[{"node": node("n1", labels={lbl.INITIALIZED: "true", lbl.REGISTERED: "true"})}],
            instanceTypes={"inline": [instance_type("a", 2), instance_type("g", 4, resourceSlices=[spec])]},
            resourceClaims=claims,
            deviceClasses=[{"metadata": {"name": "gpu"}, "spec": {}}],
            resourceSlices=[node_slice],
            options={"ignoreDraRequests": False},
        ),
        CATALOGUES,
    )
    (claim,) = found["result"]["newNodeClaims"]
    assert [existing_node["name"] for existing_node in found["result"]["existingNodes"]] == ["n1"]
    assert (claim["pods"], claim["cheapestInstanceType"]) == (["two"], "g")
    assert found["result"]["errors"]["gone"].startswith("resource-claim: ResourceClaim default/gone")
    bad = scenario(instanceTypes={"inline": [instance_type("g", 4, resourceSlices=[{"devices": 1}])]})
    assert plan_scenario(bad, CATALOGUES)["result"]["error"].startswith("KERF303")
