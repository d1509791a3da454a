"""What the API server refuses in the parts of a pod with many fields, one fault at a time."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.rich_pod import BAD, POD
from tests.support.manifests.small import changed

OTHERWISE = {
    "volumeMounts.1.readOnly": "volumeMounts[1].recursiveReadOnly",
    "volumeMounts.1.mountPropagation": "volumeMounts[1].recursiveReadOnly",
    "securityContext.capabilities": "securityContext.allowPrivilegeEscalation",
    "resourceClaims.0.resourceClaimTemplateName": "resourceClaims[0]",
}
"""Where faults are told that lie between two fields."""
OTHERS: tuple[Any, ...] = (None, 5, True, "", "x", [], [5], {}, {"a": 5})
"""Values of other types."""


def found(spec: dict[str, Any], kind: str = "Pod", api: str = "v1") -> list[tuple[str, str]]:
    document = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


def templated(spec: dict[str, Any]) -> dict[str, Any]:
    pods = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return {"selector": {"matchLabels": {"a": "b"}}, "template": pods}


def test_the_pod_is_fine_before() -> None:
    assert found(POD) == []
    assert found(templated(POD), "Deployment", "apps/v1") == []


@pytest.mark.parametrize("field", BAD)
def test_a_fault_is_told_once(field: str) -> None:
    bad, code, below = BAD[field]
    at = field
    for written, told in OTHERWISE.items():
        at = at.replace(written, told) if at.endswith(written) else at
    path = re.sub(r"\.(\d+)", r"[\1]", at) + below
    assert found(changed(POD, field, bad)) == [(code, f"spec.{path}")]


@pytest.mark.parametrize("field", BAD)
def test_a_value_of_another_type_breaks_no_rule(field: str) -> None:
    for other in OTHERS:
        told = found(changed(POD, field, other))
        assert len({path for _, path in told}) == len(told)
        wrong_types = [path for code, path in told if code == "KERF303"]
        below = [path for _, path in told for outer in wrong_types if path != outer and path.startswith(outer)]
        assert below == []


def test_spaces_around_an_image() -> None:
    """The API server looks at them in pods, and not in templates."""
    spaced = changed(POD, "containers.0.image", " i")
    assert found(spaced) == [("KERF305", "spec.containers[0].image")]
    assert found(templated(spaced), "Deployment", "apps/v1") == []


def test_an_init_container_that_ends_has_no_probes() -> None:
    first = {"name": "first", "image": "i", "restartPolicy": "Never", "livenessProbe": {"httpGet": {"port": 80}}}
    spec = {"containers": [{"name": "c", "image": "i"}], "initContainers": [first]}
    assert found(spec) == [("KERF305", "spec.initContainers[0].livenessProbe")]
    first["restartPolicy"] = "Always"
    assert found(spec) == []


@pytest.mark.parametrize(
    ("second", "on_node", "told"),
    [
        ({"containerPort": 81, "hostPort": 80}, False, True),
        ({"containerPort": 81, "hostPort": 80, "protocol": "UDP"}, False, False),
        ({"containerPort": 81, "hostPort": 80, "hostIP": "10.0.0.1"}, False, False),
        ({"containerPort": 80}, False, False),
        ({"containerPort": 80}, True, True),
    ],
)
def test_two_containers_on_one_port_of_the_node(second: dict[str, Any], on_node: bool, told: bool) -> None:
    containers = [
        {"name": name, "image": "i", "ports": [port]}
        for name, port in (("a", {"containerPort": 80, "hostPort": 80}), ("b", second))
    ]
    spec = {"containers": containers, "hostNetwork": on_node}
    assert found(spec) == ([("KERF321", "spec.containers[1].ports[0].hostPort")] if told else [])


def test_a_privileged_container_shares_its_mounts() -> None:
    spec = copy.deepcopy(POD)
    spec["containers"][0]["volumeMounts"][0]["mountPropagation"] = "Bidirectional"
    spec["containers"][0]["securityContext"] = {"privileged": True}
    assert found(spec) == []


def test_a_sleep_has_to_end_before_the_pod_has_to() -> None:
    path = "containers.0.lifecycle.preStop.sleep.seconds"
    assert found(changed(changed(POD, "terminationGracePeriodSeconds", 60), path, 60)) == []
    short = changed(changed(POD, "initContainers", []), "terminationGracePeriodSeconds", 10)
    assert found(short) == [("KERF309", "spec.containers[0].lifecycle.preStop.sleep.seconds")]


def test_what_a_pod_as_a_whole_asks_for() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert found({**spec, "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}) == []
    told = [("KERF305", "spec.resources.limits[ephemeral-storage]")]
    assert found({**spec, "resources": {"limits": {"ephemeral-storage": 1}}}) == told
    claims = {"claims": [{"name": "gpu"}]}
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "g"}]
    assert found({**spec, "resources": claims}) == [("KERF305", "spec.resources.claims")]


@pytest.mark.parametrize(
    ("overhead", "told"),
    [({"cpu": "100m"}, []), ({"gpu": 1}, ["KERF305"]), ({"cpu": -1}, ["KERF309"]), ({"cpu": "x"}, ["KERF306"])],
)
def test_the_overhead_of_a_pod(overhead: dict[str, Any], told: list[str]) -> None:
    spec = templated({"containers": [{"name": "c", "image": "i"}], "overhead": overhead})
    (name,) = overhead
    expected = [(code, f"spec.template.spec.overhead[{name}]") for code in told]
    assert found(spec, "Deployment", "apps/v1") == expected


def test_ephemeral_containers_come_later() -> None:
    """A running pod may have them; a template has none."""
    spec = {"containers": [{"name": "c", "image": "i"}], "ephemeralContainers": [{"name": "d", "image": "i"}]}
    assert found(spec) == []
    told = [("KERF305", "spec.template.spec.ephemeralContainers")]
    assert found(templated(spec), "Deployment", "apps/v1") == told


@pytest.mark.parametrize(
    ("term", "told"),
    [
        ({"namespaces": [""]}, [("KERF312", ".namespaces[0]")]),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
            [("KERF305", ".namespaceSelector.matchExpressions[0].operator")],
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            [("KERF310", ".namespaceSelector.matchExpressions[0].values")],
        ),
    ],
)
def test_namespaces_of_pods_that_others_keep_away_from(term: dict[str, Any], told: list[tuple[str, str]]) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {required: [{"topologyKey": "zone", "labelSelector": {}, **term}]}}
    path = f"spec.affinity.podAntiAffinity.{required}[0]"
    spec = {"containers": [{"name": "c", "image": "i"}], "affinity": affinity}
    assert found(spec) == [(code, path + below) for code, below in told]


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoRun"}]}, "KERF305", "tolerations[0].effect"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Wait"}]},
            "KERF305",
            "topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": -1}}}]},
            "KERF306",
            "containers[0].resources.limits[cpu]",
        ),
    ],
)
def test_pods_of_jobs_are_held_to_the_same(change: dict[str, Any], code: str, path: str) -> None:
    """kerf reads no Jobs: what it says of pods that it reads was not said of theirs."""
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", **change}
    assert found(pod) == [(code, f"spec.{path}")]
    assert found({"template": {"spec": pod}}, "Job", "batch/v1") == [(code, f"spec.template.spec.{path}")]
