"""A coded reason: what ruled something out, or why something was done.

Codes are a closed list per house; prose is rendered late.
"""

from __future__ import annotations

from msgspec import Struct


class Reason(Struct, frozen=True, omit_defaults=True):
    """`code` is stable; `params` hold the facts that its sentence needs."""

    code: str
    params: dict[str, str | int | float | list[str]] = {}
