"""`kerf validate` and an API server on the same objects, each with one field changed at random."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection
from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.validate import judge
from kerf.engine.model.manifests.violations import Violation
from tests.support.controlplane.plane import ControlPlane
from tests.support.manifests.random_objects import Document, RandomObjects, Schema

pytestmark = pytest.mark.slow
OBJECTS = 1_000
"""So many for each seed; the API server takes a millisecond for one."""
SEEN_OF_REFUSED = 0.95
"""The share of what the API server refuses that `kerf validate` refuses, too: 0.985 of 9,135 on 2026-11-30. Half of the
rest is a `priority` beside a PriorityClass that only the cluster knows, and what is refused only when a pod is made."""
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SELECTOR = {"matchLabels": {"a": "b"}}
EXPRESSION = {"key": "k", "operator": "In", "values": ["v"]}
NODE_TERMS = {"nodeSelectorTerms": [{"matchExpressions": [EXPRESSION]}]}
POD_TERM = {"topologyKey": "z", "labelSelector": SELECTOR, "namespaces": ["n"]}
SIZES = {"cpu": "1", "memory": "1Gi"}
POD: Document = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "resources": {"requests": SIZES, "limits": SIZES},
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP", "name": "http"}],
            "env": [{"name": "A", "value": "x"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "persistentVolumeClaim": {"claimName": "x"}}],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ],
    "affinity": {
        "nodeAffinity": {REQUIRED: NODE_TERMS, PREFERRED: [{"weight": 1, "preference": {"matchExpressions": []}}]},
        "podAffinity": {REQUIRED: [POD_TERM], PREFERRED: [{"weight": 5, "podAffinityTerm": POD_TERM}]},
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": SELECTOR, "namespaceSelector": {}}]},
    },
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": POD}
JOB = {"template": {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}, "completions": 2, "parallelism": 1}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
DATA = {"metadata": {"name": "data"}, "spec": CLAIM}
PODS = {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}
KINDS: dict[str, tuple[str, str, Document]] = {
    "Pod": ("v1", "namespaces/default/pods", {"spec": POD}),
    "Deployment": ("apps/v1", "namespaces/default/deployments", {"spec": PODS}),
    "StatefulSet": (
        "apps/v1",
        "namespaces/default/statefulsets",
        {"spec": {**PODS, "serviceName": "s", "volumeClaimTemplates": [DATA]}},
    ),
    "DaemonSet": (
        "apps/v1",
        "namespaces/default/daemonsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE, "updateStrategy": {"type": "RollingUpdate"}}},
    ),
    "Job": ("batch/v1", "namespaces/default/jobs", {"spec": JOB}),
    "CronJob": (
        "batch/v1",
        "namespaces/default/cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}},
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        "namespaces/default/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ),
    "PersistentVolumeClaim": ("v1", "namespaces/default/persistentvolumeclaims", {"spec": CLAIM}),
    "PersistentVolume": (
        "v1",
        "persistentvolumes",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "d", "volumeHandle": "h"},
                "nodeAffinity": {"required": NODE_TERMS},
            }
        },
    ),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses", {"provisioner": "p", "reclaimPolicy": "Delete"}),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", {"value": 5, "preemptionPolicy": "Never"}),
    "Node": ("v1", "nodes", {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}),
}


def group_path(api: str) -> str:
    return f"apis/{api}" if "/" in api else f"api/{api}"


def is_stricter(wrong: Violation) -> bool:
    """Whether kerf refuses on purpose what the API server takes: numbers that kube-scheduler cannot read, fields that
    the published schemas require, and null in a list."""
    needs_number = wrong.code == "KERF310" and wrong.message.startswith(("Gt ", "Lt "))
    return needs_number or (
        wrong.code in ("KERF303", "KERF304") and wrong.message.endswith((" is required", "got null"))
    )


@pytest.fixture(scope="module")
def connection(plane: ControlPlane) -> Iterator[HTTPSConnection]:
    with closing(plane.connection()) as kept:
        yield kept


def sent(plane: ControlPlane, connection: HTTPSConnection, kind: str, document: Document) -> str:
    """What the API server says to an object; "" if it takes it."""
    api, path, _ = KINDS[kind]
    headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}
    where = f"/{group_path(api)}/{path}?dryRun=All&fieldValidation=Strict"
    connection.request("POST", where, json.dumps(document), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    return "" if response.status < 300 else str(answer["message"])


@pytest.fixture(scope="module")
def schemas(plane: ControlPlane) -> dict[str, Schema]:
    """Those of the API server, by name, and those of KINDS by kind."""
    plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    found: dict[str, Schema] = {}
    for api in sorted({api for api, _, _ in KINDS.values()}):
        components = plane.get(f"/openapi/v3/{group_path(api)}")["components"]["schemas"]
        found |= components
        for schema in components.values():
            for means in schema.get("x-kubernetes-group-version-kind", ()):
                if f"{means['group']}/{means['version']}".removeprefix("/") == api and means["kind"] in KINDS:
                    found[means["kind"]] = schema
    return found


@pytest.mark.parametrize("seed", range(3))
def test_validate_and_the_api_server_refuse_the_same(
    plane: ControlPlane, connection: HTTPSConnection, schemas: dict[str, Schema], seed: int
) -> None:
    made = RandomObjects(schemas, seed)
    refused: Counter[bool] = Counter()
    stricter: list[Any] = []
    for number in range(OBJECTS):
        kind = "Pod" if number % 2 else list(KINDS)[number // 2 % len(KINDS)]
        api, _, rest = KINDS[kind]
        base = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "labels": {"a": "b"}}, **rest}
        field, document = made.changed(base, schemas[kind])
        told = sent(plane, connection, kind, document)
        violations = judge(json.loads(json.dumps(document)), published=published_schemas()).violations
        if told:
            refused[bool(violations)] += 1
        else:
            stricter += [(kind, field, wrong.code, wrong.message) for wrong in violations if not is_stricter(wrong)]
    assert stricter == []
    assert refused[True] > SEEN_OF_REFUSED * refused.total() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_changed_was_right_before(
    plane: ControlPlane, connection: HTTPSConnection, schemas: dict[str, Schema], kind: str
) -> None:
    api, _, rest = KINDS[kind]
    base = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "labels": {"a": "b"}}, **rest}
    assert sent(plane, connection, kind, base) == ""
    assert judge(base, published=published_schemas()).violations == ()
