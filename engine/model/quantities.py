"""Kubernetes quantities as exact integers: `cpu` in milli-CPU, every other resource in base units.

As in the API server's Value and MilliValue, a fraction is rounded away from zero, and an amount above 2^63 - 1 units
counts as that.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kerf.engine.errors import InputError

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_RESOURCES = ("memory", "ephemeral-storage")
LARGEST_AMOUNT = (1 << 63) - 1
"""The largest amount, in the units of `parse_quantity`: a record keeps integers of 64 bits."""
_LONGEST = 100  # characters; a longer text is no amount that anybody meant, and costs time to read
_EXPONENT_BOUND = 2 * _LONGEST  # beyond it every mantissa of _LONGEST digits is capped, or less than one unit


def parse_quantity(text: str | int | float, resource: str) -> int:
    """Returns the amount as an integer: milli-CPU for `cpu`, base units (bytes, devices, pods) for all others.

    Raises `InputError` KERF306 if the text is not a quantity. Accepts negative amounts; callers may refuse them.
    """
    if isinstance(text, str):
        return _parse(text, resource == "cpu")
    if isinstance(text, bool):
        raise _refusal(str(text))
    # A JSON number is read by its text, as Kubernetes does; repr gives the shortest text of the same number.
    return _parse(repr(text), resource == "cpu")


@lru_cache(maxsize=65_536)
def _parse(text: str, milli: bool) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise _refusal(text)
    whole, part = match["whole"] or "", match["part"] or match["bare"] or ""
    mantissa, suffix = int(whole + part), match["suffix"] or ""
    exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL.get(suffix, 0)
    exponent = max(-_EXPONENT_BOUND, min(_EXPONENT_BOUND, exponent)) - len(part)
    scale = 1000 if milli else 1
    numerator = (mantissa << _BINARY.get(suffix, 0)) * scale * int(10 ** max(0, exponent))
    denominator = int(10 ** max(0, -exponent))
    amount = min(-(-numerator // denominator), LARGEST_AMOUNT)
    return -amount if match["sign"] == "-" else amount


def _refusal(text: str) -> InputError:
    return InputError(
        f"{text[:_LONGEST]!r} is not a quantity",
        code="KERF306",
        hint='Write a number with an optional suffix, such as "500m", "2", "1.5Gi" or "1e3"',
    )


@lru_cache(maxsize=65_536)
def format_quantity(amount: int, resource: str) -> str:
    """Returns Kubernetes' canonical text of an amount in `parse_quantity`'s units: with the largest suffix that is
    exact.

    Memory, ephemeral storage and hugepages take binary suffixes (from 1024 on), everything else decimal ones.
    """
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else _decimal(amount // 1000)
    if resource in _BINARY_RESOURCES or resource.startswith("hugepages-"):
        return _binary(amount)
    return _decimal(amount)


def _decimal(amount: int) -> str:
    suffix = ""
    for larger in "kMGTPE":
        if amount == 0 or amount % 1000:
            break
        amount, suffix = amount // 1000, larger
    return f"{amount}{suffix}"


def _binary(amount: int) -> str:
    if -1024 < amount < 1024:
        return _decimal(amount)
    suffix = ""
    for larger in _BINARY:
        if amount % 1024:
            break
        amount, suffix = amount // 1024, larger
    return f"{amount}{suffix}"
