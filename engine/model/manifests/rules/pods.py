"""What the API server refuses in the spec of a pod beyond its schema, as a table: enumerations, ranges, empty lists.

A value of the wrong type is passed over: the schema reports it. An empty text counts as absent, as in Go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kerf.engine.model.karpenter.nodepool_validation import is_label_value, qualified
from kerf.engine.model.manifests.rules.names import check_domain_name, check_label_name
from kerf.engine.model.manifests.violations import Report

Document = dict[str, Any]
Check = Callable[[Report, str, Any], None]
CONTAINERS = ("containers", "initContainers")
NODE_AFFINITY = "affinity.nodeAffinity"
RESTART_POLICIES = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"), ("Always",)),
    **dict.fromkeys(("Job", "CronJob"), ("OnFailure", "Never")),
}
"""The restart policies of pods of these kinds; other pods may have any."""
_HINT = "Letters, digits, -, _ and ., at most 63; a key may have a DNS domain and / before it"


def one_of(*allowed: str) -> Check:
    """A check of an enumeration."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, str) and value:
            report.one_of(path, value, allowed)

    return check


def between(least: int, most: int) -> Check:
    """A check of a number's range."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and not least <= value <= most:
            report.add("KERF309", path, f"The value is {least} to {most}, not {value}")

    return check


def filled(report: Report, path: str, value: Any) -> None:
    """Report a list without an entry."""
    if value == []:
        report.add("KERF304", path, "The list needs at least one entry")


def _unique(report: Report, path: str, value: Any) -> None:
    seen: dict[str, int] = {}
    for number, part in enumerate(value if isinstance(value, list) else ()):
        name = part.get("name") if isinstance(part, dict) else None
        if isinstance(name, str) and seen.setdefault(name, number) != number:
            report.add("KERF321", f"{path}[{number}].name", f"The name {name} stands at {path}[{seen[name]}]")


def check_labels(report: Report, path: str, value: Any) -> None:
    """Report keys and values that are none of labels."""
    for key, text in value.items() if isinstance(value, dict) else ():
        check_label_key(report, f"{path}[{key}]", key)
        check_label_value(report, f"{path}[{key}]", text)


def check_label_key(report: Report, path: str, key: Any) -> None:
    """Report a text that is no key of labels."""
    if isinstance(key, str) and not qualified(key):
        report.add("KERF312", path, f"{key!r} is not a label key", _HINT)


def check_label_value(report: Report, path: str, text: Any) -> None:
    """Report a text that is no value of labels."""
    if isinstance(text, str) and not is_label_value(text):
        report.add("KERF312", path, f"{text!r} is not a label value", _HINT)


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


def _value_source(report: Report, path: str, value: Any) -> None:
    """Report an environment variable with two values, or with none of the sources that it names."""
    source = value.get("valueFrom") if isinstance(value, dict) else None
    if not isinstance(source, dict):
        return
    if value.get("value"):
        report.add("KERF309", f"{path}.valueFrom", "valueFrom stands beside value", "Leave out one of the two")
    elif len(given := [name for name, part in source.items() if part is not None]) != 1:
        hint = "It needs one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"
        report.add("KERF309", f"{path}.valueFrom", f"valueFrom has {len(given)} sources", hint)


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


def _node_field(report: Report, path: str, value: Any) -> None:
    """Report a term about a node's fields that is not about its name, or about other than one."""
    field = value if isinstance(value, dict) else {}
    key, operator, names = field.get("key"), field.get("operator"), field.get("values")
    if isinstance(key, str) and report.one_of(f"{path}.key", key, ("metadata.name",)) and isinstance(operator, str):
        report.one_of(f"{path}.operator", operator, ("In", "NotIn"))
    if operator in ("In", "NotIn") and isinstance(names, list | None) and len(names or ()) != 1:
        report.add("KERF309", f"{path}.values", f"It needs one name of a node, not {len(names or ())}")
    for number, name in enumerate(names if isinstance(names, list) else ()):
        check_domain_name(report, f"{path}.values[{number}]", name)


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _of_selector(name: str) -> dict[str, Check]:
    return {
        f"{name}.matchLabels": check_labels,
        f"{name}.matchExpressions[].key": check_label_key,
        f"{name}.matchExpressions[].values[]": check_label_value,
    }


