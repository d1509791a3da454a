"""What the API server refuses in the spec of a pod beyond its schema, as a table: enumerations, ranges, empty lists.

A value of the wrong type is passed over: the schema reports it. An empty text counts as absent, as in Go.
"""

from __future__ import annotations

import re
from typing import Any

from kerf.engine.model.manifests.rules import security
from kerf.engine.model.manifests.rules.checks import (
    INT32,
    Check,
    address,
    between,
    check_label_key,
    check_label_value,
    check_labels,
    domain_name,
    filled,
    needs,
    node_field,
    of_selector,
    one_of,
    one_of_given,
    unique,
    values_at,
)
from kerf.engine.model.manifests.rules.containers import CONTAINERS, RULES_OF_CONTAINERS
from kerf.engine.model.manifests.rules.names import check_domain_name, check_label_name
from kerf.engine.model.manifests.rules.resources import RULES_OF_CLAIMS, check_claims
from kerf.engine.model.manifests.rules.volumes import RULES_OF_VOLUMES
from kerf.engine.model.manifests.violations import Report

Document = dict[str, Any]
NODE_AFFINITY = "affinity.nodeAffinity"
RESTART_POLICIES = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"), ("Always",)),
    **dict.fromkeys(("Job", "CronJob"), ("OnFailure", "Never")),
}
"""The restart policies of pods of these kinds; other pods may have any."""


def _spreads(report: Report, path: str, value: Any) -> None:
    """Report what two constraints, or two fields of one, cannot have together."""
    seen: dict[tuple[str, str], int] = {}
    for number, part in enumerate(value if isinstance(value, list) else ()):
        key, otherwise = (
            (part.get("topologyKey"), part.get("whenUnsatisfiable")) if isinstance(part, dict) else ("", "")
        )
        if not key or not isinstance(key, str) or not isinstance(otherwise, str):
            continue  # which is what is wrong
        if seen.setdefault((key, otherwise), number) != number:
            first = f"{path}[{seen[key, otherwise]}]"
            report.add("KERF321", f"{path}[{number}]", f"The topologyKey {key} stands with {otherwise} at {first}")
        if part.get("minDomains") is not None and otherwise == "ScheduleAnyway":
            hint = "Write DoNotSchedule, or leave minDomains out"
            report.add("KERF305", f"{path}[{number}].whenUnsatisfiable", "minDomains needs DoNotSchedule", hint)


def _pod_label_keys(report: Report, path: str, value: Any) -> None:
    """Report keys of pod labels that have no selector to add to, or are to match and not to match."""
    fields = value if isinstance(value, dict) else {}
    named = {field: fields.get(field) for field in ("matchLabelKeys", "mismatchLabelKeys")}
    for field, keys in named.items():
        if keys and isinstance(keys, list) and fields.get("labelSelector") is None:
            hint = "Write one, or leave the keys out"
            report.add("KERF304", f"{path}.{field}", f"{field} needs a labelSelector", hint)
    match, mismatch = (keys if isinstance(keys, list) else [] for keys in named.values())
    for number, key in enumerate(match):
        if key in mismatch:
            report.add("KERF321", f"{path}.matchLabelKeys[{number}]", f"{key} stands in mismatchLabelKeys, too")


def _namespace(report: Report, path: str, value: Any) -> None:
    """Report what is no name of a namespace; an empty text is not the pod's own."""
    if value == "":
        report.add("KERF312", path, "'' is not a name", "Leave it out: without namespaces it is the pod's own")
    check_label_name(report, path, value)


def _host_name(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str):
        check_domain_name(report, path, value, _LONGEST_HOST_NAME)


def _search(report: Report, path: str, value: Any) -> None:
    """Report a text that no resolver adds to a name."""
    if isinstance(value, str) and value != "." and not _SEARCHED.fullmatch(value.removesuffix(".")):
        report.add("KERF312", path, f"{value!r} is no DNS domain", "Lower-case letters, digits, -, _ and .")


REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


