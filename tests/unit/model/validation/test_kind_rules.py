"""Each row of the tables of what the API server refuses in workloads, claims and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.rules.kinds import RULES
from kerf.engine.model.manifests.validate import judge
from tests.support.manifests.small import changed

POD = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
JOB = {"template": {"spec": POD | {"restartPolicy": "Never"}}}
FAILING = {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TERM = {"key": "zone", "operator": "In", "values": ["a"]}
AFFINITY = {"required": {"nodeSelectorTerms": [{"matchExpressions": [TERM]}]}}
SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
SECRET = {"name": "a.b", "namespace": "c"}
VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "d", "volumeHandle": "h", **{name: {**SECRET} for name in SECRETS}},
    "nodeAffinity": AFFINITY,
}
GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "Deployment": ("apps/v1", SELECTED),
    "StatefulSet": (
        "apps/v1",
        SELECTED | {"serviceName": "s", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]},
    ),
    "DaemonSet": ("apps/v1", SELECTED),
    "Job": ("batch/v1", JOB | FAILING),
    "CronJob": ("batch/v1", {"schedule": "@daily", "jobTemplate": {"spec": JOB | FAILING}}),
    "PersistentVolumeClaim": ("v1", CLAIM),
    "PersistentVolume": ("v1", VOLUME),
    "PodDisruptionBudget": ("policy/v1", {"selector": {"matchLabels": {"app": "a"}}}),
    "Node": ("v1", {}),
}
COUNT = (0, -1, "KERF309", "")
SECONDS = (1 << 40, -1, "KERF309", "")
JOBS: dict[str, tuple[Any, Any, str, str]] = {
    "parallelism": COUNT,
    "completions": COUNT,
    "backoffLimit": COUNT,
    "activeDeadlineSeconds": SECONDS,
    "ttlSecondsAfterFinished": COUNT,
    "completionMode": ("NonIndexed", "indexed", "KERF305", ""),
    "managedBy": ("example.com/jobs", "jobs", "KERF312", ""),
    "podFailurePolicy.rules[].action": ("Ignore", "Fail", "KERF305", ""),
    "podFailurePolicy.rules[].onExitCodes.operator": ("NotIn", "Exists", "KERF305", ""),
    "podFailurePolicy.rules[].onExitCodes.values": ([1, 2], [], "KERF304", ""),
    "podReplacementPolicy": ("Failed", "Never", "KERF305", ""),
}
SHARE = ("50%", "150%", "KERF309", "")
ACCESS: dict[str, tuple[Any, Any, str, str]] = {
    "accessModes": (["ReadWriteMany"], [], "KERF304", ""),
    "volumeMode": ("Block", "block", "KERF305", ""),
    "storageClassName": ("gp3.fast", "GP3", "KERF312", ""),
}
CLAIMS: dict[str, tuple[Any, Any, str, str]] = {
    **ACCESS,
    "volumeAttributesClassName": ("fast", "Fast", "KERF312", ""),
    "selector.matchLabels": ({"a": "b"}, {"a": "b c"}, "KERF312", "[a]"),
    "dataSourceRef": (
        {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
        {"kind": "VolumeSnapshot", "name": "s"},
        "KERF305",
        ".kind",
    ),
    "resources": ({"requests": {"storage": 1}}, {"requests": {"storage": 0}}, "KERF309", ".requests[storage]"),
}
TERMS = "nodeAffinity.required.nodeSelectorTerms"
ROWS: dict[str, dict[str, tuple[Any, Any, str, str]]] = {
    "Deployment": {
        "minReadySeconds": COUNT,
        "revisionHistoryLimit": COUNT,
        "progressDeadlineSeconds": COUNT,
        "strategy": (
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            "KERF305",
            ".rollingUpdate",
        ),
        "strategy.type": ("Recreate", "recreate", "KERF305", ""),
        "strategy.rollingUpdate": ({"maxUnavailable": 0}, {"maxUnavailable": 0, "maxSurge": "0%"}, "KERF309", ""),
        "strategy.rollingUpdate.maxSurge": ("150%", "1", "KERF309", ""),
        "strategy.rollingUpdate.maxUnavailable": SHARE,
    },
    "StatefulSet": {
        "minReadySeconds": COUNT,
        "serviceName": ("web", "web.shop", "KERF312", ""),
        "ordinals.start": COUNT,
        "volumeClaimTemplates[].metadata.name": ("data", "my.data", "KERF312", ""),
        "podManagementPolicy": ("Parallel", "parallel", "KERF305", ""),
        "updateStrategy.type": ("OnDelete", "Recreate", "KERF305", ""),
        "persistentVolumeClaimRetentionPolicy.whenDeleted": ("Delete", "delete", "KERF305", ""),
        "persistentVolumeClaimRetentionPolicy.whenScaled": ("Retain", "Keep", "KERF305", ""),
        **{f"volumeClaimTemplates[].spec.{field}": row for field, row in CLAIMS.items()},
    },
    "DaemonSet": {
        "minReadySeconds": COUNT,
        "revisionHistoryLimit": COUNT,
        "updateStrategy.type": ("OnDelete", "Recreate", "KERF305", ""),
        "updateStrategy": (
            {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            {"rollingUpdate": {"maxUnavailable": 0}},
            "KERF309",
            ".rollingUpdate",
        ),
    },
    "Job": JOBS,
    "CronJob": {
        **{f"jobTemplate.spec.{field}": row for field, row in JOBS.items()},
        "startingDeadlineSeconds": SECONDS,
        "successfulJobsHistoryLimit": COUNT,
        "failedJobsHistoryLimit": COUNT,
        "concurrencyPolicy": ("Forbid", "Never", "KERF305", ""),
        "timeZone": ("Etc/UTC", "Local", "KERF305", ""),
        "jobTemplate.spec.manualSelector": (False, True, "KERF305", ""),
    },
    "PersistentVolumeClaim": CLAIMS,
    "PersistentVolume": {
        **ACCESS,
        "capacity": ({"storage": 1}, {"storage": 0}, "KERF309", "[storage]"),
        "persistentVolumeReclaimPolicy": ("Recycle", "Keep", "KERF305", ""),
        "volumeAttributesClassName": ("fast", "", "KERF312", ""),
        "csi": ({"driver": "d", "volumeHandle": "h"}, {"driver": "d", "volumeHandle": ""}, "KERF304", ".volumeHandle"),
        "csi.driver": ("EBS.csi.aws.com", "a" * 64, "KERF312", ""),
        **{f"csi.{name}": (SECRET, {"name": "a"}, "KERF304", ".namespace") for name in SECRETS},
        **{f"csi.{name}.name": ("a.b", "A", "KERF312", "") for name in SECRETS},
        **{f"csi.{name}.namespace": ("a", "a.b", "KERF312", "") for name in SECRETS},
        TERMS: ([{"matchExpressions": [TERM]}], [], "KERF304", ""),
        f"{TERMS}[].matchExpressions[].key": ("x.y/z", "a b", "KERF312", ""),
        f"{TERMS}[].matchExpressions[].values[]": ("b", "b c", "KERF312", ""),
    },
    "Node": {
        "podCIDR": ("10.0.0.0/24", "10.0.0.0", "KERF305", ""),
        "taints[].key": ("x.y/z", "a b", "KERF312", ""),
        "taints[].value": ("b", "b c", "KERF312", ""),
    },
    "PodDisruptionBudget": {
        "minAvailable": SHARE,
        "maxUnavailable": SHARE,
        "selector.matchLabels": ({"a": "b"}, {"a": "b c"}, "KERF312", "[a]"),
        "unhealthyPodEvictionPolicy": ("AlwaysAllow", "Always", "KERF305", ""),
    },
}
"""For each field below spec a good value, a bad one, the code, and where below the field it is told."""
BY_INDEX = ("backoffLimitPerIndex", "maxFailedIndexes")
SELECTED_BY = {"selector.matchExpressions[].key", "selector.matchExpressions[].values[]"}
OTHERWISE = {
    "Job": {"spec", "spec.successPolicy.rules", *(f"spec.{field}" for field in BY_INDEX)},
    "CronJob": {
        "spec.jobTemplate.spec",
        "spec.jobTemplate.spec.successPolicy.rules",
        "spec.jobTemplate.spec.selector",
        *(f"spec.jobTemplate.spec.{field}" for field in BY_INDEX),
    },
    "PersistentVolumeClaim": {"spec", "spec.accessModes[]", *(f"spec.{field}" for field in SELECTED_BY)},
    "PodDisruptionBudget": {f"spec.{field}" for field in SELECTED_BY},
    "StatefulSet": {
        "spec.volumeClaimTemplates[]",
        "spec.volumeClaimTemplates[].spec",
        "spec.volumeClaimTemplates[].spec.accessModes[]",
        *(f"spec.volumeClaimTemplates[].spec.{field}" for field in SELECTED_BY),
    },
    "PersistentVolume": {"spec", "spec.accessModes[]", f"spec.{TERMS}[].matchFields[]"},
    "Node": {"spec.podCIDRs[]"},
    "StorageClass": {
        "reclaimPolicy",
        "provisioner",
        "parameters",
        "volumeBindingMode",
        "allowedTopologies[]",
        "allowedTopologies[].matchLabelExpressions",
        "allowedTopologies[].matchLabelExpressions[].key",
        "allowedTopologies[].matchLabelExpressions[].values",
    },
    "PriorityClass": {"value", "preemptionPolicy"},
}
"""Rows with tests of their own."""


def found(kind: str, spec: dict[str, Any]) -> list[tuple[str, str]]:
    document = {"apiVersion": GOOD[kind][0], "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


def test_each_row_of_the_tables_is_tested() -> None:
    rows = {
        kind: {f"spec.{field}" for field in ROWS.get(kind, {})} | OTHERWISE.get(kind, set())
        for kind in ROWS.keys() | OTHERWISE.keys()
    }
    assert rows == {kind: set(fields) for kind, fields in RULES.items()}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in ROWS.items() for field in fields])
def test_a_row_of_a_table(kind: str, field: str) -> None:
    good, bad, code, below = ROWS[kind][field]
    whole = GOOD[kind][1] if kind != "Node" else {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    at = field.replace("[]", ".0")
    assert found(kind, changed(whole, at, good)) == []
    assert found(kind, changed(whole, at, bad)) == [(code, f"spec.{field.replace('[]', '[0]')}{below}")]
    others: tuple[Any, ...] = ([], {}, 1.5, True, [[]], None)
    for other in others:
        found(kind, changed(whole, at, other))  # no value breaks a rule


@pytest.mark.parametrize(
    ("kind", "api", "fields", "told"),
    [
        ("PriorityClass", "scheduling.k8s.io/v1", {"value": 10**9, "preemptionPolicy": "Never"}, []),
        ("PriorityClass", "scheduling.k8s.io/v1", {"value": 10**9 + 1}, [("KERF309", "value")]),
        ("PriorityClass", "scheduling.k8s.io/v1", {"value": 1, "preemptionPolicy": "never"},
         [("KERF305", "preemptionPolicy")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "p", "reclaimPolicy": "Retain"}, []),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "kubernetes.io/AWS-ebs", "parameters": {"a": ""}}, []),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": ""}, [("KERF304", "provisioner")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "a b"}, [("KERF312", "provisioner")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "p", "parameters": {"": "x"}},
         [("KERF304", "parameters")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "p", "volumeBindingMode": "Later"},
         [("KERF305", "volumeBindingMode")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "p", "allowedTopologies": [{}]},
         [("KERF304", "allowedTopologies[0].matchLabelExpressions")]),
        ("StorageClass", "storage.k8s.io/v1",
         {"provisioner": "p", "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}] * 2}]},
         [("KERF321", "allowedTopologies[0].matchLabelExpressions[1].key")]),
        ("StorageClass", "storage.k8s.io/v1", {"provisioner": "p", "reclaimPolicy": "Recycle"},
         [("KERF305", "reclaimPolicy")]),
        ("StorageClass", "storage.k8s.io/v1",
         {"provisioner": "p", "allowedTopologies": [{"matchLabelExpressions": [{"key": "a b", "values": []}]}]},
         [("KERF312", "allowedTopologies[0].matchLabelExpressions[0].key"),
          ("KERF304", "allowedTopologies[0].matchLabelExpressions[0].values")]),
    ],
)  # fmt: skip
def test_a_class_without_a_spec(kind: str, api: str, fields: dict[str, Any], told: list[tuple[str, str]]) -> None:
    judged = judge(
        {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **fields}, published=published_schemas()
    )
    assert [(wrong.code, wrong.path) for wrong in judged.violations] == told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"csi": ...}, []),  # which the API server refuses, and nothing reads
        ({"nfs": {"server": "s", "path": "/x"}}, [("KERF309", "spec")]),
        ({"accessModes": ...}, [("KERF304", "spec.accessModes")]),
        ({"capacity": ...}, [("KERF304", "spec.capacity")]),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]}, [("KERF309", "spec.accessModes")]),
        ({"accessModes": ["ReadWriteOncePod"]}, []),
        ({"accessModes": ["RWO"]}, [("KERF305", "spec.accessModes[0]")]),
        ({"capacity": {"storage": "1Gi", "cpu": 1}}, [("KERF305", "spec.capacity")]),
        ({"capacity": {}}, [("KERF305", "spec.capacity")]),
        ({f"{TERMS}.0.matchFields": [{"key": "a", "operator": "In", "values": ["b"]}]},
         [("KERF305", f"spec.{TERMS}[0].matchFields[0].key")]),
    ],
)  # fmt: skip
def test_a_volume_is_one_thing(change: dict[str, Any], told: list[tuple[str, str]]) -> None:
    ((field, value),) = change.items()
    assert found("PersistentVolume", changed(VOLUME, field, value)) == told


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "PersistentVolumeClaim"])
def test_what_a_selector_asks_for(kind: str) -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}
    path = "spec.selector.matchExpressions[0].values"
    assert found(kind, changed(GOOD[kind][1], "selector", selector)) == [("KERF310", path)]


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "PersistentVolumeClaim"])
@pytest.mark.parametrize(
    ("expression", "field"),
    [({"key": "a b", "operator": "Exists"}, "key"), ({"key": "a", "operator": "In", "values": ["b c"]}, "values[0]")],
)
def test_what_a_selector_names(kind: str, expression: dict[str, Any], field: str) -> None:
    path = f"spec.selector.matchExpressions[0].{field}"
    assert found(kind, changed(GOOD[kind][1], "selector", {"matchExpressions": [expression]})) == [("KERF312", path)]


def test_claims_of_a_stateful_set_have_names() -> None:
    """Without one, or with one that no volume can have, its pods are refused."""
    whole = GOOD["StatefulSet"][1]
    nameless = [("KERF304", "spec.volumeClaimTemplates[0].metadata.name")]
    assert found("StatefulSet", changed(whole, "volumeClaimTemplates.0.metadata", {})) == nameless
    assert found("StatefulSet", changed(whole, "volumeClaimTemplates.0.metadata", ...)) == nameless
    without_spec = [("KERF304", "spec.volumeClaimTemplates[0].spec")]
    assert found("StatefulSet", changed(whole, "volumeClaimTemplates.0.spec", ...)) == without_spec


def test_a_claim_of_a_volume_elsewhere_is_dropped_where_that_is_not_for_use() -> None:
    elsewhere = {"kind": "Volume", "name": "a", "namespace": "b"}
    assert found("PersistentVolumeClaim", CLAIM | {"dataSourceRef": elsewhere}) == []


def test_networks_of_a_node() -> None:
    assert found("Node", {"podCIDRs": ["10.0.0.5/24", "2001:db8::/64"]}) == []
    assert found("Node", {"podCIDRs": ["10.0.0.0/33"]}) == [("KERF305", "spec.podCIDRs[0]")]


def test_jobs_of_a_cron_job_have_selectors_of_their_own() -> None:
    cron = GOOD["CronJob"][1]
    selected = changed(cron, "jobTemplate.spec.selector", {"matchLabels": {"a": "b"}})
    assert found("CronJob", selected) == [("KERF305", "spec.jobTemplate.spec.selector")]


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Europe/Berlin", []),
        ("America/Argentina/Buenos_Aires", []),
        ("EST5EDT", []),
        ("Etc/GMT+5", []),
        ("posix/Asia/Calcutta", []),
        ("Europe/Berln", ["Is it Europe/Berlin?"]),
        ("europe/berlin", ["Is it Europe/Berlin?"]),
        ("Europe", ["Is it Europe/Rome?"]),
        ("../etc/passwd", ["Write one such as Europe/Berlin, or leave it out"]),
        ("", ["Write one such as Europe/Berlin, or leave it out"]),
    ],
)
def test_the_time_zone_of_a_cron_job(zone: str, told: list[str]) -> None:
    spec = changed(GOOD["CronJob"][1], "timeZone", zone)
    document = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}, "spec": spec}
    violations = judge(document, published=published_schemas()).violations
    assert [(wrong.code, wrong.path) for wrong in violations] == [("KERF305", "spec.timeZone")] * len(told)
    assert [wrong.hint for wrong in violations] == told


def test_pods_whose_failures_count_are_not_started_again() -> None:
    job = changed(JOB | FAILING, "template.spec.restartPolicy", "OnFailure")
    assert found("Job", job) == [("KERF305", "spec.template.spec.restartPolicy")]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": [{"succeededCount": 1}]}}, []),
        ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, [("KERF305", "completionMode")]),
        ({"completionMode": "Indexed", "completions": 2, "successPolicy": {"rules": []}},
         [("KERF304", "successPolicy.rules")]),
        ({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}, []),
        ({"completionMode": "Indexed", "backoffLimitPerIndex": 1}, []),
        ({"completionMode": "Indexed", "parallelism": 2}, [("KERF304", "completions")]),
        ({"backoffLimitPerIndex": 1}, [("KERF305", "completionMode")]),
        ({"completionMode": "Indexed", "completions": 3, "maxFailedIndexes": 1}, [("KERF304", "backoffLimitPerIndex")]),
        ({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1, "maxFailedIndexes": -1},
         [("KERF309", "maxFailedIndexes")]),
        ({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": -1},
         [("KERF309", "backoffLimitPerIndex")]),
    ],
)  # fmt: skip
def test_a_job_with_indexes(change: dict[str, Any], told: list[tuple[str, str]]) -> None:
    assert found("Job", JOB | change) == [(code, f"spec.{field}") for code, field in told]
    cron = {"schedule": "@daily", "jobTemplate": {"spec": JOB | change}}
    assert found("CronJob", cron) == [(code, f"spec.jobTemplate.spec.{field}") for code, field in told]


def test_a_claim_says_how_it_is_mounted_and_how_large_it_is() -> None:
    size = ("KERF304", "spec.resources.requests[storage]")
    assert found("PersistentVolumeClaim", {**CLAIM, "resources": {}}) == [size]
    assert found("PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"]}) == [size]
    assert found("PersistentVolumeClaim", {"resources": CLAIM["resources"]}) == [("KERF304", "spec.accessModes")]
    told = found("PersistentVolumeClaim", {**CLAIM, "accessModes": ["RWO"]})
    assert told == [("KERF305", "spec.accessModes[0]")]


def test_a_daemon_set_is_not_updated_in_both_ways() -> None:
    both = changed(SELECTED, "updateStrategy", {"rollingUpdate": {"maxSurge": 1}})
    assert found("DaemonSet", both) == [("KERF309", "spec.updateStrategy.rollingUpdate")]
    surge = changed(SELECTED, "updateStrategy", {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "101%"}})
    assert found("DaemonSet", surge) == [("KERF309", "spec.updateStrategy.rollingUpdate.maxSurge")]


def test_what_stands_beside_on_delete_counts_for_nothing() -> None:
    """The API server does not look at it: a chart's value may be merged over defaults."""
    for beside in ({"maxSurge": 1}, {"maxUnavailable": 0}, {"maxUnavailable": "150%"}):
        daemon_set = changed(SELECTED, "updateStrategy", {"type": "OnDelete", "rollingUpdate": beside})
        assert found("DaemonSet", daemon_set) == []


def test_a_stateful_set_may_keep_any_number_of_revisions() -> None:
    assert found("StatefulSet", changed(SELECTED, "revisionHistoryLimit", -1)) == []
