"""What the controller accepts in spec.kubelet of an EC2NodeClass (A-49 to A-52), which is an open object for the API
server (A-35).

The schema is that of KubeletConfiguration (`kubelet_configuration.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.crds.check import check, defaulted
from kerf.engine.model.crds.kubelet_configuration import MAPPED_KEYS, PASS_THROUGH_KEYS
from kerf.engine.model.crds.kubelet_types import check_expression
from kerf.engine.model.crds.schema import Fault, Rule, object_of, text
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.manifests.violations import Report, Violation
from kerf.engine.model.quantities import parse_quantity

SIGNALS = (
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
    "pid.available",
)  # fmt: skip
"""What the kubelet may watch for evictions."""
RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
INVALID, EXPRESSION, UNREADABLE, UNSUPPORTED = (
    "InvalidKubeletConfiguration",
    "KubeletExpressionsDisabled",
    "KubeletExpressionInvalid",
    "UnsupportedKubeletConfiguration",
)
"""The reasons of the condition ValidationSucceeded (A-63)."""
RESERVED = ("kubeReserved", "systemReserved")
_PERCENT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%")
_ANY_KEY_FAMILIES = ("AL2023", "Custom")


class KubeletProblem(Struct, frozen=True):
    """Why no node can be launched with a kubelet: the condition's reason, and everything that is wrong."""

    reason: str
    violations: tuple[Violation, ...]

    @property
    def message(self) -> str:
        """All violations in one sentence, for the condition (A-50)."""
        return "; ".join(f"{violation.path}: {violation.message}" for violation in self.violations)


def kubelet_problem(kubelet: Mapping[str, Any], family: str, *, expressions: bool = False) -> KubeletProblem | None:
    """Returns why the controller refuses a kubelet for an AMI family, None if it does not. The first check that fails
    decides (A-129): form (A-50), expressions (A-52), what the family has settings for (A-51). `expressions`: the gate
    NodeClassCEL is on.
    """
    stated = stated_kubelet(kubelet)
    checks: tuple[tuple[str, Callable[[Report], None]], ...] = (
        (INVALID, lambda report: _report_form(stated, report)),
        (UNREADABLE, lambda report: _report_unreadable(stated, report))
        if expressions
        else (EXPRESSION, lambda report: _report_expressions(stated, report)),
        (UNSUPPORTED, lambda report: _report_unsupported(stated, family, report)),
    )
    for reason, look in checks:
        report = Report()
        look(report)
        if report.violations:
            return KubeletProblem(reason, tuple(report.violations))
    return None


