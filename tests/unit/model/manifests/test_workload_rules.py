"""Pods and workloads as the API server takes them: by its published schemas, and by rules beyond them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy import make_schemas
from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import changed

POD_SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "env": [{"name": "A", "value": "b"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        }
    ],
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        }
    },
}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD_SPEC}


def workload(kind: str, api: str = "apps/v1", /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


SELECTED: dict[str, Any] = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOB_SPEC = {"template": {"spec": POD_SPEC | {"restartPolicy": "Never"}}}
GOOD = (
    workload("Pod", "v1", **POD_SPEC),
    workload("Deployment", replicas=2, **SELECTED),
    workload("StatefulSet", serviceName="s", **SELECTED),
    workload("DaemonSet", **SELECTED),
    workload("Job", "batch/v1", backoffLimit=3, **JOB_SPEC),
    workload("CronJob", "batch/v1", schedule="* * * * *", jobTemplate={"spec": JOB_SPEC}),
    workload("PodDisruptionBudget", "policy/v1", minAvailable="50%", selector={"matchLabels": {"app": "a"}}),
    workload("PersistentVolumeClaim", "v1", **CLAIM_SPEC),
)
WRONG_TYPES: tuple[Any, ...] = ([], {}, True, "x", 1.5)


def codes(document: dict[str, Any], version: str = "") -> dict[str, str]:
    found = judge(document, published=published_schemas(version))
    return {violation.path: violation.code for violation in found.violations}


@pytest.mark.parametrize("document", GOOD, ids=lambda document: document["kind"])
def test_a_good_object_is_accepted(document: dict[str, Any]) -> None:
    found = judge(document, published=published_schemas())
    assert (found.verdict, found.violations) == ("accepted", ())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every field below `spec`."""
    found = [path] if path[:1] == ("spec",) and len(path) > 1 else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, inner in entries for place in places(inner, (*path, key))]


