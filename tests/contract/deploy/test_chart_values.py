"""The charts' schemas of their values: what they say themselves, without helm. Its neighbour test_chart renders."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from kerf.adapters.manager.settings import NAMES
from kerf.engine.model.feature_gates import FIELDS, OTHERS
from tests.support.servers.helm import CHARTS

ELSEWHERE = {
    "feature_gates", "metrics_port", "health_probe_port", "leader_election_namespace", "log_level", "log_output_paths",
    "scheduler_config",
}  # fmt: skip
"""Settings of kerf that have values of their own kind or in another place."""


def schema(chart: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHARTS / chart / "values.schema.json").read_text(encoding="utf-8"))
    return found


def unknown(values: Any, known: dict[str, Any], path: str = "") -> list[str]:
    """Values that the schema does not name, or that are not of a type that it takes."""
    if values is None:
        return [] if "null" in known.get("type", ()) else [path]
    if not isinstance(values, dict) or "properties" not in known:
        return []
    found = [f"{path}.{name}" for name in values if name not in known["properties"]]
    below = [(name, value) for name, value in values.items() if name in known["properties"]]
    return found + [
        wrong for name, part in below for wrong in unknown(part, known["properties"][name], f"{path}.{name}")
    ]


@pytest.mark.parametrize("chart", ["kerf", "kerf-crd"])
def test_the_schema_takes_the_charts_own_values_and_names_no_others(chart: str) -> None:
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text(encoding="utf-8"))
    assert unknown(values, schema(chart)) == []
    assert unknown(values | {"logLevl": "debug"}, schema(chart)) == [".logLevl"]
    assert _open(schema(chart)) == []


def _open(known: dict[str, Any], path: str = "") -> list[str]:
    """Objects with named values that would take any other besides."""
    found = [path] if "properties" in known and known.get("additionalProperties") is not False else []
    return found + [
        open_path for name, below in known.get("properties", {}).items() for open_path in _open(below, f"{path}.{name}")
    ]


def test_each_setting_is_one_of_kerfs_and_each_of_kerfs_is_there() -> None:
    """L-335: settings.* are the variables in camelCase, acronyms in capitals."""
    settings = schema("kerf")["properties"]["settings"]["properties"]
    flat = {name.lower() for name in settings} - {
        "featuregates",
        "schedulerconfig",
        "assumerolearn",
        "assumeroleduration",
    }
    assert flat == {name.replace("_", "") for name in NAMES if name not in ELSEWHERE}
    gates = {name[0].upper() + name[1:] for name in settings["featureGates"]["properties"]}
    assert gates == {*FIELDS, *OTHERS}


@pytest.mark.parametrize(
    ("name", "takes", "refuses"),
    [
        ("batchIdleDuration", ["1s", "1m30s", "500ms", "1.5s"], ["5", "10 s", "1d"]),
        ("retainObservations", ["7d", "36h", "0"], ["7", "week"]),
        ("retainSize", ["8Gi", "0", "500M", "1.5Gi"], ["8GB", "8 Gi"]),
        ("vmMemoryOverheadPercent", ["0.075", "0"], ["7.5", "7%"]),
        ("clusterEndpoint", ["https://10.0.0.1:443"], ["10.0.0.1"]),
    ],
)
def test_patterns(name: str, takes: list[str], refuses: list[str]) -> None:
    pattern = schema("kerf")["properties"]["settings"]["properties"][name]["pattern"]
    assert all(re.search(pattern, take) for take in takes)
    assert not any(re.search(pattern, refused) for refused in refuses)