def stated_kubelet(kubelet: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a kubelet without nulls, which count as absent."""
    stated: dict[str, Any] = defaulted(_KUBELET, kubelet)
    return stated


def check_v1beta1_kubelet(kubelet: Any, report: Report, path: str) -> None:
    """Reports what is wrong with the kubelet of a v1beta1 NodePool (L-126), which knows no expressions."""
    check(_V1BETA1, kubelet, report, path, strict=True)


# ── form ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _registered_taints(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    if "registerWithTaints" in kubelet:
        message = "A node's taints come from its NodePool"
        yield Fault(".registerWithTaints", "KERF319", message, "Write taints or startupTaints in the NodePool")


def _signals(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"):
        yield from _unknown_keys(name, kubelet.get(name, {}), SIGNALS)


def _unknown_keys(name: str, keys: Iterable[str], known: tuple[str, ...]) -> Iterator[Fault]:
    for key in keys:
        if key not in known:
            yield Fault(f".{name}[{key}]", "KERF305", f"{key!r} is not one of {', '.join(known)}")


def _thresholds(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    for name in ("evictionHard", "evictionSoft", "evictionMinimumReclaim"):
        for signal, value in kubelet.get(name, {}).items():
            if not _is_threshold(value):
                message = f"{value!r} is neither a share of 0% to 100% nor a quantity that is at least 0"
                yield Fault(f".{name}[{signal}]", "KERF306", message, 'Write "10%" or "100Mi"')


def _is_threshold(value: str) -> bool:
    if value.endswith("%"):
        return bool(_PERCENT.fullmatch(value)) and 0 <= float(value[:-1]) <= 100
    try:
        return parse_quantity(value, "memory") >= 0
    except InputError:
        return False


def _grace_periods(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    for signal, value in kubelet.get("evictionSoftGracePeriod", {}).items():
        try:
            negative = parse_go_duration(value) < 0
        except InputError as error:
            yield Fault(f".evictionSoftGracePeriod[{signal}]", error.code, error.message, error.hint)
            continue
        if negative:
            yield Fault(f".evictionSoftGracePeriod[{signal}]", "KERF307", f"{value!r} is less than nothing")


def _soft_pairs(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    thresholds, periods = kubelet.get("evictionSoft", {}), kubelet.get("evictionSoftGracePeriod", {})
    for signal in thresholds:
        if signal not in periods:
            yield Fault(f".evictionSoft[{signal}]", "KERF317", f"evictionSoftGracePeriod has no {signal}")
    for signal in periods:
        if signal not in thresholds:
            yield Fault(f".evictionSoftGracePeriod[{signal}]", "KERF317", f"evictionSoft has no {signal}")


def _reservations(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    for name in RESERVED:
        reserved = kubelet.get(name, {})
        yield from _unknown_keys(name, reserved, RESERVABLE)
        for resource, value in reserved.items():
            if value.startswith("-"):
                yield Fault(f".{name}[{resource}]", "KERF306", f"{value!r}: less than nothing cannot be reserved")


def _percents(kubelet: Mapping[str, Any]) -> Iterator[Fault]:
    high, low = kubelet.get("imageGCHighThresholdPercent"), kubelet.get("imageGCLowThresholdPercent")
    if high is not None and low is not None and high <= low:
        message = f"imageGCHighThresholdPercent ({high}) must be above imageGCLowThresholdPercent ({low})"
        yield Fault(".imageGCHighThresholdPercent", "KERF317", message)


_RULES = tuple(
    Rule("", "", faults)  # the controller checks them: they have no CEL
    for faults in (_registered_taints, _signals, _thresholds, _grace_periods, _soft_pairs, _reservations, _percents)
)

_KUBELET = object_of({**MAPPED_KEYS, **PASS_THROUGH_KEYS}, rules=_RULES)
_WITH_EXPRESSION = object_of({**_KUBELET.properties, "maxPods": text()}, rules=_RULES)
_V1BETA1 = object_of(MAPPED_KEYS, rules=_RULES)


def _report_form(kubelet: Mapping[str, Any], report: Report) -> None:
    """Reports violations of the schema and its rules. A text as maxPods is an expression, and no wrong type (A-50)."""
    schema = _WITH_EXPRESSION if isinstance(kubelet.get("maxPods"), str) else _KUBELET
    check(schema, kubelet, report, "spec.kubelet", strict=True)


# ── expressions, families ──────────────────────────────────────────────────────────────────────────────────────────


def expressions_of(kubelet: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns where a kubelet has expressions: a text as maxPods, a reservation that is no quantity (A-52). Each is the
    field with its key, "" where the field is the expression.
    """
    places = [("maxPods", "")] if isinstance(kubelet.get("maxPods"), str) else []
    for name in RESERVED:
        places += [(name, key) for key, value in kubelet.get(name, {}).items() if not _is_quantity(value, key)]
    return places


def _report_expressions(kubelet: Mapping[str, Any], report: Report) -> None:
    """Reports values that are expressions (A-52)."""
    for place in map(_path, expressions_of(kubelet)):
        message = f"{place} is an expression, and the gate NodeClassCEL is off"
        report.add("KERF522", f"spec.kubelet.{place}", message, "Write a number")


def _report_unreadable(kubelet: Mapping[str, Any], report: Report) -> None:
    """Reports expressions that have no value on any instance type (A-129)."""
    for field, key in expressions_of(kubelet):
        text = kubelet[field][key] if key else kubelet[field]
        try:
            check_expression(text)
        except InputError as error:
            place = _path((field, key))
            report.add("KERF523", f"spec.kubelet.{place}", error.message, "Write CEL, such as 11 * max_pods + 255")


def _path(place: tuple[str, str]) -> str:
    return ".".join(filter(None, place))


def _is_quantity(value: str, resource: str) -> bool:
    try:
        parse_quantity(value, resource)
    except InputError:
        return False
    return True


def _report_unsupported(kubelet: Mapping[str, Any], family: str, report: Report) -> None:
    """Reports what the AMI family cannot do (A-51)."""
    if family in _ANY_KEY_FAMILIES:
        return
    for key in kubelet:
        if key not in MAPPED_KEYS or (family, key) == ("Bottlerocket", "podsPerCore"):
            report.add("KERF317", f"spec.kubelet.{key}", f"{family} has no setting for {key}", "Leave it out")
    if len(kubelet.get("clusterDNS", ())) > 1:
        report.add("KERF317", "spec.kubelet.clusterDNS", f"{family} takes one clusterDNS", "Write one address")
