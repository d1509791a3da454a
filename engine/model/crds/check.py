"""Reports everything in a document that the API server would refuse.

A rule sees only values that have the right types and all required fields. Absent fields take their defaults, and `null`
counts as absent, as on the API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UnsetType

from kerf.engine.model.crds.schema import FieldPlace, FieldPlaces, Schema, below, compiled
from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.durations import parse_time
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import parse_quantity

_HEAD = ("apiVersion", "kind", "metadata", "status")
_LINE = 100
_BITS = {"int32": 31, "int64": 63, "": 63}
_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "number": "a number",
    "integer": "an integer",
    "quantity": "an integer or a string",
    "amount": "a number or a string",
}


def check(schema: Schema, value: Any, report: Report, path: str = "", *, strict: bool = False) -> None:
    """Reports what is wrong with a value at a path. `strict`: an unknown field is wrong too."""
    _check(schema, defaulted(schema, value), report, path, FieldPlaces(schema, path) if strict else None)


def check_document(schema: Schema, document: dict[str, Any], report: Report, *, strict: bool = False) -> None:
    """Checks an object as its author writes it. Ignores its status, because the API server drops that."""
    check(schema, {key: field for key, field in document.items() if key not in _HEAD}, report, strict=strict)


def defaulted(schema: Schema, value: Any) -> Any:
    """Returns a copy with defaults for absent fields and without nulls. Unknown fields stay as they are,
    however deep.
    """
    if schema is _ANYTHING:
        return value
    if isinstance(value, Mapping):
        found = {
            key: defaulted(_field(schema, key), part)
            for key, part in value.items()
            if part is not None or _field(schema, key) is _ANYTHING
        }
        for key, field in schema.properties.items():
            if key not in found and not isinstance(field.default, UnsetType):
                found[key] = defaulted(field, field.default)
        return found
    if isinstance(value, list) and schema.items is not None:
        return [defaulted(schema.items, part) for part in value]
    return value


_ANYTHING = Schema(type="")


def _field(schema: Schema, key: Any) -> Schema:
    return schema.properties.get(key) or schema.values or _ANYTHING


def _check(schema: Schema, value: Any, report: Report, path: str, places: FieldPlaces | None) -> bool:
    """Checks a value and returns whether rules may look at it: types are right, and required fields are there."""
    if not _has_type(schema, value):
        wanted = _TYPES[schema.type]
        report.add("KERF303", path, f"Expected {wanted}, got {_shown(value)}", _as_text(schema, value))
        return False
    sound = not report.is_mended(path)  # by repair
    if isinstance(value, dict):
        sound &= _check_object(schema, value, report, path, places)
    elif isinstance(value, list):
        sound &= _check_list(schema, value, report, path, places)
    elif isinstance(value, str):
        _check_text(schema, value, report, path)
    elif _is_number(value):
        _check_number(schema, value, report, path)
    if sound:
        for rule in schema.rules:
            for fault in rule.faults(value) if rule.faults is not None else ():
                report.add(fault.code, (path + fault.at).removeprefix("."), fault.message, fault.hint)
    return sound


def _as_text(schema: Schema, value: Any) -> str:
    """What to write for a number, true or false where a text belongs. In quotes it may be wrong still: expireAfter: 720
    lacks a unit."""
    if schema.type != "string" or not isinstance(value, int | float):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if schema.enum and text not in schema.enum:
        return f"Write {' or '.join(schema.enum)}"
    if schema.pattern and not compiled(schema.pattern).search(text):
        return schema.hint
    return f'Put it in quotes: "{text}"'


def _has_type(schema: Schema, value: Any) -> bool:
    match schema.type:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_integer(value)
        case "number":
            return _is_number(value)
        case "quantity":
            return isinstance(value, str) or _is_integer(value)
        case "amount":
            return isinstance(value, str) or _is_number(value)
        case _:
            return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _short(value: Any) -> str:
    """Cuts a text to the length of a line."""
    shown = repr(value)
    return shown if len(shown) <= _LINE else f"{shown[:_LINE]}…"


def _shown(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: f"the string {_short(value)}", type(None): "null"}
    return names.get(type(value)) or f"{str(value).lower() if isinstance(value, bool) else value}"


def _check_object(schema: Schema, value: dict[str, Any], report: Report, path: str, places: FieldPlaces | None) -> bool:
    sound = True
    for name in schema.required:
        if name not in value:
            sound = False
            hint = schema.properties[name].missing if name in schema.properties else ""
            report.add("KERF304", below(path, name), f"{name} is required", hint)
    if schema.max_properties is not None and len(value) > schema.max_properties:
        report.add("KERF309", path, f"At most {schema.max_properties} entries, not {len(value)}")
    for key, part in value.items():
        field = schema.properties.get(key)
        if field is not None:
            sound &= _check(field, part, report, below(path, key), places)
        elif schema.values is not None:
            sound &= _check(schema.values, part, report, f"{path}[{key}]", places)
        elif places is not None and not schema.open and schema.type:
            labels = "Write it into matchLabels" if "matchLabels" in schema.properties and isinstance(part, str) else ""
            hint = schema.later.get(key) or is_it(did_you_mean(key, schema.properties)) or labels
            hint = hint or _move_to(places.where(key), part)
            report.add("KERF320", below(path, key), f"There is no field {key}", hint)
    return sound


def _move_to(places: list[FieldPlace], value: Any) -> str:
    """The hint for a field in a wrong place, such as that of a wrong indentation, if there is one right place."""
    fitting = [place.path for place in places if _has_type(place.schema, value)]
    return f"Move it to {fitting[0]}" if len(fitting) == 1 else ""


def _check_list(schema: Schema, value: list[Any], report: Report, path: str, places: FieldPlaces | None) -> bool:
    name = path.rpartition(".")[2]
    if schema.min_items is not None and len(value) < schema.min_items:
        report.add("KERF304", path, f"{name} needs at least one entry", schema.missing)
    if schema.max_items is not None and len(value) > schema.max_items:
        report.add("KERF309", path, f"At most {schema.max_items} entries, not {len(value)}")
    sound = True
    if schema.items is not None:
        for index, part in enumerate(value):
            sound &= _check(schema.items, part, report, f"{path}[{index}]", places)
    if sound and schema.list_type in {"set", "map"}:
        for index, first in _repeated(schema, value):
            report.add("KERF321", f"{path}[{index}]", f"The same stands at {path}[{first}]")
    return sound


def _repeated(schema: Schema, value: list[Any]) -> Iterator[tuple[int, int]]:
    seen: dict[Any, int] = {}
    for index, part in enumerate(value):
        key = tuple(part.get(name) for name in schema.map_keys) if schema.list_type == "map" else part
        if seen.setdefault(key, index) != index:
            yield index, seen[key]


def _check_text(schema: Schema, value: str, report: Report, path: str) -> None:
    if schema.enum:
        report.one_of(path, value, schema.enum, schema.hint)
        return
    if schema.min_length is not None and len(value) < schema.min_length:
        report.add("KERF304", path, "The text may not be empty", schema.missing)
    if schema.max_length is not None and len(value) > schema.max_length:
        report.add(schema.code, path, f"At most {schema.max_length} characters, not {len(value)}")
    elif schema.pattern and not compiled(schema.pattern).search(value):
        if value:
            report.add(schema.code, path, f"{_short(value)} is not {schema.what}", schema.hint)
        else:
            report.add("KERF304", path, "The text may not be empty", schema.hint)
    elif schema.type == "amount" and not schema.pattern:
        report.attempt(path, parse_quantity, value, "", otherwise=0)
    if schema.format == "date-time":
        report.attempt(path, parse_time, value, otherwise=0)


def _check_number(schema: Schema, value: int | float, report: Report, path: str) -> None:
    if schema.type not in {"integer", "quantity"}:
        return
    bits = _BITS[schema.format]
    least = schema.minimum if schema.minimum is not None else -(1 << bits)
    most = schema.maximum if schema.maximum is not None else (1 << bits) - 1
    if least <= value <= most:
        return
    if schema.maximum is not None:
        report.add("KERF309", path, f"The value is {least} to {most}, not {value}")
    elif value < least:
        report.add("KERF309", path, f"The value is at least {least}, not {value}")
    else:
        report.add("KERF309", path, f"The value is at most {most}, not {value}")
