"""What may be mistyped in a scenario is told with what may be meant."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import plan_scenario
from tests.support.scenarios.plan_documents import CATALOGUES, pod, pool, scenario


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"nodepools": []}, "[nodepools]. Is it nodePools?"),
        ({"options": {"preferencePolcy": "Ignore"}}, "[options.preferencePolcy]. Is it preferencePolicy?"),
    ],
)
def test_a_mistyped_field_is_refused_and_a_strange_one_is_whoevers_it_is(change: dict[str, Any], where: str) -> None:
    given = scenario(nodes=[], seed=7, mine=True)
    assert "error" not in plan_scenario(given, CATALOGUES)["result"]
    for found in (plan_scenario(given | change, CATALOGUES), disrupt_scenario(given | change, CATALOGUES)):
        assert found["result"]["error"].startswith("KERF840: there is no field ")
        assert found["result"]["error"].endswith(where)


def test_mistyped_values_are_noted_once_where_pods_have_no_place() -> None:
    zone = {"nodeSelector": {lbl.ARCH: "amd46"}}
    pods = [pod("x", spec=zone), pod("y", "900m", spec=zone)]
    requirements = [{"key": lbl.CAPACITY_TYPE, "operator": "In", "values": ["on-demand", "sopt"]}]
    given = scenario(pods=pods, nodePools=[pool(requirements=requirements)])
    noted = plan_scenario(given, CATALOGUES)["kerf"]["notes"]
    assert [(note["object"], note["params"]["near"]) for note in noted] == [
        ("NodePool/default", "spot"), ("pods", "amd64"),
    ]  # fmt: skip
    assert noted[1]["text"].endswith("Is it amd64?")
    assert "notes" not in plan_scenario(scenario(pods=[pod("x")]), CATALOGUES)["kerf"]


def test_the_names_of_node_pools_are_known() -> None:
    given = scenario(pods=[pod("x", spec={"nodeSelector": {lbl.NODEPOOL: "defualt"}})])
    (noted,) = plan_scenario(given, CATALOGUES)["kerf"]["notes"]
    assert (noted["code"], noted["params"]["near"]) == ("mistyped-value", "default")


def test_the_values_that_node_pools_give_are_known() -> None:
    tier = [{"key": "tier", "operator": "In", "values": ["critical"]}]
    pools = [pool(requirements=tier), pool(name="b", requirements=tier)]
    given = scenario(pods=[pod("x", spec={"nodeSelector": {"tier": "critcal"}})], nodePools=pools)
    (noted,) = plan_scenario(given, CATALOGUES)["kerf"]["notes"]
    assert (noted["code"], noted["object"], noted["params"]["near"]) == ("mistyped-value", "pods", "critical")


def test_a_scenario_without_instance_types_says_how_to_give_them() -> None:
    found = plan_scenario(scenario(pods=[pod("x")], instanceTypes=None), CATALOGUES)["kerf"]
    (noted,) = found["notes"]
    assert (noted["object"], noted["code"]) == ("NodePool/default", "no-types-given")
    assert "instanceTypes.inline" in noted["text"]
    assert found["unplaced"][0]["reasons"][0]["text"] == "NodePool default: there are no instance types for it"
