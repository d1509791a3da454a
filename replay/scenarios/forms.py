"""Convert parts of a scenario into structs, or say which field has another form, and what is expected there."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from kerf.replay.scenarios.errors import ScenarioError

HINT = "See docs/plan.md, which describes the format"
_NAMES = {"float": "a number", "int": "an integer", "str": "a string", "bool": "true or false", "array": "a list",
          "object": "an object", "null": "null"}  # fmt: skip
_QUOTED = re.compile("`([^`]*)`")
T = TypeVar("T")


def converted(document: Any, form: type[T], where: str) -> T:
    """Return a part of a scenario as `form`. `where` is the part's field path.

    Raises ScenarioError (KERF840) with the path of the field that is wrong.
    """
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        problem, _, below = str(error).partition(" - at `$")
        raise ScenarioError(_told(problem), where=where + below.removesuffix("`"), hint=HINT) from error


def _told(problem: str) -> str:
    """Return msgspec's complaint with names of JSON's types ("expected a number >= 0.0")."""
    plain = _QUOTED.sub(lambda found: " or ".join(_NAMES.get(name, name) for name in found[1].split(" | ")), problem)
    return plain[:1].lower() + plain[1:]
