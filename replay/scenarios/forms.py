"""Convert parts of a scenario into structs, or say which field has another form, and what is expected there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kerf.replay.scenarios.errors import ScenarioError

HINT = "See docs/plan.md, which describes the format"
_NAMES = {"float": "a number", "int": "an integer", "str": "a string", "bool": "true or false", "array": "a list",
          "object": "an object", "null": "null"}  # fmt: skip
_QUOTED = re.compile("`([^`]*)`")
T = TypeVar("T")


class _Object(Struct):
    metadata: dict[str, Any] | None = None


class _PodTemplate(Struct):
    spec: dict[str, Any] | None = None


class _DaemonSetSpec(Struct):
    template: _PodTemplate | None = None


class _DaemonSet(_Object):
    spec: _DaemonSetSpec | None = None


class _Node(Struct, rename="camel"):
    node: _Object | None = None
    node_claim: _Object | None = None
    pods: list[_Object] | None = None


class _Options(Struct, rename="camel"):
    feature_gates: dict[str, Any] | None = None


_Objects = list[_Object] | None


class _Scenario(Struct, rename="camel"):
    """The outline of a scenario. What stands within its objects is checked where they are decoded."""

    pods: _Objects = None
    node_pools: _Objects = None
    nodes: list[_Node] | None = None
    daemon_sets: list[_DaemonSet] | None = None
    namespaces: _Objects = None
    pdbs: _Objects = None
    services: _Objects = None
    workloads: _Objects = None
    node_overlays: _Objects = None
    capacity_buffers: _Objects = None
    pod_templates: _Objects = None
    resource_claims: _Objects = None
    device_classes: _Objects = None
    resource_slices: _Objects = None
    pvcs: _Objects = None
    pvs: _Objects = None
    storage_classes: _Objects = None
    csi_nodes: _Objects = None
    options: _Options | None = None
    instance_types: dict[str, Any] | None = None
    instance_types_by_node_pool: dict[str, Any] | None = None


def check_outline(scenario: Mapping[str, Any]) -> None:
    """Raise ScenarioError (KERF840) with the path of the first part of a scenario that is of a wrong type."""
    converted(scenario, _Scenario, "")


def converted(document: Any, form: type[T], where: str) -> T:
    """Return a part of a scenario as `form`. `where` is the part's field path.

    Raises ScenarioError (KERF840) with the path of the field that is wrong.
    """
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        problem, _, below = str(error).partition(" - at `$")
        path = (where + below.removesuffix("`")).removeprefix(".")
        raise ScenarioError(_told(problem), where=path, hint=HINT) from error


def _told(problem: str) -> str:
    """Return msgspec's complaint with names of JSON's types ("expected a number >= 0.0")."""
    plain = _QUOTED.sub(lambda found: " or ".join(_NAMES.get(name, name) for name in found[1].split(" | ")), problem)
    return plain[:1].lower() + plain[1:]
