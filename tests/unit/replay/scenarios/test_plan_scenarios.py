"""Conformance scenarios: defaults, instance type sources, nodes, and the form of results (docs/plan.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.errors import CatalogueError, ScenarioError
from kerf.replay.scenarios.plan_scenarios import plan_scenario, problem_of, read_catalogues, read_scenarios
from tests.support.scenarios.plan_documents import CATALOGUES, instance_type, node, pod, pool, scenario

GI = 2**30


def node_claim(name: str, **fields: Any) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {lbl.NODEPOOL: "default"}, **fields.pop("metadata", {})},
        "spec": {"requirements": [], "nodeClassRef": reference, **fields.pop("spec", {})},
        "status": {"providerID": f"aws:///z1/{name}", "capacity": amounts, "allocatable": amounts},
    }


INITIALIZED = {lbl.REGISTERED: "true", lbl.INITIALIZED: "true"}


def planned(**fields: Any) -> dict[str, Any]:
    return plan_scenario(scenario(**fields), CATALOGUES)


def test_pods_arrive_in_the_order_of_the_file() -> None:
    asked = problem_of(scenario(pods=[pod("b"), pod("a"), pod("c")]), Catalogues(CATALOGUES))
    assert [(waiting_pod.name, waiting_pod.arrival) for waiting_pod in asked.pods] == [("b", 1), ("a", 2), ("c", 3)]


def test_the_form_of_a_result() -> None:
    found = planned(pods=[pod("w-1", "1500m"), pod("w-0", "1500m"), pod("big", "9")])
    assert list(found) == ["name", "family", "summary", "result", "kerf"]
    assert found["summary"] == {
        "nodes": 1,
        "totalCheapestPrice": pytest.approx(0.16),
        "podsOnExistingNodes": 0,
        "unschedulableCount": 1,
    }
    (claim,) = found["result"]["newNodeClaims"]
    assert claim["pods"] == ["w-0", "w-1"]
    assert claim["instanceTypes"] == ["b"]
    assert claim["requests"] == {"cpu": "3000m", "pods": "2"}
    assert claim["requirements"] == {
        "karpenter.k8s.aws/ec2nodeclass": {"operator": "In", "values": ["default"]},
        lbl.NODEPOOL: {"operator": "In", "values": ["default"]},
    }
    assert claim["launchCapacityTypes"] == ["on-demand", "spot"]
    assert claim["launchZones"] == ["z1", "z2"]
    assert claim["cheapestInstanceType"] == "b"
    assert list(found["result"]["errors"]) == ["big"]
    assert found["result"]["errors"]["big"].startswith("types-resources: ")
    (unplaced,) = found["kerf"]["unplaced"]
    assert (unplaced["count"], unplaced["reasons"][0]["code"]) == (1, "types-resources")
    json.dumps(found)  # plain JSON throughout


def test_a_trace_adds_the_funnel_and_zones_and_changes_nothing_else() -> None:
    plain = planned(pods=[pod("w-0")])
    traced = plan_scenario(scenario(pods=[pod("w-0")]), CATALOGUES, trace=True)
    funnel = traced["kerf"].pop("funnel")
    assert traced["kerf"].pop("effectiveZones") == {"flexible": 1}
    assert traced == plain
    assert funnel["claims"][0]["left"][0] == ["a", 0.08]


def test_pods_that_are_not_up_for_provisioning() -> None:
    gated = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    pods = [
        pod("gated", status={"phase": "Pending", **gated}),
        pod("bound", spec={"nodeName": "gone"}),
        pod("ignored", spec={"nodeSelector": {lbl.HOSTNAME: "n"}}),
    ]
    found = planned(pods=pods)
    assert found["summary"]["nodes"] == 0
    assert found["result"]["errors"] == {}
    assert list(found["result"]["ignored"]) == ["ignored"]


def test_limits_become_requests_where_none_is_given() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    given = scenario(pods=[{"metadata": {"name": "p"}, "spec": {"containers": [container]}}])
    (shape,) = problem_of(given, Catalogues(CATALOGUES)).shapes.values()
    assert shape.requests == {"cpu": 1000, "memory": GI}


def test_unprocessed_pods() -> None:
    """Without a NodePool that can be used, nothing is decided about any pod (S-62)."""
    ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    found = planned(pods=[pod("w-0")], nodePools=[{**pool(), **ready}])
    assert found["result"]["unprocessed"] == ["w-0"]
    assert found["result"]["errors"] == {}


def test_min_values_policy_and_preference_policy_are_read() -> None:
    given = scenario(options={"preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort"})
    settings = problem_of(given, Catalogues(CATALOGUES)).settings
    assert (settings.preference_policy, settings.min_values_policy) == ("Ignore", "BestEffort")


# ── instance types ──────────────────────────────────────────────────


def test_a_source_is_picked_restricted_and_patched_in_that_order() -> None:
    source = {
        "catalogue": "small",
        "names": ["b"],
        "zones": ["z2"],
        "patches": [
            {"capacityTypes": ["spot"], "set": {"available": False}},
            {"types": ["b"], "zones": ["z2"], "capacityTypes": ["on-demand"], "set": {"priceFactor": 0.5}},
            {"types": ["a"], "set": {"price": 99.0}},
        ],
        "reservations": [{"type": "b", "zone": "z2", "id": "cr-1", "capacity": 3, "price": 0.001}],
    }
    (found,) = Catalogues(CATALOGUES).source(source).types
    assert found.name == "b"
    assert found.requirements[lbl.ZONE] == ("z2",)
    assert found.requirements[lbl.ZONE_ID] == ("id-2",)
    assert found.requirements["karpenter.k8s.aws/instance-gpu-name"] == ()
    assert found.requirements[lbl.CAPACITY_TYPE] == ("on-demand", "spot", "reserved")
    assert found.requirements[lbl.RESERVATION_ID] == ("cr-1",)
    assert [(offering.capacity_type, offering.price, offering.available) for offering in found.offerings] == [
        ("on-demand", pytest.approx(0.2), True),
        ("spot", pytest.approx(0.16), False),
        ("reserved", 0.001, True),
    ]
    assert found.offerings[2].reservation_capacity == 3
    assert found.overhead == {"cpu": 80, "memory": 200 * 2**20}


def test_inline_types_and_sources_per_pool() -> None:
    own = {"instanceTypesByNodePool": {"other": {"inline": [instance_type("x", 8)]}}}
    given = scenario(pods=[pod("w-0", "5")], nodePools=[pool(), pool("other")], **own)
    (claim,) = plan_scenario(given, CATALOGUES)["result"]["newNodeClaims"]
    assert (claim["nodePool"], claim["instanceTypes"]) == ("other", ["x"])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"catalogue": "large"}, "there is no catalogue large"),
        ({"catalogue": "small", "names": ["z"]}, "no instance type z"),
        (
            {"reservations": [{"type": "q", "zone": "z1", "id": "r", "capacity": 1, "price": 1}]},
            "names no instance type",
        ),
    ],
)
def test_unknown_names_are_refused(source: dict[str, Any], text: str) -> None:
    with pytest.raises(CatalogueError, match=text) as caught:
        Catalogues(CATALOGUES).source(source)
    assert caught.value.code == "KERF841"


# ── nodes ───────────────────────────────────────────────────────────


def entry(**fields: Any) -> dict[str, Any]:
    return fields


def test_existing_nodes_take_pods_and_count_what_is_bound() -> None:
    nodes = [entry(node=node("n1", labels=INITIALIZED), nodeClaim=node_claim("c1"), pods=[pod("b-0", "3")])]
    found = planned(nodes=nodes, pods=[pod("w-0", "600m"), pod("w-1", "600m")])
    assert found["result"]["existingNodes"] == [{"name": "n1", "pods": ["w-0"]}]
    assert found["result"]["newNodeClaims"][0]["pods"] == ["w-1"]


def test_s79_a_daemon_is_expected_as_its_newest_pod_is() -> None:
    """The bound one requests 2 cores, by a webhook say, where the template has none."""
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "uid": "u"}}
    template = {"metadata": {"labels": {"d": "d"}}, "spec": {"containers": [{"name": "c"}]}}
    daemon["spec"] = {"selector": {"matchLabels": {"d": "d"}}, "template": template}
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]
    bound = pod("d-0", "2")
    bound["metadata"]["ownerReferences"] = owner
    nodes = [entry(node=node("n1", labels=INITIALIZED, cpu="2"), nodeClaim=node_claim("c1"), pods=[bound])]
    for there, requests in ((nodes, "3000m"), ([], "1000m")):
        (claim,) = planned(nodes=there, daemonSets=[daemon], pods=[pod("w-0", "1")])["result"]["newNodeClaims"]
        assert claim["requests"]["cpu"] == requests


def test_s74_a_request_for_what_a_node_does_not_have_takes_nothing_from_it() -> None:
    """The bound pod is there all the same: it was bound by hand, or the node had the resource then."""
    bound = pod("b-0", spec={"containers": [{"name": "c", "resources": {"requests": {"ephemeral-storage": "1Gi"}}}]})
    nodes = [entry(node=node("n1", labels=INITIALIZED), nodeClaim=node_claim("c1"), pods=[bound])]
    found = planned(nodes=nodes, pods=[pod("w-0")])
    assert found["result"]["existingNodes"] == [{"name": "n1", "pods": ["w-0"]}]


def test_s71_a_node_that_is_not_registered_goes_by_its_claim() -> None:
    taint = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
    unregistered = node("n1")
    unregistered["spec"]["taints"] = [taint]
    for given in (entry(node=unregistered, nodeClaim=node_claim("c1")), entry(nodeClaim=node_claim("c1"))):
        found = planned(nodes=[given], pods=[pod("w-0")])
        assert found["result"]["existingNodes"] == [{"name": "c1", "pods": ["w-0"]}]


def test_s72_startup_taints_count_only_after_initialization() -> None:
    startup = {"key": "cni", "effect": "NoSchedule"}
    for labels, placed in (({lbl.REGISTERED: "true"}, 1), (INITIALIZED, 0)):
        given = node("n1", labels=labels)
        given["spec"]["taints"] = [startup]
        claim = node_claim("c1", spec={"startupTaints": [startup]})
        assert (
            planned(nodes=[entry(node=given, nodeClaim=claim)], pods=[pod("w-0")])["summary"]["podsOnExistingNodes"]
            == placed
        )


def test_s73_until_initialized_missing_amounts_come_from_the_claim() -> None:
    given = node("n1", labels={lbl.REGISTERED: "true"}, cpu="0")
    found = planned(nodes=[entry(node=given, nodeClaim=node_claim("c1"))], pods=[pod("w-0", "3")])
    assert found["summary"]["podsOnExistingNodes"] == 1


def test_s50_pods_of_a_node_that_goes_are_planned_elsewhere() -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]
    daemon = pod("d-0")
    daemon["metadata"]["ownerReferences"] = owner
    kept = pod("kept")
    kept["metadata"]["annotations"] = {lbl.DO_NOT_DISRUPT: "true"}
    guarded = pod("guarded")
    guarded["metadata"]["labels"] = {"app": "guarded"}
    budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}}}
    going = entry(
        node=node("n1", labels=INITIALIZED),
        nodeClaim=node_claim("c1"),
        pods=[pod("b-0"), daemon, kept, guarded],
        markedForDeletion=True,
    )
    found = planned(nodes=[going], pods=[pod("w-0")], pdbs=[budget])
    assert found["result"]["newNodeClaims"][0]["pods"] == ["b-0", "w-0"]
    assert found["result"]["existingNodes"] == []


def test_s174_an_error_names_the_nodepool_nearest_to_a_place_first() -> None:
    """Both the error and the reasons of `kerf`."""
    expected = ["limits", "taints-not-tolerated"]
    tainted = pool("a")
    tainted["spec"]["template"]["spec"]["taints"] = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]
    found = planned(pods=[pod("w-0")], nodePools=[tainted, pool("b", limits={"cpu": "0"})])
    assert [text.split(":")[0] for text in found["result"]["errors"]["w-0"].split("; ")] == expected
    assert [reason["code"] for reason in found["kerf"]["unplaced"][0]["reasons"]] == expected


def test_s68_active_nodes_count_against_limits() -> None:
    nodes = [entry(node=node("n1", labels=INITIALIZED, cpu="4"), nodeClaim=node_claim("c1"), pods=[pod("b", "4")])]
    found = planned(nodes=nodes, pods=[pod("w-0")], nodePools=[pool(limits={"cpu": "5"})])
    assert found["result"]["errors"]["w-0"].startswith("limits: ")
    nodes[0]["markedForDeletion"] = True
    assert planned(nodes=nodes, pods=[pod("w-0")], nodePools=[pool(limits={"cpu": "5"})])["summary"]["nodes"] == 1


# ── bad input ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"now": "yesterday"}, "KERF308"),
        ({"pods": [pod("p", "lots")]}, "KERF306"),
        ({"pods": {"name": "p"}}, "KERF840"),
        ({"pods": ["p"]}, "KERF840"),
        ({"instanceTypes": {"catalogue": "nosuch"}}, "KERF841"),
        ({"instanceTypes": {"catalogue": "small", "nosuch": 1}}, "KERF840"),
        ({"nodePools": [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]}, "KERF840"),
        ({"options": {"minValuesPolicy": "Maybe"}}, "KERF840"),
    ],
)
def test_a_bad_scenario_gives_its_line_with_a_coded_error(fields: dict[str, Any], code: str) -> None:
    found = planned(**fields)
    assert (found["name"], found["family"]) == ("s", "f")
    assert found["result"]["error"].startswith(code)
    assert found["summary"]["nodes"] == 0


def test_reading_files(tmp_path: Path) -> None:
    lines = tmp_path / "scenarios.jsonl"
    lines.write_text(json.dumps(scenario(pods=[pod("w-0")])) + "\n\nnot json\n[]\n")
    catalogues = tmp_path / "catalogues.json"
    catalogues.write_text(json.dumps({"catalogues": CATALOGUES}))
    known = read_catalogues(catalogues)
    found = [plan_scenario(read_scenario, known) for read_scenario in read_scenarios(lines)]
    assert [line["name"] for line in found] == ["s", "scenarios.jsonl:3", "scenarios.jsonl:4"]
    assert found[0]["summary"]["nodes"] == 1
    assert [line["result"]["error"][:7] for line in found[1:]] == ["KERF840", "KERF840"]


@pytest.mark.parametrize("text", ["nonsense", "{}", '{"catalogues": []}'])
def test_a_file_that_holds_no_catalogues(tmp_path: Path, text: str) -> None:
    path = tmp_path / "catalogues.json"
    path.write_text(text)
    with pytest.raises(ScenarioError):
        read_catalogues(path)


@pytest.mark.parametrize("price", [-0.1, float("inf"), float("nan"), -1e400])
def test_a_price_that_is_no_finite_amount_is_refused_with_its_path(price: float) -> None:
    """The planner divided by it, which ended the whole file as a defect of kerf (KERF900)."""
    odd = instance_type("odd", 2)
    odd["offerings"][1]["price"] = price
    found = planned(pods=[pod("w-0")], instanceTypes={"inline": [instance_type("a", 2), odd]})
    assert found["result"]["error"].startswith("KERF840: expected a number ")
    assert "[instanceTypes.inline[1].offerings[1].price]" in found["result"]["error"]


@pytest.mark.parametrize("field", ["price", "priceFactor"])
def test_a_patch_with_a_negative_price_is_refused_with_its_path(field: str) -> None:
    source = {"catalogue": "small", "patches": [{"set": {field: -1}}]}
    error = planned(pods=[pod("w-0")], instanceTypesByNodePool={"default": source})["result"]["error"]
    assert error.startswith("KERF840: expected a number >= 0.0 [instanceTypesByNodePool[default].patches[0].set.")
    assert f".set.{field}]" in error


def test_a_catalogue_with_a_negative_price_is_refused_with_its_path() -> None:
    odd = instance_type("odd", 2)
    odd["offerings"][0]["price"] = -1
    found = plan_scenario(scenario(pods=[pod("w-0")]), {"small": [odd]})
    assert "[catalogues.small[0].offerings[0].price]" in found["result"]["error"]


def test_what_costs_nothing_is_planned() -> None:
    patches = {"catalogue": "small", "patches": [{"set": {"priceFactor": 0}}]}
    found = planned(pods=[pod("w-0")], instanceTypes=patches)
    assert (found["summary"]["nodes"], found["summary"]["totalCheapestPrice"]) == (1, 0)


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        ({"pods": [None]}, "pods[0]", "expected an object, got null"),
        ({"pods": {"a": 1}}, "pods", "expected a list or null, got an object"),
        ({"nodePools": ["default"]}, "nodePools[0]", "expected an object, got a string"),
        ({"pods": [{"metadata": "w"}]}, "pods[0].metadata", "expected an object or null, got a string"),
        ({"nodes": [{"node": "n"}]}, "nodes[0].node", "expected an object or null, got a string"),
        ({"nodes": [{"pods": [5]}]}, "nodes[0].pods[0]", "expected an object, got an integer"),
        ({"daemonSets": [{"spec": {"template": 5}}]}, "daemonSets[0].spec.template", "expected an object or null"),
        ({"options": {"featureGates": ["a"]}}, "options.featureGates", "expected an object or null, got a list"),
        ({"instanceTypesByNodePool": True}, "instanceTypesByNodePool", "expected an object or null, got true or false"),
    ],
)
def test_a_part_of_a_wrong_type_is_told_with_its_path(fields: dict[str, Any], path: str, expected: str) -> None:
    """It was told as Python saw it: 'NoneType' object has no attribute 'get'."""
    error = planned(**fields)["result"]["error"]
    assert error.startswith(f"KERF840: {expected}")
    assert f"[{path}]" in error
