"""Policies of IAM, and what they allow. Only what deploy/iam uses: statements that allow, with conditions.

IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements: Condition operators". A condition's keys must
all match; one of a key's values suffices; a key that the request does not have matches nothing, unless the operator
ends with IfExists or is ForAllValues.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from string import Template
from typing import Any

from msgspec import Struct

from tests.support.repository import ROOT

POLICIES = ROOT / "deploy" / "iam"


class Asked(Struct, frozen=True):
    """One authorization: an action on a resource. `context` has the condition keys of the request with their values, a
    tuple where a key has several."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]]

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} with {dict(self.context)}"


def load(name: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """A policy of deploy/iam, its variables replaced as `envsubst` does it."""
    policy: dict[str, Any] = json.loads(Template((POLICIES / name).read_text()).substitute(variables))
    return policy


def allows(policy: Mapping[str, Any], asked: Asked) -> bool:
    """Whether some statement allows it: what no statement allows is denied."""
    return any(_matches(statement, asked) for statement in policy["Statement"])


def narrowed(policy: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The policy with one action, one resource, or one of a condition's values taken away, and what that was."""
    for index, statement in enumerate(policy["Statement"]):
        for part in ("Action", "Resource"):
            for entry in statement[part]:
                rest = [other for other in statement[part] if other != entry]
                yield f"{statement['Sid']} without {part} {entry}", _with(policy, index, statement | {part: rest})
        for operator, keys in statement.get("Condition", {}).items():
            for key, values in keys.items():
                for value in values if isinstance(values, list) else ():
                    fewer = keys | {key: [other for other in values if other != value]}
                    less = statement | {"Condition": statement["Condition"] | {operator: fewer}}
                    yield f"{statement['Sid']} without {key} {value}", _with(policy, index, less)


def loosened(policy: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The policy with one condition taken away, and what that was."""
    for index, statement in enumerate(policy["Statement"]):
        for operator, keys in statement.get("Condition", {}).items():
            for key in keys:
                rest = {other: value for other, value in keys.items() if other != key}
                free = statement | {"Condition": statement["Condition"] | {operator: rest}}
                yield f"{statement['Sid']} without {operator} {key}", _with(policy, index, free)


def _with(policy: Mapping[str, Any], index: int, statement: dict[str, Any]) -> dict[str, Any]:
    others = policy["Statement"]
    return {**policy, "Statement": [*others[:index], statement, *others[index + 1 :]]}


def _matches(statement: Mapping[str, Any], asked: Asked) -> bool:
    assert statement["Effect"] == "Allow"
    return (
        any(_like(action.lower(), asked.action.lower()) for action in statement["Action"])
        and any(_like(resource, asked.resource) for resource in statement["Resource"])
        and all(
            _holds(operator, asked.context.get(key), values if isinstance(values, list) else [values])
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _holds(operator: str, given: str | tuple[str, ...] | None, wanted: list[str]) -> bool:
    for_all = operator.startswith("ForAllValues:")
    if given is None:
        return for_all or operator.endswith("IfExists")
    base = operator.removeprefix("ForAllValues:").removesuffix("IfExists")
    test = {"StringEquals": str.__eq__, "StringLike": _like}[base]
    if for_all:
        return all(any(test(pattern, value) for pattern in wanted) for value in given)
    assert isinstance(given, str), f"{operator} of several values"
    return any(test(pattern, given) for pattern in wanted)


def _like(pattern: str, value: str) -> bool:
    return _pattern(pattern).fullmatch(value) is not None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """`*` is any text, `?` any character."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