_OF_SELECTORS: dict[str, Check] = {**of_selector("labelSelector"), "matchLabelKeys[]": check_label_key}
"""What selects the pods that others are spread over, or attract or repel."""
_OF_AFFINITIES: dict[str, Check] = {
    **of_selector("namespaceSelector"),
    "mismatchLabelKeys[]": check_label_key,
    "namespaces[]": _namespace,
    "topologyKey": check_label_key,  # that of a spread may be any text
}
_BETWEEN_PODS = ("podAffinity", "podAntiAffinity")
_AFFINITIES = tuple(
    f"affinity.{kind}.{term}" for kind in _BETWEEN_PODS for term in (f"{REQUIRED}[]", f"{PREFERRED}[].podAffinityTerm")
)
_POLICIES = ("nodeAffinityPolicy", "nodeTaintsPolicy")
_SELECTORS = ("topologySpreadConstraints[]", *_AFFINITIES)
_LONGEST_HOST_NAME = 64
_SEARCHED = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_GRACE = 30
"""The seconds that a pod has to end in if it does not say."""
_OBJECTS = ("serviceAccountName", "serviceAccount", "nodeName", "priorityClassName", "runtimeClassName")
"""Fields that name another object."""
_HOST_NAMES = ("hostname", "subdomain")
RULES: dict[str, Check] = {
    "restartPolicy": one_of("Always", "OnFailure", "Never"),
    "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    "dnsPolicy": one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "activeDeadlineSeconds": between(1, INT32),
    "nodeSelector": check_labels,
    **dict.fromkeys(_OBJECTS, domain_name),
    "os.name": one_of("linux", "windows"),
    **dict.fromkeys(("hostAliases[].ip", "dnsConfig.nameservers[]"), address),
    "dnsConfig.searches[]": _search,
    "dnsConfig.options[]": needs("name"),
    "hostnameOverride": _host_name,
    "readinessGates[].conditionType": check_label_key,
    **RULES_OF_CLAIMS,
    **security.RULES_OF_PODS,
    **dict.fromkeys((*CONTAINERS, "volumes", "schedulingGates"), unique),
    "schedulingGates[].name": check_label_key,
    "topologySpreadConstraints": _spreads,
    "topologySpreadConstraints[].minDomains": between(1, INT32),
    "topologySpreadConstraints[].whenUnsatisfiable": one_of("DoNotSchedule", "ScheduleAnyway"),
    "tolerations[].effect": one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "topologySpreadConstraints[].maxSkew": between(1, INT32),
    **{f"topologySpreadConstraints[].{field}": one_of_given("Honor", "Ignore") for field in _POLICIES},
    **{f"volumes[]{field}": check for field, check in RULES_OF_VOLUMES.items()},
    f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms": filled,
    f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms[].matchExpressions[].key": check_label_key,
    f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms[].matchExpressions[].values[]": check_label_value,
    f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms[].matchFields[]": node_field,
    f"{NODE_AFFINITY}.{PREFERRED}[].preference.matchFields[]": node_field,
    f"{NODE_AFFINITY}.{PREFERRED}[].weight": between(1, 100),
    f"{NODE_AFFINITY}.{PREFERRED}[].preference.matchExpressions[].key": check_label_key,
    **{f"{holder}.{field}": check for holder in _AFFINITIES for field, check in _OF_AFFINITIES.items()},
    **dict.fromkeys((f"affinity.{kind}.{PREFERRED}[].weight" for kind in _BETWEEN_PODS), between(1, 100)),
    **dict.fromkeys(_SELECTORS, _pod_label_keys),
    **{f"{holder}.{field}": check for holder in _SELECTORS for field, check in _OF_SELECTORS.items()},
    **{f"{holder}[]{field}": check for holder in CONTAINERS for field, check in RULES_OF_CONTAINERS.items()},
}
"""What each field of a pod's spec has to be; `[]` stands for every entry of a list."""


def check_pod_spec(kind: str, spec: Document, path: str, report: Report) -> None:
    """Report what breaks the table in the spec of a pod, or of the pods that an object of this kind makes."""
    for field, check in RULES.items():
        for at, value in values_at(spec, field, path):
            check(report, at, value)
    filled(report, f"{path}.containers", spec.get("containers"))
    _check_shared_names(spec, path, report)
    _check_restart_policy(kind, spec.get("restartPolicy") or "", f"{path}.restartPolicy", report)
    for field in _HOST_NAMES if kind != "StatefulSet" else ():  # which gives its pods names of its own
        check_label_name(report, f"{path}.{field}", spec.get(field))
    _check_host_ports(spec, path, report)
    _check_init_containers(spec, path, report)
    _check_sleep(spec, path, report)
    check_claims(spec, path, report)
    if kind == "Pod":
        _check_images(spec, path, report)
    elif spec.get("ephemeralContainers"):  # which a running pod may have
        report.add("KERF305", f"{path}.ephemeralContainers", f"Pods of a {kind} begin without them", "Leave it out")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        report.add("KERF304", f"{path}.dnsConfig", "dnsPolicy None needs a dnsConfig", "Name its nameservers there")
    if "Always" in RESTART_POLICIES.get(kind, ()) and spec.get("activeDeadlineSeconds") is not None:
        report.add("KERF305", f"{path}.activeDeadlineSeconds", f"Pods of a {kind} have no deadline", "Leave it out")


