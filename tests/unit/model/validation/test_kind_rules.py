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
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "Deployment": ("apps/v1", SELECTED),
    "StatefulSet": ("apps/v1", SELECTED | {"serviceName": "s"}),
    "DaemonSet": ("apps/v1", SELECTED),
    "Job": ("batch/v1", JOB),
    "CronJob": ("batch/v1", {"schedule": "@daily", "jobTemplate": {"spec": JOB}}),
    "PersistentVolumeClaim": ("v1", CLAIM),
    "PodDisruptionBudget": ("policy/v1", {"selector": {"matchLabels": {"app": "a"}}}),
}
COUNT = (0, -1, "KERF309", "")
SECONDS = (1 << 40, -1, "KERF309", "")
JOBS: dict[str, tuple[Any, Any, str, str]] = {
    "parallelism": COUNT,
    "completions": COUNT,
    "backoffLimit": COUNT,
    "activeDeadlineSeconds": SECONDS,
    "ttlSecondsAfterFinished": COUNT,
    "maxFailedIndexes": COUNT,
    "completionMode": ("NonIndexed", "indexed", "KERF305", ""),
    "podReplacementPolicy": ("Failed", "Never", "KERF305", ""),
}
SHARE = ("50%", "150%", "KERF309", "")
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
        "podManagementPolicy": ("Parallel", "parallel", "KERF305", ""),
        "updateStrategy.type": ("OnDelete", "Recreate", "KERF305", ""),
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
    },
    "PersistentVolumeClaim": {
        "accessModes": (["ReadWriteMany"], [], "KERF304", ""),
        "volumeMode": ("Block", "block", "KERF305", ""),
        "resources": ({"requests": {"storage": 1}}, {"requests": {"storage": 0}}, "KERF309", ".requests[storage]"),
    },
    "PodDisruptionBudget": {
        "minAvailable": SHARE,
        "maxUnavailable": SHARE,
        "selector.matchLabels": ({"a": "b"}, {"a": "b c"}, "KERF312", "[a]"),
    },
}
"""For each field below spec a good value, a bad one, the code, and where below the field it is told."""
OTHERWISE = {
    "Job": {"spec", "spec.backoffLimitPerIndex"},
    "CronJob": {"spec.jobTemplate.spec", "spec.jobTemplate.spec.backoffLimitPerIndex"},
    "PersistentVolumeClaim": {"spec", "spec.accessModes[]"},
}
"""Rows with tests of their own."""


def found(kind: str, spec: dict[str, Any]) -> list[tuple[str, str]]:
    document = {"apiVersion": GOOD[kind][0], "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


def test_each_row_of_the_tables_is_tested() -> None:
    rows = {kind: {f"spec.{field}" for field in fields} | OTHERWISE.get(kind, set()) for kind, fields in ROWS.items()}
    assert rows == {kind: set(fields) for kind, fields in RULES.items()}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in ROWS.items() for field in fields])
def test_a_row_of_a_table(kind: str, field: str) -> None:
    good, bad, code, below = ROWS[kind][field]
    assert found(kind, changed(GOOD[kind][1], field, good)) == []
    assert found(kind, changed(GOOD[kind][1], field, bad)) == [(code, f"spec.{field}{below}")]
    others: tuple[Any, ...] = ([], {}, 1.5, True, [[]], None)
    for other in others:
        found(kind, changed(GOOD[kind][1], field, other))  # no value breaks a rule


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}, []),
        ({"completionMode": "Indexed", "backoffLimitPerIndex": 1}, []),
        ({"completionMode": "Indexed", "parallelism": 2}, [("KERF304", "completions")]),
        ({"backoffLimitPerIndex": 1}, [("KERF305", "completionMode")]),
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