@pytest.fixture(scope="module", autouse=True)
def _schemas_are_read_once() -> Iterator[None]:
    """The package reads two megabytes of JSON for each object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))
        yield


def oracle_accepts(document: dict[str, Any]) -> bool:
    try:
        kubernetes_validate.validate(document, f"{published_version()}.0", strict=True)
    except kubernetes_validate.ValidationError:
        return False
    return True


def published_version() -> str:
    return ".".join(map(str, published_schemas().version))


@given(st.data())
def test_fields_and_types_are_refused_where_the_published_schemas_refuse_them(data: st.DataObject) -> None:
    """One field of a good object is renamed, dropped, or given a value of another type."""
    document = copy.deepcopy(data.draw(st.sampled_from(GOOD)))
    *path, last = data.draw(st.sampled_from(places(document)))
    holder: Any = document
    for key in path:
        holder = holder[key]
    change = data.draw(st.sampled_from(["rename", "retype"])) if isinstance(last, str) else "retype"
    if change == "rename":
        holder[last.lower() + "x"] = holder.pop(last)
    else:
        holder[last] = data.draw(st.sampled_from(WRONG_TYPES))
    if not oracle_accepts(document):
        assert judge(document, published=published_schemas()).verdict == "refused"


@given(st.data())
def test_kerf_reports_no_unknown_field_that_the_published_schemas_know(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(GOOD)))
    *path, last = data.draw(st.sampled_from(places(document)))
    holder: Any = document
    for key in path:
        holder = holder[key]
    holder[last] = data.draw(st.sampled_from(WRONG_TYPES))
    if oracle_accepts(document):
        assert not {"KERF320", "KERF303"} & set(codes(document).values()), codes(document)


def test_the_file_is_what_the_script_makes_of_the_source_and_is_small() -> None:
    text = make_schemas.OUT.read_text(encoding="utf-8")
    assert text == make_schemas.document()
    assert len(text) < 1_000_000


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_selector_must_select_its_template(kind: str) -> None:
    document = workload(kind, **SELECTED)
    assert codes(document) == {}
    other = changed(document, "spec.selector.matchLabels", {"app": "b"})
    assert codes(other) == {"spec.selector.matchLabels[app]": "KERF322"}
    expressions = [{"key": "app", "operator": "NotIn", "values": ["a"]}]
    other = changed(document, "spec.selector", {"matchExpressions": expressions})
    assert codes(other) == {"spec.selector.matchExpressions[0]": "KERF322"}
    assert codes(changed(document, "spec.selector", {})) == {"spec.selector": "KERF304"}


def test_labels_that_stand_in_the_selector_itself_have_their_place() -> None:
    """As a Service has them."""
    document = changed(workload("Deployment", **SELECTED), "spec.selector", {"app": "a"})
    (wrong,) = judge(document, published=published_schemas()).violations
    assert (wrong.code, wrong.path, wrong.hint) == ("KERF320", "spec.selector.app", "Write it into matchLabels")


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({"cpu": "1"}, {"cpu": "500m"}, {"requests[cpu]": "KERF309"}),
        ({"memory": "1Gi"}, {"memory": "1024Mi"}, {}),
        ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 1}, {"requests[nvidia.com/gpu]": "KERF309"}),
        ({"cpu": 0.5}, {"cpu": "1x"}, {"limits[cpu]": "KERF306"}),
        ({"cpu": "x"}, {}, {"requests[cpu]": "KERF306"}),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": "1"}, {}),
        ({}, {"nvidia.com/gpu": 1}, {}),
        ({"nvidia.com/gpu": 1}, {}, {"requests[nvidia.com/gpu]": "KERF309"}),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, {"requests[nvidia.com/gpu]": "KERF309"}),
        ({}, {"nvidia.com/gpu": "500m"}, {"limits[nvidia.com/gpu]": "KERF306"}),
        ({"hugepages-2Mi": "2Mi", "cpu": 1}, {}, {"requests[hugepages-2Mi]": "KERF309"}),
        ({}, {"gpu": 1}, {"limits[gpu]": "KERF305"}),
        ({"ephemeral-storage": "1Gi"}, {}, {}),
        ({"example.kubernetes.io/x": 1}, {}, {}),
    ],
)
def test_requests_suit_their_limits(requests: dict[str, Any], limits: dict[str, Any], expected: dict[str, str]) -> None:
    pod = workload(
        "Pod", "v1", containers=[{"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}]
    )
    prefix = "spec.containers[0].resources."
    assert codes(pod) == {f"{prefix}{path}": code for path, code in expected.items()}
    job = workload("Job", "batch/v1", template={"spec": {**pod["spec"], "restartPolicy": "Never"}})
    assert codes(job) == {f"spec.template.{prefix}{path}": code for path, code in expected.items()}


@pytest.mark.parametrize("size", ["10GB", "1GiB", "lots", ""])
def test_every_quantity_is_one_wherever_it_stands(size: str) -> None:
    """The API server cannot decode such an object."""
    claim = changed(workload("PersistentVolumeClaim", "v1", **CLAIM_SPEC), "spec.resources.requests.storage", size)
    assert codes(claim) == {"spec.resources.requests[storage]": "KERF306"}
    made = workload(
        "StatefulSet",
        serviceName="s",
        **SELECTED,
        volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": claim["spec"]}],
    )
    assert codes(made) == {"spec.volumeClaimTemplates[0].spec.resources.requests[storage]": "KERF306"}
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": size}}]
    pod = workload("Pod", "v1", **POD_SPEC, volumes=volumes)
    assert codes(pod) == {"spec.volumes[0].emptyDir.sizeLimit": "KERF306"}


def node_affinity(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "a", "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return workload("Pod", "v1", affinity=affinity, containers=[{"name": "c", "image": "i"}])


@pytest.mark.parametrize(
    ("operator", "values", "field"),
    [
        ("In", ("x",), ""), ("In", (), "values"), ("Exists", (), ""), ("Exists", ("x",), "values"),
        ("Gt", ("5",), ""), ("Gt", ("many",), "values"), ("Lt", ("1", "2"), "values"),
        ("Gte", ("5",), "operator"), ("Equals", ("x",), "operator"),
    ],
)  # fmt: skip
def test_operators_of_node_affinity_are_those_of_kubernetes(operator: str, values: tuple[str, ...], field: str) -> None:
    found = codes(node_affinity(operator, *values))
    assert [path.rpartition(".")[2] for path in found] == ([field] if field else [])


def test_what_to_write_in_place_of_an_operator_that_only_nodepools_have() -> None:
    (violation,) = judge(node_affinity("Gte", "5"), published=published_schemas()).violations
    assert violation.hint == "Write Gt with the number before it: pods have no Gte"
    assert "Gte" not in violation.message.partition("one of")[2]


@pytest.mark.parametrize(
    ("toleration", "version", "field"),
    [
        ({"key": "a", "operator": "Lt", "value": "5"}, "", ""),
        ({"key": "a", "operator": "Lt", "value": "5"}, "1.34", "operator"),
        ({"operator": "Equal", "value": "x"}, "", "operator"),
        ({"key": "a", "operator": "Exists", "value": "x"}, "", "value"),
        ({"operator": "Exists"}, "", ""),
        ({"key": "a", "operator": "In"}, "", "operator"),
    ],
)
def test_tolerations_are_those_of_the_version(toleration: dict[str, str], version: str, field: str) -> None:
    found = codes(workload("Pod", "v1", tolerations=[toleration], containers=[{"name": "c", "image": "i"}]), version)
    assert [path.rpartition(".")[2] for path in found] == ([field] if field else [])


@pytest.mark.parametrize(
    ("path", "wrong", "field"),
    [
        ("spec.template.spec.tolerations", [{"operator": ["Exists"]}], "spec.template.spec.tolerations[0].operator"),
        (
            "spec.selector.matchExpressions",
            [{"key": "none", "operator": "In", "values": "x"}],
            "spec.selector.matchExpressions[0].values",
        ),
    ],
)
def test_operators_and_values_of_wrong_types_are_refused_as_such(path: str, wrong: Any, field: str) -> None:
    """`make fuzz` found that kerf broke on them (KERF605)."""
    document = changed(workload("Deployment", **SELECTED), path, wrong)
    assert codes(document) == {field: "KERF303"}
