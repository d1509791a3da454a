"""Check that a document of a file is a scenario, and that each name in it stands there once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.engine.errors import InputError
from kerf.replay.scenarios.errors import ScenarioError
from kerf.replay.scenarios.forms import check_outline
from kerf.replay.scenarios.typos import check_fields

SUBJECTS = ("pods", "nodes", "nodePools")
"""Every scenario has one of these; without them nothing is asked."""
FORM = (
    'A scenario is {"pods": [Pod, …], "nodePools": [NodePool, …], "instanceTypes": {"inline": […]}}: see docs/plan.md. '
    "kerf simulate takes manifests"
)
UNIQUE = "Names are unique in a scenario, even across namespaces: results refer to them (docs/plan.md)"

Item = tuple[str, Mapping[str, Any]]
"""The place of an object, and the object."""


def check_scenario(scenario: Mapping[str, Any]) -> None:
    """Raise an error for what cannot be a scenario.

    ScenarioError (KERF840): no scenario at all, mistyped fields, or parts of a wrong type. InputError: an object of
    another kind among the pods (KERF302), or a pod, node or NodePool that stands there twice (KERF321).
    """
    check_fields(scenario)
    if not any(name in scenario for name in SUBJECTS):
        raise ScenarioError(f"{_what(scenario)} is no scenario", hint=FORM)
    check_outline(scenario)
    pods = [*_items(scenario.get("pods"), "pods"), *_pods_of_nodes(scenario)]
    for where, pod in pods:
        kind = pod.get("kind") or "Pod"
        if kind != "Pod":
            hint = "Give the Pods that it makes, or the manifest to kerf simulate"
            raise InputError(f"expected a Pod, found {kind} {_name(pod)}", where=where, hint=hint, code="KERF302")
    _check_once("pod", pods)
    _check_once("NodePool", _items(scenario.get("nodePools"), "nodePools"))
    _check_once("node", _items([node.get("node") for _, node in _nodes(scenario)], "nodes"))


def _what(scenario: Mapping[str, Any]) -> str:
    kind = scenario.get("kind")
    if kind:
        return f"a Kubernetes object of kind {kind}"
    if not scenario:
        return "an object without fields"
    if "metadata" in scenario or "spec" in scenario:
        return "a Kubernetes object"
    return f"an object of {', '.join(map(str, scenario))}"


def _check_once(what: str, items: list[Item]) -> None:
    known: dict[str, str] = {}
    for where, item in items:
        name = _name(item)
        if name in known:
            message = f"there is a {what} {name} already, at {known[name]}"
            raise InputError(message, where=where, hint=UNIQUE, code="KERF321")
        if name:
            known[name] = where


def _nodes(scenario: Mapping[str, Any]) -> list[Item]:
    return _items(scenario.get("nodes"), "nodes")


def _pods_of_nodes(scenario: Mapping[str, Any]) -> Iterator[Item]:
    for where, node in _nodes(scenario):
        yield from _items(node.get("pods"), f"{where}.pods")


def _items(document: Any, path: str) -> list[Item]:
    """Return the objects of a list with their places. Anything of another form is refused where it is read."""
    if not isinstance(document, list):
        return []
    return [(f"{path}[{index}]", item) for index, item in enumerate(document) if isinstance(item, Mapping)]


def _name(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
