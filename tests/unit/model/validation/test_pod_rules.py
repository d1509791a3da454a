"""Each row of the table of what the API server refuses in pods, as `kerf validate` tells it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.rules.pods import RULES
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests import rich_pod

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
NODE_TERMS = (f"{REQUIRED}.nodeSelectorTerms[].", f"{PREFERRED}[].preference.")
POD_TERMS = tuple(
    f"affinity.{kind}.{term}."
    for kind in ("podAffinity", "podAntiAffinity")
    for term in (f"{REQUIRED}[]", f"{PREFERRED}[].podAffinityTerm")
)
CONTAINER = {"name": "c", "image": "i"}
FIRST = {"name": "first", "image": "i"}
STAYS = {**FIRST, "restartPolicy": "Always"}
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
WITH_SELECTOR = ("topologySpreadConstraints[].", *POD_TERMS)
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
POD_TERM: dict[str, Any] = {"topologyKey": "z", "labelSelector": {}}
FROM_FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["node-1.example.com"]}
NAMES = ("serviceAccountName", "serviceAccount", "nodeName", "priorityClassName", "runtimeClassName")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
COMMAND = {"exec": {"command": ["true"]}}
HTTP = {"httpGet": {"port": 80}}
OF_BOTH: dict[str, tuple[Any, Any, str, str]] = {
    "": (HTTP, {**HTTP, **COMMAND}, "KERF309", ""),
    ".exec": (COMMAND["exec"], {}, "KERF304", ".command"),
    ".exec.command": (["true"], [], "KERF304", ""),
    ".httpGet.port": ("http", 0, "KERF309", ""),
    ".tcpSocket.port": (65_535, "a_b", "KERF312", ""),
    ".httpGet.scheme": ("HTTPS", "https", "KERF305", ""),
}
OF_PROBES: dict[str, tuple[Any, Any, str, str]] = {
    **OF_BOTH,
    ".grpc.port": (1, 0, "KERF309", ""),
    **{
        f".{field}": (0, -1, "KERF309", "")
        for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    },
}
BAD: dict[str, tuple[Any, Any, str, str]] = {
    "restartPolicy": ("Never", "Sometimes", "KERF305", ""),
    "preemptionPolicy": ("Never", "Always", "KERF305", ""),
    "dnsPolicy": ("Default", "Cluster", "KERF305", ""),
    "activeDeadlineSeconds": (1, 0, "KERF309", ""),
    "nodeSelector": ({"example.com/a": "b_c.d"}, {"a b": "c"}, "KERF312", "[a b]"),
    "volumes": ([{"name": "a"}, {"name": "b"}], [{"name": "a"}, {"name": "a"}], "KERF321", "[1].name"),
    "containers": ([CONTAINER], [CONTAINER, CONTAINER], "KERF321", "[1].name"),
    "initContainers": ([FIRST], [FIRST, FIRST], "KERF321", "[1].name"),
    "schedulingGates": ([{"name": "a"}, {"name": "b"}], [{"name": "a"}, {"name": "a"}], "KERF321", "[1].name"),
    "schedulingGates[].name": ("example.com/a", "a b", "KERF312", ""),
    "topologySpreadConstraints": ([SPREAD], [SPREAD, SPREAD], "KERF321", "[1]"),
    "topologySpreadConstraints[].minDomains": (1, 0, "KERF309", ""),
    "volumes[]": ({"name": "v"}, {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}, "KERF309", ""),
    "volumes[].name": ("a-1", "a.b", "KERF312", ""),
    "volumes[].persistentVolumeClaim": ({"claimName": "c"}, {"claimName": ""}, "KERF304", ".claimName"),
    "volumes[].hostPath": ({"path": "/x"}, {"path": ""}, "KERF304", ".path"),
    "volumes[].hostPath.type": ("", "Folder", "KERF305", ""),
    "volumes[].emptyDir.sizeLimit": ("0", "-1Gi", "KERF309", ""),
    **dict.fromkeys(NAMES, ("shop.web-1", "Web_1", "KERF312", "")),
    "os.name": ("linux", "Linux", "KERF305", ""),
    "hostAliases[].ip": ("::1", "localhost", "KERF305", ""),
    "dnsConfig.nameservers[]": ("10.0.0.1", "10.0.0", "KERF305", ""),
    **{f"securityContext.{field}": (0, -1, "KERF309", "") for field in ("runAsUser", "runAsGroup", "fsGroup")},
    "securityContext.fsGroupChangePolicy": ("Always", "Never", "KERF305", ""),
    "securityContext.supplementalGroupsPolicy": ("Merge", "merge", "KERF305", ""),
    "securityContext.seccompProfile.type": ("RuntimeDefault", "Default", "KERF305", ""),
    **{
        f"affinity.{kind}.{PREFERRED}[].weight": (100, 101, "KERF309", "")
        for kind in ("podAffinity", "podAntiAffinity")
    },
    **{f"{term}namespaces[]": ("shop", "Shop", "KERF312", "") for term in POD_TERMS},
    f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms": ([TERM], [], "KERF304", ""),
    f"affinity.nodeAffinity.{PREFERRED}[].weight": (100, 101, "KERF309", ""),
    f"affinity.nodeAffinity.{NODE_TERMS[0]}matchExpressions[].values[]": ("b", "b c", "KERF312", ""),
    **{f"affinity.nodeAffinity.{term}matchExpressions[].key": ("x.y/z", "a b", "KERF312", "") for term in NODE_TERMS},
    **{
        f"affinity.nodeAffinity.{term}matchFields[]": (NAMED, {**NAMED, "key": "x"}, "KERF305", ".key")
        for term in NODE_TERMS
    },
    **{
        term.removesuffix("."): (
            {**whole, "matchLabelKeys": ["a"]},
            {**whole, "matchLabelKeys": ["a"], "labelSelector": None},
            "KERF304",
            ".matchLabelKeys",
        )
        for term, whole in ((term, SPREAD if term.startswith("topology") else POD_TERM) for term in WITH_SELECTOR)
    },
    **{f"{term}topologyKey": ("x.y/z", "a b", "KERF312", "") for term in POD_TERMS},
    **{f"{term}mismatchLabelKeys[]": ("a", "a b", "KERF312", "") for term in POD_TERMS},
    **{f"{term}matchLabelKeys[]": ("a", "a b", "KERF312", "") for term in WITH_SELECTOR},
    **{
        f"{selector}.{field}": row
        for selector in (
            *(f"{term}labelSelector" for term in WITH_SELECTOR),
            *(f"{term}namespaceSelector" for term in POD_TERMS),
        )
        for field, row in {
            "matchLabels": ({"a": "b"}, {"a": "b c"}, "KERF312", "[a]"),
            "matchExpressions[].key": ("x.y/z", "a b", "KERF312", ""),
            "matchExpressions[].values[]": ("b", "b c", "KERF312", ""),
        }.items()
    },
    **{
        f"{holder}[].{field}": row
        for holder in ("containers", "initContainers")
        for field, row in {
            "name": ("web-1", "Web", "KERF312", ""),
            "env[]": (
                {"name": "A", "valueFrom": FROM_FIELD},
                {"name": "A", "valueFrom": FROM_FIELD, "value": "x"},
                "KERF309",
                ".valueFrom",
            ),
            "imagePullPolicy": ("Always", "Sometimes", "KERF305", ""),
            "terminationMessagePolicy": ("File", "file", "KERF305", ""),
            "ports[].containerPort": (65_535, 65_536, "KERF309", ""),
            "ports[].hostPort": (0, -1, "KERF309", ""),
            "ports[].protocol": ("SCTP", "tcp", "KERF305", ""),
            "ports[].name": ("http-1", "HTTP", "KERF312", ""),
            "restartPolicy": ("Always", "always", "KERF305", ""),
            "envFrom[]": ({"secretRef": {"name": "a"}}, {}, "KERF304", ""),
            "envFrom[].configMapRef.name": ("a.b", "A", "KERF312", ""),
            "envFrom[].secretRef.name": ("a.b", "A", "KERF312", ""),
            "volumeMounts": (
                [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
                [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
                "KERF321",
                "[1].mountPath",
            ),
            "volumeMounts[].mountPropagation": ("HostToContainer", "Host", "KERF305", ""),
            "volumeMounts[].recursiveReadOnly": ("IfPossible", "Always", "KERF305", ""),
            "securityContext.runAsUser": (0, -1, "KERF309", ""),
            "securityContext.runAsGroup": (0, -1, "KERF309", ""),
            **{f"{probe}{field}": row for probe in PROBES for field, row in OF_PROBES.items()},
            **{f"{probe}.successThreshold": (1, 2, "KERF309", "") for probe in ("livenessProbe", "startupProbe")},
            **{f"lifecycle.{hook}{field}": row for hook in HOOKS for field, row in OF_BOTH.items()},
        }.items()
    },
}
"""For each row a good value, a bad one, the code, and where below the field it is told."""
WHOLE: dict[str, dict[str, Any]] = {
    "containers": CONTAINER,
    "initContainers": STAYS,
    "schedulingGates": {"name": "g"},
    "volumes": {"name": "v"},
    "topologySpreadConstraints": SPREAD,
    "ports": {"containerPort": 80},
    "envFrom": {},
    "volumeMounts": {"name": "v", "mountPath": "/a", "readOnly": True},
    "hostAliases": {"hostnames": ["a"]},
    PREFERRED: {"weight": 1, "preference": TERM},
    REQUIRED: POD_TERM,
    "nodeSelectorTerms": TERM,
    "matchExpressions": {"key": "a", "operator": "Exists"},
}


def with_field(holder: dict[str, Any], field: str, value: Any, within: str = "") -> dict[str, Any]:
    """A copy with a field of the table set, in the only entry of each list on its way. `within`: what it is a copy
    of."""
    step, _, rest = field.partition(".")
    name = step.removesuffix("[]")
    if not rest:
        return {**holder, name: value if name == step else [value]}
    if name == step:
        return {**holder, name: with_field(holder.get(name, _object(name, rest)), rest, value, name)}
    return {**holder, name: [with_field(_entry(name, rest, within), rest, value, name)]}


def _object(name: str, rest: str) -> dict[str, Any]:
    """An object that is fine but for the field in it."""
    if name in (*PROBES, *HOOKS) and not rest.startswith(("exec", "httpGet", "tcpSocket", "grpc")):
        return HTTP
    objects: dict[str, dict[str, Any]] = {"httpGet": HTTP["httpGet"], "hostPath": {"path": "/x"}}
    return objects.get(name, {})


def _entry(name: str, rest: str, within: str) -> dict[str, Any]:
    """An entry of a list that is fine but for the field in it."""
    if name == PREFERRED and within != "nodeAffinity":
        return {"weight": 1, "podAffinityTerm": POD_TERM}
    return WHOLE[name] | ({"operator": "In", "values": ["v"]} if rest.startswith("values") else {})


def found(kind: str, api: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> list[tuple[str, str]]:
    metadata = {"name": "x", "labels": labels or {}}
    judged = judge({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}, published=published_schemas())
    return [(wrong.code, wrong.path) for wrong in judged.violations]


def test_each_row_of_the_table_is_tested() -> None:
    in_rich_pod = {re.sub(r"\.\d+", "[]", field) for field in rich_pod.BAD} | {"containers[]", "initContainers[]"}
    assert set(RULES) <= set(BAD) | in_rich_pod
    assert set(BAD) <= set(RULES)


@pytest.mark.parametrize("field", BAD)
def test_a_row_of_the_table(field: str) -> None:
    good, bad, code, below = BAD[field]
    volumes = {"volumes": [{"name": "v"}]} if "volumeMounts" in field else {}
    base = {"containers": [CONTAINER], **volumes}
    assert found("Pod", "v1", with_field(base, field, good)) == []
    path = f"spec.{field.replace('[]', '[0]')}{below}"
    assert found("Pod", "v1", with_field(base, field, bad)) == [(code, path)]


TWO_SOURCES = {**FROM_FIELD, "configMapKeyRef": {"name": "a", "key": "b"}}


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("containers[].env[]", {"name": "A", "value": "", "valueFrom": FROM_FIELD}, []),
        ("containers[].env[]", {"name": "A", "valueFrom": {}}, [("KERF309", ".valueFrom")]),
        ("containers[].env[]", {"name": "A", "valueFrom": TWO_SOURCES}, [("KERF309", ".valueFrom")]),
        ("topologySpreadConstraints[]", {**SPREAD, "labelSelector": None}, []),
        (
            POD_TERMS[0].removesuffix("."),
            {**POD_TERM, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
            [("KERF321", ".matchLabelKeys[0]")],
        ),
        (
            POD_TERMS[0].removesuffix("."),
            {"topologyKey": "z", "mismatchLabelKeys": ["a"]},
            [("KERF304", ".mismatchLabelKeys")],
        ),
        *(
            (f"affinity.nodeAffinity.{NODE_TERMS[0]}matchFields[]", {**NAMED, **change}, wrong)
            for change, wrong in (
                ({"operator": "NotIn"}, []),
                ({"operator": "Exists", "values": []}, [("KERF305", ".operator")]),
                ({"values": ["a", "b"]}, [("KERF309", ".values")]),
                ({"values": []}, [("KERF309", ".values")]),
                ({"values": ["A_b"]}, [("KERF312", ".values[0]")]),
            )
        ),
        ("containers[].resources", {"limits": {"hugepages-2Mi": "2Mi"}}, [("KERF304", "")]),
        ("containers[].resources", {"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"cpu": 1}}, []),
    ],
)
def test_what_a_field_may_hold(field: str, value: Any, wrong: list[tuple[str, str]]) -> None:
    path = f"spec.{field.replace('[]', '[0]')}"
    spec = with_field({"containers": [CONTAINER]}, field, value)
    assert found("Pod", "v1", spec) == [(code, path + below) for code, below in wrong]


@pytest.mark.parametrize("field", ["restartPolicy", "preemptionPolicy", "dnsPolicy", "containers[].imagePullPolicy"])
def test_an_empty_text_is_absent(field: str) -> None:
    assert found("Pod", "v1", with_field({"containers": [CONTAINER]}, field, "")) == []


def test_an_init_container_is_not_called_as_another_container() -> None:
    spec = {"containers": [CONTAINER], "initContainers": [FIRST, CONTAINER]}
    assert found("Pod", "v1", spec) == [("KERF321", "spec.initContainers[1].name")]


@pytest.mark.parametrize(("host", "told"), [(80, []), (0, []), (8080, ["KERF309"])])
def test_ports_on_the_network_of_the_node(host: int, told: list[str]) -> None:
    for holder in ("containers", "initContainers"):
        named = {"name": holder.lower(), "image": "i", "ports": [{"containerPort": 80, "hostPort": host}]}
        spec = {"containers": [CONTAINER], "hostNetwork": True, holder: [named]}
        assert found("Pod", "v1", spec) == [(code, f"spec.{holder}[0].ports[0].hostPort") for code in told]
        assert found("Pod", "v1", {**spec, "hostNetwork": False}) == []


def test_a_pod_without_the_resolver_of_its_cluster_has_one_of_its_own() -> None:
    spec = {"containers": [CONTAINER], "dnsPolicy": "None"}
    assert found("Pod", "v1", spec) == [("KERF304", "spec.dnsConfig")]
    assert found("Pod", "v1", {**spec, "dnsConfig": {"nameservers": ["10.0.0.1"]}}) == []


@pytest.mark.parametrize("field", ["hostname", "subdomain"])
def test_the_name_of_a_host_is_a_label_where_the_pod_keeps_it(field: str) -> None:
    spec = {"containers": [CONTAINER], field: "a.b"}
    assert found("Pod", "v1", spec) == [("KERF312", f"spec.{field}")]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    pods = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    assert found("Deployment", "apps/v1", pods) == [("KERF312", f"spec.template.spec.{field}")]
    assert found("StatefulSet", "apps/v1", pods | {"serviceName": "s"}) == []


def test_pods_that_are_started_again_have_no_deadline() -> None:
    pod = {"containers": [CONTAINER], "activeDeadlineSeconds": 60}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    assert found("Deployment", "apps/v1", spec) == [("KERF305", "spec.template.spec.activeDeadlineSeconds")]
    assert found("Pod", "v1", pod) == []


def test_huge_pages_of_a_pod_go_with_what_its_containers_ask_for() -> None:
    huge = {"containers": [CONTAINER], "resources": {"limits": {"hugepages-2Mi": "2Mi"}}}
    assert found("Pod", "v1", huge) == [("KERF304", "spec.resources")]
    with_cpu = {**huge, "containers": [{**CONTAINER, "resources": {"requests": {"cpu": 1}}}]}
    assert found("Pod", "v1", with_cpu) == []


def test_a_pod_without_containers_is_refused() -> None:
    assert found("Pod", "v1", {"containers": []}) == [("KERF304", "spec.containers")]


@pytest.mark.parametrize("label", [{"a b": "c"}, {"a": "b c"}, {"a": "x" * 64}, {"A.com/a/b": ""}])
def test_labels_are_those_of_kubernetes(label: dict[str, str]) -> None:
    (key,) = label
    assert found("Pod", "v1", {"containers": [CONTAINER]}, label) == [("KERF312", f"metadata.labels[{key}]")]
    pods = {"metadata": {"labels": {"app": "a", **label}}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": pods}
    assert found("Deployment", "apps/v1", spec) == [("KERF312", f"spec.template.metadata.labels[{key}]")]


@pytest.mark.parametrize(
    ("policy", "told"), [(None, ["KERF304"]), ("Always", ["KERF305"]), ("Never", []), ("OnFailure", [])]
)
def test_pods_of_jobs_end(policy: str | None, told: list[str]) -> None:
    job = {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": policy}}}
    path = "template.spec.restartPolicy"
    assert found("Job", "batch/v1", job) == [(code, f"spec.{path}") for code in told]
    cron = {"schedule": "@daily", "jobTemplate": {"spec": job}}
    assert found("CronJob", "batch/v1", cron) == [(code, f"spec.jobTemplate.spec.{path}") for code in told]


@pytest.mark.parametrize(("policy", "told"), [(None, []), ("Always", []), ("Never", ["KERF305"])])
def test_pods_of_a_deployment_are_started_again(policy: str | None, told: list[str]) -> None:
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER], "restartPolicy": policy}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": pods}
    assert found("Deployment", "apps/v1", spec) == [(code, "spec.template.spec.restartPolicy") for code in told]


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ("*/5 9-17 * * mon-fri", []),
        ("@hourly", []),
        ("@every 1h", []),
        ("@every 1h30m", []),
        ("@every 5", ["KERF307"]),
        ("TZ=UTC 0 0 * * *", ["KERF314"]),
        ("CRON_TZ=Europe/Berlin 0 0 * * *", ["KERF314"]),
        ("0 24 * * *", ["KERF314"]),
        ("daily", ["KERF314"]),
    ],
)
def test_the_schedule_of_a_cron_job(schedule: str, told: list[str]) -> None:
    pod = {"containers": [CONTAINER], "restartPolicy": "Never"}
    cron = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    assert found("CronJob", "batch/v1", cron) == [(code, "spec.schedule") for code in told]


def mounting(name: str, kind: str = "volumeMounts") -> dict[str, Any]:
    return {"containers": [{**CONTAINER, kind: [{"name": name, "mountPath": "/data", "devicePath": "/dev/x"}]}]}


@pytest.mark.parametrize("kind", ["volumeMounts", "volumeDevices"])
def test_a_mount_needs_its_volume(kind: str) -> None:
    path = f"spec.containers[0].{kind}[0].name"
    unknown = {"volumeMounts": "devicePath", "volumeDevices": "mountPath"}[kind]
    spec = mounting("data", kind)
    del spec["containers"][0][kind][0][unknown]
    assert found("Pod", "v1", spec) == [("KERF305", path)]
    assert found("Pod", "v1", spec | {"volumes": [{"name": "dat", "emptyDir": {}}]}) == [("KERF305", path)]
    assert found("Pod", "v1", spec | {"volumes": [{"name": "data", "emptyDir": {}}]}) == []
    assert found("Pod", "v1", spec | {"volumes": "data"}) == [("KERF303", "spec.volumes")]


def test_claims_of_a_stateful_set_are_volumes_of_its_pods() -> None:
    spec = mounting("data")
    del spec["containers"][0]["volumeMounts"][0]["devicePath"]
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": asked}
    labels = {"app": "a"}
    pods = {"metadata": {"labels": labels}, "spec": spec}
    stateful = {"serviceName": "s", "selector": {"matchLabels": labels}, "template": pods}
    assert found("StatefulSet", "apps/v1", stateful | {"volumeClaimTemplates": [claim]}) == []
    told = [("KERF305", "spec.template.spec.containers[0].volumeMounts[0].name")]
    assert found("StatefulSet", "apps/v1", stateful) == told


@pytest.mark.parametrize(
    ("toleration", "told"),
    [
        ({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, []),
        ({"key": "a", "operator": "Exists", "tolerationSeconds": 5}, [("KERF305", "effect")]),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 0}, [("KERF305", "effect")]),
        ({"key": "a b", "operator": "Exists"}, [("KERF312", "key")]),
        ({"key": "a", "value": "b c"}, [("KERF312", "value")]),
        ({"key": "a", "value": "true"}, []),
    ],
)
def test_tolerations_are_those_of_the_api_server(toleration: dict[str, Any], told: list[tuple[str, str]]) -> None:
    spec = {"containers": [CONTAINER], "tolerations": [toleration]}
    assert found("Pod", "v1", spec) == [(code, f"spec.tolerations[0].{field}") for code, field in told]


@pytest.mark.parametrize(
    ("spreads", "told"),
    [
        ([SPREAD, SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}, SPREAD | {"topologyKey": "host"}], []),
        ([SPREAD, SPREAD | {"maxSkew": 2}], [("KERF321", "[1]")]),
        ([SPREAD | {"minDomains": 2}], []),
        ([SPREAD | {"minDomains": 0}], [("KERF309", "[0].minDomains")]),
        ([SPREAD | {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}], [("KERF305", "[0].whenUnsatisfiable")]),
    ],
)
def test_topology_spreads_are_those_of_the_api_server(
    spreads: list[dict[str, Any]], told: list[tuple[str, str]]
) -> None:
    spec = {"containers": [CONTAINER], "topologySpreadConstraints": spreads}
    assert found("Pod", "v1", spec) == [(code, f"spec.topologySpreadConstraints{field}") for code, field in told]


@pytest.mark.parametrize(
    ("kind", "api"), [("Pod", "v1"), ("Deployment", "apps/v1"), ("Job", "batch/v1"), ("PersistentVolumeClaim", "v1")]
)
def test_a_spec_is_needed(kind: str, api: str) -> None:
    for spec in ({}, {"spec": None}):
        document = {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **spec}
        judged = judge(document, published=published_schemas())
        assert [(wrong.code, wrong.path) for wrong in judged.violations] == [("KERF304", "spec")]


def test_older_versions_take_a_zone_in_the_schedule_of_a_cron_job() -> None:
    pod = {"containers": [CONTAINER], "restartPolicy": "Never"}
    spec = {"schedule": "TZ=UTC 0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    document = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}, "spec": spec}
    assert judge(document, published=published_schemas("1.28")).verdict == "accepted"
