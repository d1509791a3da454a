"""What the API server refuses in workloads, budgets and classes beyond their schema, as a table for each kind.

Values of the wrong type are passed over: the schema reports them.
"""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any

from kerf.engine.model.manifests.rules.checks import (
    INT32,
    INT64,
    Check,
    between,
    both,
    check_label_key,
    check_label_value,
    filled,
    needs,
    of_selector,
    one_of,
    one_of_given,
    unique_by,
    values_at,
)
from kerf.engine.model.manifests.rules.names import check_domain_name, check_label_name
from kerf.engine.model.manifests.rules.time_zones import check_time_zone
from kerf.engine.model.manifests.rules.volumes import CLAIM, PERSISTENT_VOLUME
from kerf.engine.model.manifests.violations import Report

_PERCENTAGE = re.compile(r"[0-9]+%")
_COUNT = between(0, INT32)
_SECONDS = between(0, INT64)
"""Deadlines of Jobs and CronJobs have 64 bits."""
_NONE = (0, "0%")
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
    if not indexed and value.get("successPolicy") is not None:
        report.add("KERF305", f"{path}.completionMode", "successPolicy needs an Indexed Job")
    if value.get("backoffLimitPerIndex") is None and value.get("maxFailedIndexes") is not None:
        report.add("KERF304", f"{path}.backoffLimitPerIndex", "maxFailedIndexes needs a backoffLimitPerIndex")


def _of_failures(report: Report, path: str, value: Any) -> None:
    """Report pods that are started again where failures of pods are counted."""
    policy = value.get("podFailurePolicy") if isinstance(value, dict) else None
    for at, restart in values_at(value, "template.spec.restartPolicy", path) if policy is not None else ():
        if restart == "OnFailure":
            report.add("KERF305", at, "With a podFailurePolicy restartPolicy is Never", "Write restartPolicy: Never")


def _manager(report: Report, path: str, value: Any) -> None:
    """Report a text that names no controller of Jobs."""
    domain, _, name = value.partition("/") if isinstance(value, str) else ("a", "", "a")
    if not name:
        report.add("KERF312", path, f"{value!r} is no name with a domain", "Write one such as example.com/jobs")
    check_domain_name(report, path, domain)


def _provisioner(report: Report, path: str, value: Any) -> None:
    if value == "":
        report.add("KERF304", path, "provisioner is required")
    elif isinstance(value, str):
        check_label_key(report, path, value.lower())


def _parameters(report: Report, path: str, value: Any) -> None:
    if isinstance(value, dict) and "" in value:
        report.add("KERF304", path, "The name of a parameter is empty")


def _network(report: Report, path: str, value: Any) -> None:
    """Report a text that is no range of IP addresses."""
    if isinstance(value, str) and value:
        try:
            ip_network(value, strict=False)
            int(value.partition("/")[2])
        except ValueError:
            report.add("KERF305", path, f"{value!r} is no range of IP addresses", "Write one such as 10.9.8.0/24")


def _named_claim(report: Report, path: str, value: Any) -> None:
    """Report a template of claims without a name: its pods would be refused."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(metadata, dict | None):
        needs("name")(report, f"{path}.metadata", metadata or {})
        if value.get("spec") is None:
            needs("spec")(report, path, value)


def _selected(report: Report, path: str, value: Any) -> None:
    """Report a selector of one Job where there are many."""
    if value is not False:
        report.add("KERF305", path, "Each Job of a CronJob gets a selector of its own", "Leave it out")


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
    "ordinals.start": _COUNT,
    "podManagementPolicy": one_of("OrderedReady", "Parallel"),
    "updateStrategy.type": one_of("RollingUpdate", "OnDelete"),
    **{f"persistentVolumeClaimRetentionPolicy.{when}": one_of("Retain", "Delete") for when in _WHEN_CLAIMS_GO},
    "serviceName": check_label_name,  # which is part of the DNS name of each pod
    "volumeClaimTemplates[]": _named_claim,
    "volumeClaimTemplates[].metadata.name": check_label_name,
    **{f"volumeClaimTemplates[].{field}": check for field, check in CLAIM.items()},
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
    "spec": both(_of_completions, _of_failures),
    "spec.activeDeadlineSeconds": _SECONDS,
    **{f"spec.{field}": _COUNT for field in _COUNTS_OF_JOBS},
    "spec.managedBy": _manager,
    "spec.podFailurePolicy.rules[].action": one_of_given("Count", "FailIndex", "FailJob", "Ignore"),
    "spec.podFailurePolicy.rules[].onExitCodes.operator": one_of_given("In", "NotIn"),
    "spec.podFailurePolicy.rules[].onExitCodes.values": filled,
    "spec.successPolicy.rules": filled,
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
        **dict.fromkeys(("spec.jobTemplate.spec.selector", "spec.jobTemplate.spec.manualSelector"), _selected),
        **{f"spec.{field}": _COUNT for field in _COUNTS_OF_CRON_JOBS},
        "spec.startingDeadlineSeconds": _SECONDS,
        "spec.concurrencyPolicy": one_of("Allow", "Forbid", "Replace"),
        "spec.timeZone": check_time_zone,
    },
    "PersistentVolumeClaim": CLAIM,
    "PersistentVolume": PERSISTENT_VOLUME,
    "StorageClass": {
        "provisioner": _provisioner,
        "parameters": _parameters,
        "volumeBindingMode": one_of_given("Immediate", "WaitForFirstConsumer"),
        "reclaimPolicy": one_of("Delete", "Retain"),
        "allowedTopologies[]": needs("matchLabelExpressions"),
        "allowedTopologies[].matchLabelExpressions": both(filled, unique_by("key")),
        "allowedTopologies[].matchLabelExpressions[].key": check_label_key,
        "allowedTopologies[].matchLabelExpressions[].values": filled,
    },
    "PriorityClass": {
        "value": between(-INT32 - 1, _HIGHEST_PRIORITY),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    },
    "Node": {
        "spec.taints[].key": check_label_key,
        "spec.taints[].value": check_label_value,
        **dict.fromkeys(("spec.podCIDR", "spec.podCIDRs[]"), _network),
    },
    "PodDisruptionBudget": {
        "spec.minAvailable": _at_most_all,
        "spec.maxUnavailable": _at_most_all,
        "spec.unhealthyPodEvictionPolicy": one_of_given("AlwaysAllow", "IfHealthyBudget"),
        **of_selector("spec.selector"),
    },
}
"""What each field of an object of a kind has to be; `[]` stands for every entry of a list."""


def check_kind(kind: str, document: dict[str, Any], report: Report) -> None:
    """Report what breaks the table of the object's kind."""
    for field, check in RULES.get(kind, {}).items():
        for path, value in values_at(document, field, ""):
            check(report, path, value)
