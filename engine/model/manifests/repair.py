"""Repairs a document whose types are wrong: reports each such field and replaces its value by a neutral one.

msgspec stops at the first value of a wrong type. Here that value is replaced by a neutral one of the right type (text
for a number, an empty list, …), and the document is decoded again. So the author sees all mistakes at once. A `null` is
no mistake: Kubernetes takes it for an absent field, and an entry of a map that is null for absent in custom resources,
and for the empty value in its own kinds. Nor is 2.0 where an integer belongs: kubectl sends 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import LARGEST_AMOUNT

_MOST = 100  # mistakes named per document
_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `\$(?P<path>[^`]*)`)?")
_BEYOND = re.compile(r"Expected `int` (?P<bound>(?P<side>[<>])= (?P<limit>-?\d+)) - at `\$(?P<path>[^`]+)`")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]")
_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_NEUTRAL: dict[str, Callable[[], Any]] = {
    "str": str, "int": int, "float": float, "bool": bool, "array": list, "object": dict,
}  # fmt: skip


def repair(document: Any, wire: type[Struct], report: Report) -> bytes | None:
    """Returns JSON that decodes as `wire`, after reporting and replacing every value of a wrong type. Changes
    `document`.

    Returns None if there are more mistakes than can be reported.
    """
    for _ in range(_MOST):
        try:
            return msgspec.json.encode(_as_written(document, msgspec.to_builtins(msgspec.convert(document, wire))))
        except msgspec.ValidationError as error:
            if not _mend(document, str(error), report):
                return None
    return None


def _as_written(document: Any, decoded: Any) -> Any:
    """What was decoded, without the defaults of fields that the author left out: those are no mistakes of theirs."""
    if isinstance(document, dict) and isinstance(decoded, dict):
        return {key: _as_written(document[key], value) for key, value in decoded.items() if key in document}
    if isinstance(document, list) and isinstance(decoded, list):
        return [_as_written(*pair) for pair in zip(document, decoded, strict=True)]
    return decoded


def _mend(document: Any, message: str, report: Report) -> bool:
    """Reports msgspec's complaint and puts a neutral value in its place. Returns False if there is nothing to put
    there.
    """
    beyond = _BEYOND.fullmatch(message)
    match = beyond or _MISMATCH.fullmatch(message)
    found = _locate(document, match["path"], _wrong(match)) if match is not None and match["path"] else None
    if match is None or found is None:
        report.add("KERF303", "", message)
        return False
    holder, key, path = found
    if beyond is not None:
        report.add("KERF309", path, f"Expected an integer {beyond['bound']}, got {holder[key]}")
        report.mended(path)
        holder[key] = 0
        return True
    expected, got = match["expected"].split(" | "), match["got"]
    value = holder[key]
    if got == "float" and "int" in expected and value.is_integer() and abs(value) < LARGEST_AMOUNT:
        holder[key] = int(value)
        return True
    if got == "null" and isinstance(holder, dict) and (_is_custom(document) or not path.endswith("]")):
        del holder[key]
        return True
    if got != "null" or isinstance(holder, list):
        report.add("KERF303", path, _complaint(expected, got, value), _hint(expected, value))
    if "str" in expected and isinstance(value, (int, float)):
        holder[key] = _text(value)
        return True
    report.mended(path)
    holder[key] = _NEUTRAL[expected[0]]()
    return True


def _is_custom(document: Any) -> bool:
    """Returns whether it is a custom resource: Kubernetes' own groups have no dot, or are of k8s.io."""
    group = str(document.get("apiVersion")).rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def _wrong(match: re.Match[str]) -> Callable[[Any], bool]:
    """Returns whether a value is one that msgspec complains of."""
    if match.re is _MISMATCH:
        return lambda value: _kind(value) == match["got"]
    limit = int(match["limit"])
    if match["side"] == "<":
        return lambda value: _kind(value) == "int" and value > limit
    return lambda value: _kind(value) == "int" and value < limit


def _locate(value: Any, path: str, is_wrong: Callable[[Any], bool]) -> tuple[Any, Any, str] | None:
    """Returns the container and key of the wrong value at msgspec's `path` (without its `$`), and its Kubernetes field
    path; None if there is none.

    msgspec writes `[...]` for any key of a map. The first key that leads to a wrong value is taken.
    """
    for key, written, rest in _steps(value, path):
        if not rest and is_wrong(value[key]):
            return value, key, written.removeprefix(".")
        found = _locate(value[key], rest, is_wrong) if rest else None
        if found is not None:
            holder, last, within = found
            return holder, last, (written if within.startswith("[") else f"{written}.").removeprefix(".") + within
    return None


def _steps(holder: Any, path: str) -> list[tuple[Any, str, str]]:
    """Returns where the first step of `path` may lead: the key or index in `holder`, how it is written, and the rest of
    the path."""
    step = _STEP.match(path)
    if step is None:
        names = [key for key in _keys(holder) if path[1:] == key or path[1:].startswith((key + ".", key + "["))]
        longest = sorted(names, key=len)[-1:]
        return [(key, f"[{key}]" if "/" in key else f".{key}", path[1 + len(key) :]) for key in longest]
    wanted = None if step[1] == "..." else int(step[1])
    return [(key, f"[{key}]", path[step.end() :]) for key in _keys(holder) if wanted in (None, key)]


def _keys(holder: Any) -> Iterable[Any]:
    """Returns the keys or indexes of a container; none of anything else, which stands beside the way to the value."""
    if isinstance(holder, dict):
        return holder
    return range(len(holder)) if isinstance(holder, list) else ()


def _kind(value: Any) -> str:
    """Returns msgspec's name for the type of a JSON value."""
    names = {dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _complaint(expected: list[str], got: str, value: Any) -> str:
    wanted = " or ".join(_NAMES[name] for name in expected if name != "null")
    if isinstance(value, bool):
        return f"Expected {wanted}, got {_text(value)}"
    shown = f" {_text(value)}" if isinstance(value, (int, float)) else ""
    return f"Expected {wanted}, got {_NAMES[got]}{shown}"


def _hint(expected: list[str], value: Any) -> str:
    if expected[0] == "str" and isinstance(value, (int, float)):
        return f'Put it in quotes: "{_text(value)}"'
    return ""


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
