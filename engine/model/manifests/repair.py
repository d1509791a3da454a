"""Repairs a document whose types are wrong: reports each such field and replaces its value by a neutral one.

msgspec stops at the first value of a wrong type. Here that value is replaced by a neutral one of the right type (text
for a number, an empty list, …), and the document is decoded again. So the author sees all mistakes at once. A `null` is
no mistake: Kubernetes takes it for an absent field, and an entry of a map that is null for absent in custom resources,
and for the empty value in its own kinds. Nor is 2.0 where an integer belongs: kubectl sends 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import LARGEST_AMOUNT

_MOST = 100  # mistakes named per document
_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `\$(?P<path>[^`]*)`)?")
_BEYOND = re.compile(r"Expected `int` (?P<bound>[<>]= -?\d+) - at `\$(?P<path>[^`]+)`")
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
    if beyond is not None:
        holder, key, path = _locate(document, beyond["path"], "int")
        report.add("KERF309", path, f"Expected an integer {beyond['bound']}, got {holder[key]}")
        report.mended(path)
        holder[key] = 0
        return True
    match = _MISMATCH.fullmatch(message)
    if match is None or not match["path"]:
        report.add("KERF303", "", message)
        return False
    expected, got = match["expected"].split(" | "), match["got"]
    holder, key, path = _locate(document, match["path"], got)
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


def _locate(document: Any, path: str, got: str) -> tuple[Any, Any, str]:
    """Returns the container and key of the value at msgspec's `path` (without its `$`), and its Kubernetes field path.

    msgspec writes `[...]` for any key of a map. The first key with a value of the type `got` is taken.
    """
    holder, key, value, written = None, None, document, ""
    while path:
        holder = value
        step = _STEP.match(path)
        if step is None:
            rest = path[1:]
            key = max((k for k in holder if rest == k or rest.startswith((k + ".", k + "["))), key=len)
            written += f"[{key}]" if "/" in key else f".{key}"
            path = rest[len(key) :]
        elif step[1] == "...":
            key = next(k for k, v in holder.items() if _kind(v) == got)
            written, path = f"{written}[{key}]", path[step.end() :]
        else:
            key = int(step[1])
            written, path = f"{written}[{key}]", path[step.end() :]
        value = holder[key]
    return holder, key, written.removeprefix(".")


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
