"""Why a controller refuses a NodePool that the API server accepted: messages of ValidationSucceeded (L-36…L-39)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import NEGATIVE, Requirement, Requirements, requirement

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"((?P<domain>{_DOMAIN})/)?(?P<name>{_NAME})")
_VALUE = re.compile(rf"({_NAME})?")
_INTEGER = re.compile(r"\+?[0-9]+")
_LARGEST = (1 << 63) - 1

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
NUMERIC = ("Gt", "Lt", "Gte", "Lte")
KNOWN_VALUES: dict[str, frozenset[str]] = {
    lbl.CAPACITY_TYPE: frozenset([lbl.ON_DEMAND, lbl.SPOT, lbl.RESERVED]),
    "karpenter.k8s.aws/instance-tenancy": frozenset(["default", "dedicated"]),
}
"""Well-known keys with a closed set of values (L-39)."""


def violations(pool: NodePool) -> tuple[str, ...]:
    """Returns all violations, in the order of the fields; none for a valid NodePool."""
    return (*_labels(pool), *_taints(pool), *_requirements(pool), *contradictions(pool).values())


def qualified(key: str) -> bool:
    """Returns whether a text is a qualified name: at most 63 characters behind a DNS domain of at most 253."""
    found = _KEY.fullmatch(key)
    return found is not None and len(found["name"]) <= 63 and len(found["domain"] or "") <= 253


def _labels(pool: NodePool) -> Iterator[str]:
    """Returns what is wrong with the labels of the template (L-36)."""
    for key, value in sorted(pool.labels.items()):
        if key == lbl.NODEPOOL or lbl.is_restricted(key):
            yield f"label {key} is restricted"
        elif not qualified(key):
            yield f"label {key} is not a qualified name"
        if not is_label_value(value):
            yield f"label {key} has the invalid value {value}"


def _taints(pool: NodePool) -> Iterator[str]:
    """Returns what is wrong with the taints and startup taints of the template (L-37)."""
    seen: set[tuple[str, str]] = set()
    for taint in (*pool.taints, *pool.startup_taints):
        if not qualified(taint.key):
            yield f"taint key {taint.key!r} is not a qualified name"
        if taint.value and not qualified(taint.value):
            yield f"taint {taint.key} has the invalid value {taint.value}"
        if taint.effect not in EFFECTS:
            yield f"taint {taint.key} has the unknown effect {taint.effect}"
        if (taint.key, taint.effect) in seen:
            yield f"taint {taint.key}:{taint.effect} stands there twice"
        seen.add((taint.key, taint.effect))


def _requirements(pool: NodePool) -> Iterator[str]:
    for found in pool.requirements:
        yield from _requirement(found, lbl.normalise(found.key))


def _requirement(found: RequirementSpec, key: str) -> Iterator[str]:
    """Returns what is wrong with one requirement (L-38, L-39)."""
    if found.operator not in OPERATORS:
        yield f"requirement {key} has the unknown operator {found.operator}"
    if key == lbl.NODEPOOL or lbl.is_restricted(key):
        yield f"requirement {key} is restricted"
    elif not qualified(key):
        yield f"requirement {key} is not a qualified name"
    for value in found.values:
        if not is_label_value(value):
            yield f"requirement {key} has the invalid value {value}"
    if found.operator == "In":
        yield from _listed(found, key)
    if found.operator in NUMERIC and not (len(found.values) == 1 and _is_count(found.values[0])):
        yield f"requirement {key} {found.operator} needs one integer that is at least 0"


def _listed(found: RequirementSpec, key: str) -> Iterator[str]:
    least = found.min_values or 0
    if not found.values:
        yield f"requirement {key} In needs a value"
    elif len(found.values) < least:
        yield f"requirement {key} has fewer values than minValues {least} asks for"
    known = KNOWN_VALUES.get(key)
    usable = [value for value in found.values if known is None or value in known]
    if found.values and not usable:
        yield f"requirement {key} has only unknown values: {', '.join(found.values)}"
    elif len(usable) < min(least, len(found.values)):
        yield f"requirement {key} has fewer known values than minValues {least} asks for"


def contradictions(pool: NodePool) -> dict[str, str]:
    """Returns, by its key, what is wrong with each label that the template and the requirements leave no value for.

    Karpenter launches such nodes: they lack what was asked for, and drift.
    """
    asked: dict[str, list[tuple[str, Requirement]]] = {}
    for key, value in pool.labels.items():
        asked.setdefault(lbl.normalise(key), []).append((f"{key}={value}", requirement(key, "In", (value,))))
    for spec in pool.requirements:
        one = requirement(spec.key, spec.operator, spec.values)
        text = f"{one.key} {spec.operator} {spec.values[0]}" if spec.operator in NUMERIC and spec.values else str(one)
        asked.setdefault(one.key, []).append((text, one))
    return {
        key: f"no value of label {key} meets {' and '.join(text for text, _ in entries)}"
        for key, entries in sorted(asked.items())
        if Requirements(one for _, one in entries).get(key).operator == "DoesNotExist"
        and any(one.operator not in NEGATIVE for _, one in entries)
    }


def is_label_value(text: str) -> bool:
    """Returns whether a text may be the value of a label or a taint."""
    return len(text) <= 63 and _VALUE.fullmatch(text) is not None


def _is_count(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and int(text) <= _LARGEST