_OF_SELECTORS: dict[str, Check] = {**_of_selector("labelSelector"), "matchLabelKeys[]": check_label_key}
"""What selects the pods that others are spread over, or attract or repel."""
_OF_AFFINITIES: dict[str, Check] = {
    **_of_selector("namespaceSelector"),
    "mismatchLabelKeys[]": check_label_key,
    "topologyKey": check_label_key,  # that of a spread may be any text
}
_AFFINITIES = tuple(
    f"affinity.{kind}.{term}"
    for kind in ("podAffinity", "podAntiAffinity")
    for term in (f"{_REQUIRED}[]", f"{_PREFERRED}[].podAffinityTerm")
)
_SELECTORS = ("topologySpreadConstraints[]", *_AFFINITIES)
_PORT, INT32 = 65_535, (1 << 31) - 1
_OF_CONTAINERS: dict[str, Check] = {
    "name": check_label_name,
    "imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
    "env[]": _value_source,
    "ports[].containerPort": between(1, _PORT),
    "ports[].hostPort": between(0, _PORT),  # 0 is none
    "ports[].protocol": one_of("TCP", "UDP", "SCTP"),
}
RULES: dict[str, Check] = {
    "restartPolicy": one_of("Always", "OnFailure", "Never"),
    "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    "dnsPolicy": one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "activeDeadlineSeconds": between(1, INT32),
    "nodeSelector": check_labels,
    **dict.fromkeys((*CONTAINERS, "volumes", "schedulingGates"), _unique),
    "schedulingGates[].name": check_label_key,
    "initContainers[].restartPolicy": one_of("Always", "OnFailure", "Never"),
    "topologySpreadConstraints": _spreads,
    "topologySpreadConstraints[].minDomains": between(1, INT32),
    "volumes[].name": check_label_name,
    f"{NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms": filled,
    f"{NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms[].matchExpressions[].key": check_label_key,
    f"{NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms[].matchExpressions[].values[]": check_label_value,
    f"{NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms[].matchFields[]": _node_field,
    f"{NODE_AFFINITY}.{_PREFERRED}[].preference.matchFields[]": _node_field,
    f"{NODE_AFFINITY}.{_PREFERRED}[].weight": between(1, 100),
    f"{NODE_AFFINITY}.{_PREFERRED}[].preference.matchExpressions[].key": check_label_key,
    **{f"{holder}.{field}": check for holder in _AFFINITIES for field, check in _OF_AFFINITIES.items()},
    **dict.fromkeys(_SELECTORS, _pod_label_keys),
    **{f"{holder}.{field}": check for holder in _SELECTORS for field, check in _OF_SELECTORS.items()},
    **{f"{holder}[].{field}": check for holder in CONTAINERS for field, check in _OF_CONTAINERS.items()},
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


def _check_shared_names(spec: Document, path: str, report: Report) -> None:
    """Report init containers that are called as another container."""
    names = {name: at for at, name in values_at(spec, "containers[].name", path) if isinstance(name, str) and name}
    for at, name in values_at(spec, "initContainers[].name", path):
        if isinstance(name, str) and name in names:
            report.add("KERF321", at, f"The name {name} stands at {names[name].removesuffix('.name')}")


def _check_restart_policy(kind: str, written: Any, path: str, report: Report) -> None:
    policies = RESTART_POLICIES.get(kind, ())
    hint = f"Pods of a {kind} have {' or '.join(policies)}"
    if policies and not written and "Always" not in policies:  # which is the default
        report.add("KERF304", path, "restartPolicy is required", hint)
    elif policies and written and isinstance(written, str):
        report.one_of(path, written, policies, hint)


def values_at(holder: Any, field: str, path: str) -> Iterator[tuple[str, Any]]:
    """The values of a field of a table, with their paths; `[]` stands for every entry of a list."""
    step, _, rest = field.partition(".")
    name = step.removesuffix("[]")
    value = holder.get(name) if isinstance(holder, dict) else None
    if value is None:
        return
    at = f"{path}.{name}" if path else name
    entries = enumerate(value if isinstance(value, list) else ())
    found = [(at, value)] if name == step else [(f"{at}[{number}]", part) for number, part in entries]
    for below, part in found:
        if rest:
            yield from values_at(part, rest, below)
        else:
            yield below, part