def _check_shared_names(spec: Document, path: str, report: Report) -> None:
    """Report init containers that are called as another container."""
    names = {name: at for at, name in values_at(spec, "containers[].name", path) if isinstance(name, str) and name}
    for at, name in values_at(spec, "initContainers[].name", path):
        if isinstance(name, str) and name in names:
            report.add("KERF321", at, f"The name {name} stands at {names[name].removesuffix('.name')}")


def _check_host_ports(spec: Document, path: str, report: Report) -> None:
    """Report ports of the node that containers on its own network cannot have, and those that two would have."""
    on_node = spec.get("hostNetwork") is True
    for holder in CONTAINERS:
        taken: dict[tuple[Any, ...], str] = {}
        for at, port in values_at(spec, f"{holder}[].ports[]", path):
            inner, outer = (port.get("containerPort"), port.get("hostPort")) if isinstance(port, dict) else (0, 0)
            if on_node and outer and outer != inner:
                message = f"With hostNetwork it is the containerPort {inner}"
                report.add("KERF309", f"{at}.hostPort", message, "Write the same number, or leave it out")
            number = outer or (inner if on_node else 0)
            if holder != "containers" or not isinstance(number, int) or not number:
                continue  # init containers run one after another
            protocol, host_ip = port.get("protocol") or "TCP", port.get("hostIP") or ""
            if isinstance(protocol, str) and isinstance(host_ip, str):
                first = taken.setdefault((protocol, host_ip, number), at)
                if first != at:
                    report.add("KERF321", f"{at}.hostPort", f"{protocol} {number} of the node stands at {first}")


def _check_init_containers(spec: Document, path: str, report: Report) -> None:
    """Report what an init container cannot have that ends before the others begin."""
    for at, container in values_at(spec, "initContainers[]", path):
        if isinstance(container, dict) and container.get("restartPolicy") != "Always":
            for field in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
                if container.get(field) is not None:
                    hint = "Leave it out, or write restartPolicy: Always"
                    report.add("KERF305", f"{at}.{field}", "An init container that ends has none", hint)


def _check_images(spec: Document, path: str, report: Report) -> None:
    """Report images with spaces around their names. In a template the API server takes them."""
    for holder in CONTAINERS:
        for at, image in values_at(spec, f"{holder}[].image", path):
            if isinstance(image, str) and image != image.strip():
                report.add("KERF305", at, f"{image!r} has spaces around it", "Leave them out")


def _check_sleep(spec: Document, path: str, report: Report) -> None:
    """Report a hook that sleeps longer than the pod may take to end."""
    grace = spec.get("terminationGracePeriodSeconds")
    grace = _GRACE if grace is None else grace
    for holder in CONTAINERS if isinstance(grace, int) else ():
        for hook in ("postStart", "preStop"):
            for at, seconds in values_at(spec, f"{holder}[].lifecycle.{hook}.sleep.seconds", path):
                if isinstance(seconds, int) and not 0 <= seconds <= grace:
                    message = f"The sleep is 0 to {grace} seconds, which the pod has to end in, not {seconds}"
                    report.add("KERF309", at, message, "Raise terminationGracePeriodSeconds")


def _check_restart_policy(kind: str, written: Any, path: str, report: Report) -> None:
    policies = RESTART_POLICIES.get(kind, ())
    hint = f"Pods of a {kind} have {' or '.join(policies)}"
    if policies and not written and "Always" not in policies:  # which is the default
        report.add("KERF304", path, "restartPolicy is required", hint)
    elif policies and written and isinstance(written, str):
        report.one_of(path, written, policies, hint)
