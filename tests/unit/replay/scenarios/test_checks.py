"""What is no scenario is refused, and told what one looks like; so are names that occur twice (docs/plan.md, 1)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import plan_scenario
from tests.support.scenarios.plan_documents import CATALOGUES, node, pod, pool, scenario


def refused(given: dict[str, Any]) -> str:
    """The error of a plan, which is that of a disruption too."""
    errors = {str(answer(given, CATALOGUES)["result"].get("error")) for answer in (plan_scenario, disrupt_scenario)}
    (error,) = errors
    return error


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"apiVersion": "v1", "kind": "List", "items": [pod("x")]}, "a Kubernetes object of kind List"),
        ({"metadata": {"name": "x"}, "spec": {"containers": []}}, "a Kubernetes object"),
        ({}, "an object without fields"),
        ({"catalogues": {}}, "an object of catalogues"),
    ],
)
def test_what_is_no_scenario_is_told_what_one_looks_like(document: dict[str, Any], what: str) -> None:
    error = refused(document)
    assert error.startswith(f'KERF840: {what} is no scenario. A scenario is {{"pods": [Pod, …]')
    assert "kerf simulate takes manifests" in error


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"pods": [pod("a"), pod("b"), pod("a")]}, "there is a pod a already, at pods[0] [pods[2]]"),
        (
            {"pods": [pod("a"), {**pod("a"), "metadata": {"name": "a", "namespace": "other"}}]},
            "there is a pod a already, at pods[0] [pods[1]]",
        ),
        (
            {"pods": [pod("a")], "nodes": [{"node": node("n"), "pods": [pod("a")]}]},
            "there is a pod a already, at pods[0] [nodes[0].pods[0]]",
        ),
        ({"nodePools": [pool(), pool()]}, "there is a NodePool default already, at nodePools[0] [nodePools[1]]"),
        ({"nodes": [{"node": node("n")}, {"node": node("n")}]}, "there is a node n already, at nodes[0] [nodes[1]]"),
    ],
)
def test_what_stands_there_twice_is_refused_by_name(fields: dict[str, Any], error: str) -> None:
    """Results refer to pods by their names: of two of one name one was lost."""
    assert refused(scenario(**fields)).startswith(f"KERF321: {error}. Names are unique in a scenario")


@pytest.mark.parametrize("place", ["pods[0]", "nodes[0].pods[0]"])
def test_a_workload_among_the_pods_is_none(place: str) -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    fields = {"pods": [web]} if place == "pods[0]" else {"nodes": [{"node": node("n"), "pods": [web]}]}
    assert refused(scenario(**fields)).startswith(f"KERF302: expected a Pod, found Deployment web [{place}]")
