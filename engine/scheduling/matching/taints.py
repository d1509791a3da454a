"""Taints and tolerations (S-38), for nodes and devices."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kerf.engine.model.karpenter.requirements import parse_integer
from kerf.engine.model.kubernetes.pods import Taint, Toleration

_CANONICAL = re.compile(r"0|-?[1-9][0-9]*")
"""The integers that Lt and Gt compare, as Kubernetes writes them: "+5" and "007" are none."""

PREFER_NO_SCHEDULE = "PreferNoSchedule"
TOLERATES_PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)
"""What S-33 step 6 and S-81 add: it tolerates every PreferNoSchedule taint."""


def tolerates(taint: Taint, toleration: Toleration) -> bool:
    """Whether this toleration covers this taint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    have, bound = _integer(taint.value), _integer(toleration.value)
    if have is None or bound is None:
        return False
    if toleration.operator == "Lt":
        return have < bound
    return toleration.operator == "Gt" and have > bound


def _integer(text: str) -> int | None:
    return parse_integer(text) if _CANONICAL.fullmatch(text) else None


def untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> tuple[Taint, ...]:
    """The taints that no toleration covers, in their order. Every effect counts, also PreferNoSchedule."""
    return tuple([taint for taint in taints if not _tolerated(taint, tolerations)])


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    for toleration in tolerations:  # noqa: SIM110 (a generator would take twice as long in this hot loop)
        if tolerates(taint, toleration):
            return True
    return False


def tolerates_all(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    return not untolerated(taints, tolerations)


def taint_text(taint: Taint) -> str:
    """A taint as `key[=value]:effect`."""
    return f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"


def toleration_text(toleration: Toleration) -> str:
    """A toleration as `key[=value][:effect]`, as far as it names them."""
    value = f"={toleration.value}" if toleration.value else ""
    return f"{toleration.key}{value}{':' if toleration.effect else ''}{toleration.effect}"
