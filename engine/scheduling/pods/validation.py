"""Which requirements and which pods are refused before anything is scheduled (S-26, S-42)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import COMPARISONS, OPERATORS, parse_integer
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    NODEPOOL,
    ON_DEMAND,
    RESERVED,
    SPOT,
    is_restricted,
    normalise,
)
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.reasons import SchedulingCode, reason

CAPACITY_TYPES = frozenset([ON_DEMAND, SPOT, RESERVED])
MAX_VALUES_SHOWN = 5
"""How many of a requirement's values a reason keeps."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class RequirementProblem(StrEnum):
    """What can be wrong with one requirement."""

    OPERATOR = "unknown operator"
    KEY = "the key is not a qualified name"
    VALUE = "a value is not a valid label value"
    NO_VALUES = "In needs values"
    TOO_FEW_VALUES = "fewer values than minValues"
    OPERAND = "the operator needs exactly one integer of at least 0"
    EMPTY_RANGE = "no integer from 0 up satisfies it"
    CAPACITY_TYPE = "no value is a capacity type"
    TOO_FEW_CAPACITY_TYPES = "fewer known capacity types than minValues"


def is_qualified_name(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _DOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    return value == "" or _NAME.fullmatch(value) is not None


def requirement_problems(spec: RequirementSpec) -> tuple[Reason, ...]:
    """Everything that is wrong with one requirement of a pod, a NodePool or an overlay (S-26); empty if it is valid."""
    key = normalise(spec.key)
    reasons = [reason(SchedulingCode.RESTRICTED_LABEL, key=key)] if is_restricted(key) else []
    asked: dict[str, str | list[str]] = {"key": key, "operator": spec.operator}
    if spec.values:
        asked["values"] = sorted(spec.values)[:MAX_VALUES_SHOWN]
    reasons += [
        reason(SchedulingCode.INVALID_REQUIREMENT, problem=problem.value, **asked) for problem in _problems(key, spec)
    ]
    return tuple(reasons)


def _problems(key: str, spec: RequirementSpec) -> Iterator[RequirementProblem]:
    if spec.operator not in OPERATORS:
        yield RequirementProblem.OPERATOR
    if not is_qualified_name(key):
        yield RequirementProblem.KEY
    if not all(is_label_value(value) for value in spec.values):
        yield RequirementProblem.VALUE
    if spec.operator == "In":
        if not spec.values:
            yield RequirementProblem.NO_VALUES
        if len(spec.values) < (spec.min_values or 0):
            yield RequirementProblem.TOO_FEW_VALUES
    if spec.operator in COMPARISONS:
        operand = parse_integer(spec.values[0]) if len(spec.values) == 1 else None
        if operand is None or operand < 0:
            yield RequirementProblem.OPERAND
        elif spec.operator == "Lt" and operand == 0:
            yield RequirementProblem.EMPTY_RANGE  # the reference would crash on it (S-12)
    if key == CAPACITY_TYPE and spec.operator == "In" and spec.values:
        known = CAPACITY_TYPES.intersection(spec.values)
        if not known:
            yield RequirementProblem.CAPACITY_TYPE
        elif len(known) < (spec.min_values or 0):
            yield RequirementProblem.TOO_FEW_CAPACITY_TYPES


def pod_refusals(shape: PodShape) -> tuple[Reason, ...]:
    """Why a pending pod is left out of the pass (S-42 a to c); empty if it is not. Its heaviest preference counts as a
    requirement here, even if the policy ignores preferences."""
    reasons: list[Reason] = []
    pool = requirements_of(shape).find(NODEPOOL)
    if pool is not None and pool.operator == "DoesNotExist":
        reasons.append(reason(SchedulingCode.OPTED_OUT, requirement=str(pool)))
    for key, value in sorted(shape.node_selector.items()):
        reasons += requirement_problems(RequirementSpec(key, "In", (value,)))
    for term in shape.required_terms:
        if term.fields:
            reasons.append(
                reason(SchedulingCode.MATCH_FIELDS, keys=sorted({expression.key for expression in term.fields}))
            )
        for expression in term.expressions:
            reasons += requirement_problems(RequirementSpec(expression.key, expression.operator, expression.values))
    return tuple(reasons)
