"""What the API server refuses in workloads, claims and budgets beyond their schema, as a table for each kind.

Values of the wrong type are passed over: the schema reports them.
"""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.manifests.rules.checks import (
    INT32,
    Check,
    between,
    check_label_key,
    check_label_value,
    check_labels,
    domain_name,
    filled,
    needs,
    one_kind_but,
    one_of,
    size_of,
    values_at,
)
from kerf.engine.model.manifests.violations import Report

_PERCENTAGE = re.compile(r"[0-9]+%")
_COUNT = between(0, INT32)
_SECONDS = between(0, (1 << 63) - 1)
"""Deadlines of Jobs and CronJobs have 64 bits."""
_NONE = (0, "0%")
_ONE_POD = "ReadWriteOncePod"
_HIGHEST_PRIORITY = 1_000_000_000
"""That of Kubernetes' own classes is higher."""


def _number_or_share(report: Report, path: str, value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        _COUNT(report, path, value)
    elif isinstance(value, str):
        _share(report, path, value)


def _at_most_all(report: Report, path: str, value: Any) -> None:
    """A number, or a share of at most all."""
    _number_or_share(report, path, value)
    if isinstance(value, str) and _PERCENTAGE.fullmatch(value) and int(value[:-1]) > 100:
        report.add("KERF309", path, f"{value} is more than 100%")


def _share(report: Report, path: str, value: str) -> None:
    if not _PERCENTAGE.fullmatch(value):
        report.add("KERF309", path, f"{value!r} is neither an integer nor a percentage", 'Write 1 or "50%"')


def _room(report: Report, path: str, value: Any) -> None:
    """Report a rolling update of a Deployment that can never take a step."""
    if isinstance(value, dict) and all(value.get(name) in _NONE for name in ("maxSurge", "maxUnavailable")):
        report.add("KERF309", path, "maxSurge and maxUnavailable are both 0: no pod could be replaced")


def _one_way(report: Report, path: str, value: Any) -> None:
    """Report a rolling update of a DaemonSet that opens pods before others go, and ends some first; or neither."""
    if not isinstance(value, dict):
        return
    ended, opened = value.get("maxUnavailable"), value.get("maxSurge")
    first, before = (1 if ended is None else ended) not in _NONE, (0 if opened is None else opened) not in _NONE
    if first == before:
        both = "both" if first else "neither"
        hint = "Write 0 for the other one" if first else "Write 1 for one of them"
        report.add("KERF309", path, f"Exactly one of maxSurge and maxUnavailable is above 0, not {both}", hint)


def _of_daemons(report: Report, path: str, value: Any) -> None:
    """Report a wrong rolling update; beside OnDelete it counts for nothing, and the API server does not look at it."""
    if isinstance(value, dict) and value.get("type") != "OnDelete":
        for field in ("maxUnavailable", "maxSurge"):
            for at, written in values_at(value, f"rollingUpdate.{field}", path):
                _at_most_all(report, at, written)
        _one_way(report, f"{path}.rollingUpdate", value.get("rollingUpdate"))


def _recreated(report: Report, path: str, value: Any) -> None:
    if isinstance(value, dict) and value.get("type") == "Recreate" and value.get("rollingUpdate") is not None:
        report.add("KERF305", f"{path}.rollingUpdate", "Recreate has no rollingUpdate", "Leave one of the two out")


def _of_completions(report: Report, path: str, value: Any) -> None:
    """Report what only a Job with indexes has, and what one lacks."""
    if not isinstance(value, dict):
        return
    indexed = value.get("completionMode") == "Indexed"
    # With neither of the two, both are 1.
    if indexed and value.get("completions") is None and value.get("parallelism") is not None:
        report.add("KERF304", f"{path}.completions", "completions is required", "An Indexed Job counts to it")
    if not indexed and value.get("backoffLimitPerIndex") is not None:
        report.add("KERF305", f"{path}.completionMode", "backoffLimitPerIndex needs an Indexed Job")
    if value.get("backoffLimitPerIndex") is None and value.get("maxFailedIndexes") is not None:
        report.add("KERF304", f"{path}.backoffLimitPerIndex", "maxFailedIndexes needs a backoffLimitPerIndex")


def _storage(report: Report, path: str, value: Any) -> None:
    """Report a claim that asks for no storage. Its text is a quantity, or that is what is wrong."""
    requests = value.get("requests") if isinstance(value, dict) else None
    size = requests.get("storage") if isinstance(requests, dict) else None
    if size is None:
        report.add("KERF304", f"{path}.requests[storage]", "A claim says how much storage it asks for")
    else:
        size_of(1)(report, f"{path}.requests[storage]", size)


def _claim(report: Report, path: str, value: Any) -> None:
    if isinstance(value, dict) and value.get("accessModes") is None:
        report.add("KERF304", f"{path}.accessModes", "accessModes is required", "Write [ReadWriteOnce]")
    if isinstance(value, dict) and value.get("resources") is None:
        _storage(report, f"{path}.resources", {})


def _volume(report: Report, path: str, value: Any) -> None:
    """Report a volume that is several things at once, or lacks what each has."""
    one_kind_but("The volume", _NO_SOURCES)(report, path, value)
    for field in ("accessModes", "capacity"):
        needs(field)(report, path, value)


def _access_modes(report: Report, path: str, value: Any) -> None:
    filled(report, path, value)
    if isinstance(value, list) and _ONE_POD in value and any(mode != _ONE_POD for mode in value):
        report.add("KERF309", path, f"{_ONE_POD} stands beside other modes", "Leave out the others")


def _time_zone(report: Report, path: str, value: Any) -> None:
    if value in ("", "Local"):
        report.add("KERF305", path, f"{value!r} is no time zone", "Write one such as Europe/Berlin, or leave it out")


_ACCESS: dict[str, Check] = {
    "accessModes": _access_modes,
    "accessModes[]": one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", _ONE_POD),
    "volumeMode": one_of("Filesystem", "Block"),
    "storageClassName": domain_name,
}
_CLAIM: dict[str, Check] = {
    "spec": _claim,
    "spec.resources": _storage,
    **{f"spec.{field}": check for field, check in _ACCESS.items()},
}
_TERMS = "nodeAffinity.required.nodeSelectorTerms"
_NO_SOURCES = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip
"""The fields of a PersistentVolume that do not say what it is."""
_VOLUME: dict[str, Check] = {
    **_ACCESS,
    _TERMS: filled,
    f"{_TERMS}[].matchExpressions[].key": check_label_key,
    f"{_TERMS}[].matchExpressions[].values[]": check_label_value,
}
_WHEN_CLAIMS_GO = ("whenDeleted", "whenScaled")
_DEPLOYMENT: dict[str, Check] = {
    "strategy": _recreated,
    "strategy.type": one_of("Recreate", "RollingUpdate"),
    "strategy.rollingUpdate": _room,
    "strategy.rollingUpdate.maxSurge": _number_or_share,
    "strategy.rollingUpdate.maxUnavailable": _at_most_all,
    "progressDeadlineSeconds": _COUNT,
}
_STATEFUL_SET: dict[str, Check] = {
    "minReadySeconds": _COUNT,  # revisionHistoryLimit may be negative
    "podManagementPolicy": one_of("OrderedReady", "Parallel"),
    "updateStrategy.type": one_of("RollingUpdate", "OnDelete"),
    **{f"persistentVolumeClaimRetentionPolicy.{when}": one_of("Retain", "Delete") for when in _WHEN_CLAIMS_GO},
    **{f"volumeClaimTemplates[].{field}": check for field, check in _CLAIM.items()},
}
_DAEMON_SET: dict[str, Check] = {
    "updateStrategy.type": one_of("RollingUpdate", "OnDelete"),
    "updateStrategy": _of_daemons,
}
_OF_WORKLOADS: dict[str, Check] = dict.fromkeys(("minReadySeconds", "revisionHistoryLimit"), _COUNT)
_COUNTS_OF_JOBS = (
    "parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_JOB: dict[str, Check] = {
    "spec": _of_completions,
    "spec.activeDeadlineSeconds": _SECONDS,
    **{f"spec.{field}": _COUNT for field in _COUNTS_OF_JOBS},
    "spec.completionMode": one_of("NonIndexed", "Indexed"),
    "spec.podReplacementPolicy": one_of("TerminatingOrFailed", "Failed"),
}
_COUNTS_OF_CRON_JOBS = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
RULES: dict[str, dict[str, Check]] = {
    "Deployment": {f"spec.{field}": check for field, check in (_OF_WORKLOADS | _DEPLOYMENT).items()},
    "StatefulSet": {f"spec.{field}": check for field, check in _STATEFUL_SET.items()},
    "DaemonSet": {f"spec.{field}": check for field, check in (_OF_WORKLOADS | _DAEMON_SET).items()},
    "Job": _JOB,
    "CronJob": {
        **{f"spec.jobTemplate.{field}": check for field, check in _JOB.items()},
        **{f"spec.{field}": _COUNT for field in _COUNTS_OF_CRON_JOBS},
        "spec.startingDeadlineSeconds": _SECONDS,
        "spec.concurrencyPolicy": one_of("Allow", "Forbid", "Replace"),
        "spec.timeZone": _time_zone,
    },
    "PersistentVolumeClaim": _CLAIM,
    "PersistentVolume": {"spec": _volume, **{f"spec.{field}": check for field, check in _VOLUME.items()}},
    "StorageClass": {
        "reclaimPolicy": one_of("Delete", "Retain"),
        "allowedTopologies[].matchLabelExpressions[].key": check_label_key,
        "allowedTopologies[].matchLabelExpressions[].values": filled,
    },
    "PriorityClass": {
        "value": between(-INT32 - 1, _HIGHEST_PRIORITY),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    },
    "Node": {"spec.taints[].key": check_label_key, "spec.taints[].value": check_label_value},
    "PodDisruptionBudget": {
        "spec.minAvailable": _at_most_all,
        "spec.maxUnavailable": _at_most_all,
        "spec.selector.matchLabels": check_labels,
    },
}
"""What each field of an object of a kind has to be; `[]` stands for every entry of a list."""


def check_kind(kind: str, document: dict[str, Any], report: Report) -> None:
    """Report what breaks the table of the object's kind."""
    for field, check in RULES.get(kind, {}).items():
        for path, value in values_at(document, field, ""):
            check(report, path, value)
