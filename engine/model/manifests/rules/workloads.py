"""Refuses what the API server refuses in pods and workloads beyond their schema, by version of Kubernetes.

The rules see the document as its author wrote it. A value of the wrong type is passed over: the schema reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kerf.engine.model.cron import parse as parse_cron
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.manifests.rules.checks import check_label_key, check_label_value
from kerf.engine.model.manifests.rules.kinds import check_kind
from kerf.engine.model.manifests.rules.metadata import check_metadata_rules, check_template_metadata
from kerf.engine.model.manifests.rules.names import check_names
from kerf.engine.model.manifests.rules.pods import PREFERRED, REQUIRED, check_pod_spec
from kerf.engine.model.manifests.rules.resources import check_resources
from kerf.engine.model.manifests.rules.volumes import check_mounts
from kerf.engine.model.manifests.violations import Report

Document = dict[str, Any]
Version = tuple[int, ...]

_POD_SPECS = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}
_TEMPLATE = ("spec", "template", "spec")
_WITH_SELECTOR = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_SELECTING = frozenset({"PodDisruptionBudget", "PersistentVolumeClaim"})
_WITH_SPEC = frozenset({"Pod", "ReplicationController", "Job", "CronJob", "PersistentVolumeClaim", *_WITH_SELECTOR})
_ANY_FINALIZERS = frozenset({"PodDisruptionBudget", "RuntimeClass"})
"""Kinds of Kubernetes that take finalizers without a domain."""
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_OF_POD_TERMS = ("labelSelector", "namespaceSelector")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_TOLERATION_OPERATORS = ("Exists", "Equal")
_NUMERIC_TOLERATIONS = (1, 35)
"""The version of Kubernetes from which tolerations compare numbers (Gt, Lt)."""
_STAYING = (None, "", "NoSchedule", "PreferNoSchedule")
"""Effects of a toleration that never have a pod leave, or not alone."""
_EVERY, _ZONES = "@every ", ("TZ=", "CRON_TZ=")
"""How schedules of CronJobs begin that disruption budgets do not have."""
_WITHOUT_ZONES = (1, 29)
"""The version of Kubernetes from which a new CronJob has no zone in its schedule."""
_EITHER = {"Gte": "Gt with the number before it", "Lte": "Lt with the number after it"}


def check_workload(document: Document, version: Version, report: Report) -> None:
    """Report what the API server of this version refuses in a pod, or in an object with a template of pods."""
    kind = str(document.get("kind"))
    check_names(kind, document, report)
    check_kind(kind, document, report)
    if kind in _WITH_SELECTOR:
        _check_selector(document, report)
    if kind in _SELECTING:
        _check_expressions(
            _at(document, "spec", "selector"), "matchExpressions", "spec.selector", _LABEL_OPERATORS, report
        )
    if kind == "PersistentVolume":
        for at, term in _required_terms(_at(document, "spec", "nodeAffinity"), "spec.nodeAffinity", "required"):
            _check_expressions(term, "matchExpressions", at, _NODE_OPERATORS, report)
    where = _POD_SPECS.get(kind, _TEMPLATE)
    check_metadata_rules(document.get("metadata"), "metadata", report, with_domains=kind not in _ANY_FINALIZERS)
    if len(where) > 1:
        metadata = (*where[:-1], "metadata")
        check_template_metadata(_at(document, *metadata), ".".join(metadata), report)
    spec = _at(document, *where)
    if kind in _WITH_SPEC and document.get("spec") is None:
        report.add("KERF304", "spec", "spec is required")
    if spec:
        _check_pod(spec, ".".join(where), version, report)
        check_pod_spec(kind, spec, ".".join(where), report)
        claims = _at(document, "spec").get("volumeClaimTemplates") if kind == "StatefulSet" else None
        check_mounts(spec, claims, ".".join(where), report)
    schedule = _at(document, "spec").get("schedule")
    if kind == "CronJob" and isinstance(schedule, str):
        _check_schedule(schedule, version, report)


def _check_schedule(schedule: str, version: Version, report: Report) -> None:
    path = "spec.schedule"
    if schedule.startswith(_ZONES):
        if version >= _WITHOUT_ZONES:
            report.add("KERF314", path, "A schedule has no time zone", "Write it into timeZone")
    elif schedule.startswith(_EVERY):
        report.attempt(path, parse_go_duration, schedule.removeprefix(_EVERY), otherwise=0)
    else:
        report.attempt(path, parse_cron, schedule, otherwise=None)


def _check_selector(document: Document, report: Report) -> None:
    """Report a selector that does not select the object's own template. Labels of a wrong type, or a template that is
    missing, are what is wrong then."""
    labels, selector = _labels_of_template(document), _at(document, "spec", "selector")
    path = "spec.selector"
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        if "selector" in _at(document, "spec") and not selector.keys() - {"matchLabels", "matchExpressions"}:
            report.add("KERF304", path, "The selector is empty", "Name labels of the template in matchLabels")
        return
    for name in _missed(selector, labels) if labels is not None else ():
        hint = "Write the same labels into spec.template.metadata.labels"
        report.add("KERF322", f"{path}.{name}", "The selector does not select the labels of the template", hint)
    _check_expressions(selector, "matchExpressions", path, _LABEL_OPERATORS, report)


def _labels_of_template(document: Document) -> Document | None:
    """The labels of the template; None where there is no template, or something of another type."""
    template = _at(document, "spec").get("template")
    metadata = (template.get("metadata") or {}) if isinstance(template, dict) else None
    labels = (metadata.get("labels") or {}) if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else None


def _missed(selector: Document, labels: Document) -> Iterator[str]:
    """What of a selector these labels do not meet."""
    for key, value in _at(selector, "matchLabels").items():
        if isinstance(value, str) and isinstance(labels.get(key), str | None) and labels.get(key) != value:
            yield f"matchLabels[{key}]"
    for number, expression in enumerate(_objects(selector, "matchExpressions")):
        if not _selects(expression, labels):
            yield f"matchExpressions[{number}]"


def _selects(expression: Document, labels: Document) -> bool:
    value, values = labels.get(str(expression.get("key"))), expression.get("values") or []
    if not isinstance(values, list) or not isinstance(value, str | None):
        return True  # its type is what is wrong
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return True


def _check_pod(spec: Document, path: str, version: Version, report: Report) -> None:
    for name in ("containers", "initContainers"):
        for number, container in enumerate(_objects(spec, name)):
            check_resources(_at(container, "resources"), f"{path}.{name}[{number}].resources", report)
    check_resources(_at(spec, "resources"), f"{path}.resources", report, beside=_named(spec))
    for number, toleration in enumerate(_objects(spec, "tolerations")):
        _check_toleration(toleration, f"{path}.tolerations[{number}]", version, report)
    for at, term in _node_terms(_at(spec, "affinity", "nodeAffinity"), f"{path}.affinity.nodeAffinity"):
        _check_expressions(term, "matchExpressions", at, _NODE_OPERATORS, report)
    for at, selector in _label_selectors(spec, path):
        _check_expressions(selector, "matchExpressions", at, _LABEL_OPERATORS, report)


def _named(spec: Document) -> Iterator[str]:
    """The resources that the containers of a pod name."""
    for container in _objects(spec, "containers"):
        for holder in ("requests", "limits"):
            yield from map(str, _at(container, "resources", holder))


def _check_toleration(toleration: Document, path: str, version: Version, report: Report) -> None:
    operator = toleration.get("operator") or "Equal"
    if not isinstance(operator, str):
        return  # its type is what is wrong
    numeric = version >= _NUMERIC_TOLERATIONS
    if operator in {"Gt", "Lt"} and not numeric:
        hint = f"It came with Kubernetes {'.'.join(map(str, _NUMERIC_TOLERATIONS))}"
        report.add("KERF305", f"{path}.operator", f"{operator!r} is not one of Exists, Equal", hint)
    else:
        allowed = (*_TOLERATION_OPERATORS, "Lt", "Gt") if numeric else _TOLERATION_OPERATORS
        report.one_of(f"{path}.operator", operator, allowed)
    if not toleration.get("key") and operator != "Exists":
        report.add("KERF305", f"{path}.operator", "Without a key the operator is Exists", "Name the taint's key")
    if operator == "Exists" and toleration.get("value"):
        report.add("KERF310", f"{path}.value", "Exists takes no value", "Leave it out, or write operator: Equal")
    elif operator in {"Gt", "Lt"} and numeric and not _is_one_integer([toleration.get("value")]):
        report.add("KERF310", f"{path}.value", f"{operator} needs an integer in quotes")
    elif operator == "Equal":
        check_label_value(report, f"{path}.value", toleration.get("value"))
    check_label_key(report, f"{path}.key", toleration.get("key") or None)
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") in _STAYING:
        message = "tolerationSeconds says when NoExecute ends a pod: no other effect does"
        report.add("KERF305", f"{path}.effect", message, "Write effect: NoExecute, or leave tolerationSeconds out")


def _node_terms(affinity: Document, path: str) -> Iterator[tuple[str, Document]]:
    yield from _required_terms(affinity, path, REQUIRED)
    for number, preferred in enumerate(_objects(affinity, PREFERRED)):
        yield f"{path}.{PREFERRED}[{number}].preference", _at(preferred, "preference")


def _required_terms(affinity: Document, path: str, name: str) -> Iterator[tuple[str, Document]]:
    for number, term in enumerate(_objects(_at(affinity, name), "nodeSelectorTerms")):
        yield f"{path}.{name}.nodeSelectorTerms[{number}]", term


def _label_selectors(spec: Document, path: str) -> Iterator[tuple[str, Document]]:
    for number, constraint in enumerate(_objects(spec, "topologySpreadConstraints")):
        yield f"{path}.topologySpreadConstraints[{number}].labelSelector", _at(constraint, "labelSelector")
    for name in ("podAffinity", "podAntiAffinity"):
        affinity, at = _at(spec, "affinity", name), f"{path}.affinity.{name}"
        for number, term in enumerate(_objects(affinity, REQUIRED)):
            for selector in _OF_POD_TERMS:
                yield f"{at}.{REQUIRED}[{number}].{selector}", _at(term, selector)
        for number, term in enumerate(_objects(affinity, PREFERRED)):
            for selector in _OF_POD_TERMS:
                yield (
                    f"{at}.{PREFERRED}[{number}].podAffinityTerm.{selector}",
                    _at(term, "podAffinityTerm", selector),
                )


def _check_expressions(holder: Document, name: str, path: str, operators: tuple[str, ...], report: Report) -> None:
    """Report operators that no version of Kubernetes has there, and values that do not suit their operator."""
    for number, expression in enumerate(_objects(holder, name)):
        at, operator, values = f"{path}.{name}[{number}]", expression.get("operator"), expression.get("values") or []
        if not isinstance(operator, str) or not isinstance(values, list):
            continue
        known = report.one_of(f"{at}.operator", operator, operators, _instead(operator, operators))
        if not known:
            continue
        if operator in {"In", "NotIn"} and not values:
            report.add("KERF310", f"{at}.values", f"{operator} needs at least one value")
        elif operator in {"Exists", "DoesNotExist"} and values:
            report.add("KERF310", f"{at}.values", f"{operator} takes no values")
        elif operator in {"Gt", "Lt"} and not _is_one_integer(values):
            report.add("KERF310", f"{at}.values", f"{operator} needs exactly one value, an integer in quotes")


def _instead(operator: str, operators: tuple[str, ...]) -> str:
    """What to write for an operator that NodePools have and pods do not."""
    instead = _EITHER.get(operator, "") if "Gt" in operators else ""
    return f"Write {instead}: pods have no {operator}" if instead else ""


def _is_one_integer(values: list[Any]) -> bool:
    return len(values) == 1 and isinstance(values[0], str) and values[0].removeprefix("-").isdigit()


def _at(document: Any, *path: str) -> Document:
    """The object at a path; an empty one where there is none."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _objects(document: Document, name: str) -> list[Document]:
    """The entries of a list; an empty object stands for one of the wrong type, so that numbers stay right."""
    entries = document.get(name)
    return [entry if isinstance(entry, dict) else {} for entry in entries] if isinstance(entries, list) else []
