"""What one disruption method finds about one claim."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason


class Finding(Struct, frozen=True):
    """`due` is when the finding may change by itself (ms since the epoch, 0 for never). `told`: to be recorded although
    the claim stays."""

    method: str
    reason: Reason
    remove: bool = False
    due: int = 0
    told: bool = False


def keep(method: str, code: str, *, due: int = 0, **params: str | int | float | list[str]) -> Finding:
    return Finding(method, Reason(code, params), due=due)


def remove(method: str, code: str, **params: str | int | float | list[str]) -> Finding:
    return Finding(method, Reason(code, params), remove=True)
