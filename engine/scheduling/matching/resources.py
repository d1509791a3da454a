"""Arithmetic on resource amounts. Units as in `kerf.engine.model.kubernetes.pods.Resources`."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.kubernetes.pods import Resources


def fits(requests: Resources, total: Resources) -> bool:
    """Whether every request is at most what is there (missing counts as 0), and nothing in `total` is negative
    (S-75)."""
    for name, amount in requests.items():
        if amount > total.get(name, 0):
            return False
    return min(total.values(), default=0) >= 0


def lacking(requests: Resources, total: Resources) -> tuple[str, ...]:
    """The resources that `fits` says no to, sorted."""
    negative = {name for name, amount in total.items() if amount < 0}
    return tuple(sorted(negative | {name for name, amount in requests.items() if amount > total.get(name, 0)}))


def added(a: Resources, b: Resources, times: int = 1) -> Resources:
    """`a` plus `times` times `b`."""
    total = dict(a)
    for name, amount in b.items():
        total[name] = total.get(name, 0) + times * amount
    return total


def total(amounts: Iterable[Resources]) -> Resources:
    result: Resources = {}
    for resources in amounts:
        for name, amount in resources.items():
            result[name] = result.get(name, 0) + amount
    return result
