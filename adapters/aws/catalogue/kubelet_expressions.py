"""Expressions in spec.kubelet, with the gate NodeClassCEL: what each becomes on one instance type (A-52, A-94)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.cel.evaluation import Function, Value, evaluate
from kerf.engine.model.cel.syntax import CelNode, parse
from kerf.engine.model.crds.kubelet import RESERVED, expressions_of

MOST_PODS = 2**31 - 1
_STEPS = {"cpu": ("m", 10), "memory": ("Mi", 16), "ephemeral-storage": ("Gi", 1)}
"""By resource: the unit of the result, and the multiple to which it is rounded up."""
_parsed: Callable[[str], CelNode] = lru_cache(maxsize=256)(parse)


def settled_kubelet(
    kubelet: Mapping[str, Any], facts: InstanceTypeFacts, pods: Callable[[int | None], int]
) -> dict[str, Any]:
    """A kubelet with a number in place of each expression. `pods` says how many pods the type takes, with a maxPods or
    by its family. A reservation that has no value, or a negative one, is left out. Raises CelError for a maxPods
    without one."""
    settled = dict(kubelet)
    limit = kubelet.get("maxPods")
    if isinstance(limit, str):
        settled["maxPods"] = limit = _max_pods(limit, facts, pods(None))
    count = pods(limit)
    for field, key in expressions_of({name: kubelet.get(name, {}) for name in RESERVED}):
        reserved = {name: value for name, value in settled[field].items() if name != key}
        with suppress(CelError):
            reserved[key] = reserved_text(key, kubelet[field][key], facts, count)
        settled[field] = reserved
    return settled


def evaluation_problem(kubelet: Mapping[str, Any], facts: InstanceTypeFacts, pods: Callable[[int | None], int]) -> str:
    """What keeps an expression from having a value on a type; "" if each has one (A-129)."""
    try:
        settled = settled_kubelet(kubelet, facts, pods)
        for field, key in expressions_of({name: kubelet.get(name, {}) for name in RESERVED}):
            reserved_text(key, kubelet[field][key], facts, pods(settled.get("maxPods")))
    except CelError as error:
        return f"on {facts.name}: {error.message}"
    return ""


def reserved_text(resource: str, expression: str, facts: InstanceTypeFacts, pods: int) -> str:
    """A reservation as a quantity, such as 576Mi. Raises CelError."""
    unit, step = _STEPS.get(resource, ("", 1))
    amount = _whole(expression, facts, pods)
    if amount < 0:
        raise CelError(f"{expression} is less than nothing")
    return f"{-(-amount // step) * step}{unit}"


def _max_pods(expression: str, facts: InstanceTypeFacts, default: int) -> int:
    count = _whole(expression, facts, default)
    if not 0 <= count <= MOST_PODS:
        raise CelError(f"{expression} is {count}, and maxPods is from 0 to {MOST_PODS}")
    return count


def _whole(expression: str, facts: InstanceTypeFacts, pods: int) -> int:
    """The value of an expression on a type; doubles lose their fraction."""
    scope: dict[str, Value] = {
        "vcpus": facts.vcpus,
        "memory_mib": facts.memory,
        "default_enis": facts.cards[facts.card] if facts.card < len(facts.cards) else 0,
        "ips_per_eni": facts.ipv4_per_interface,
        "max_pods": pods,
        "instance_type": facts.name,
        "max": Function(lambda a, b: _chosen(max, a, b), 2),
        "min": Function(lambda a, b: _chosen(min, a, b), 2),
    }
    found = evaluate(_parsed(expression), scope)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise CelError(f"{expression} is no number")
    if not math.isfinite(found):
        raise CelError(f"{expression} has no finite value")
    return int(found)


def _chosen(choose: Callable[..., Any], a: Value, b: Value) -> Value:
    for value in (a, b):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CelError("max and min are about two numbers")
    return choose(a, b)
