"""AWS's service authorization reference: which resources and condition keys an action has (definitions.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.aws.iam.policy import Asked

GLOBAL = frozenset({"aws:RequestedRegion"})
"""IAM User Guide, "AWS global condition context keys": those that every request has."""
NOT_LISTED = frozenset({
    ("ec2:RunInstances", "spot-instances-request"), ("ec2:CreateTags", "spot-instances-request"),
    ("arc-zonal-shift:GetManagedResource", ""),
})  # fmt: skip
"""EC2 User Guide, "Tag Spot Instance requests", and ARC's "Zonal shift: EKS clusters": the reference does not list
them."""


@cache
def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "definitions.json").read_text())
    return found


def kind_of(resource: str) -> str:
    """`instance` of arn:aws:ec2:us-west-2:123456789012:instance/i-1; "" of `*`. A queue is its whole name."""
    if resource == "*":
        return ""
    service, rest = resource.split(":")[2], resource.split(":", 5)[5]
    return "queue" if service == "sqs" else rest.partition("/")[0]


def possible(action: str, kind: str) -> bool:
    """Whether an action can be asked for on such a resource at all."""
    return kind in definitions()["actions"].get(action, ()) or (action, kind) in NOT_LISTED


def granted(statement: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The actions that a statement allows, each with a kind of resource. A pair that AWS does not have grants nothing,
    and neither does one that never has a key that the condition asks for."""
    keys = [key for operator, keys in statement.get("Condition", {}).items() if "If" not in operator for key in keys]
    return {
        (action, kind)
        for action in statement["Action"]
        for kind in {kind_of(resource) for resource in statement["Resource"]}
        if possible(action, kind) and ((action, kind) in NOT_LISTED or all(_has(action, kind, key) for key in keys))
    }


def problems(asked: Asked) -> Iterator[str]:
    """What AWS would never ask its policies: the tests' own reading of a call is wrong then."""
    kinds, kind = definitions()["actions"].get(asked.action), kind_of(asked.resource)
    if kinds is None:
        yield f"{asked.action}: definitions.json does not have it (make_definitions.py)"
        return
    if not possible(asked.action, kind):
        yield f"{asked.action}: not on {kind or '*'}"
        return
    if (asked.action, kind) in NOT_LISTED:
        return
    if not kind and any(entry["required"] for entry in kinds.values()):
        yield f"{asked.action}: on a resource, not on *"
    for key in asked.context:
        if not _has(asked.action, kind, key):
            yield f"{asked.action} on {kind or '*'}: no condition key {key}"


def required(action: str) -> set[str]:
    """The kinds of resources that every call of an action names."""
    kinds = definitions()["actions"][action]
    return {kind for kind, entry in kinds.items() if entry["required"] and (action, "") not in NOT_LISTED}


def _has(action: str, kind: str, key: str) -> bool:
    """Whether a request for an action on a kind of resource has a condition key."""
    kinds = definitions()["actions"][action]
    resources = definitions()["resources"][action.partition(":")[0]]
    own = kinds.get(kind, {}).get("keys") or resources.get(kind, {}).get("keys", ())
    keys = {*own, *kinds.get("", {}).get("keys", ()), *GLOBAL}
    head, slash, _ = key.partition("/")
    return (f"{head}/${{TagKey}}" if slash else key) in keys
