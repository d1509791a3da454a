"""The lines of a log that stand somewhere inside what a store of logs has exported: Datadog, Loki, OpenSearch,
Elasticsearch, Splunk, Azure Monitor, OpenTelemetry (F-2).

Nothing here knows one of these. A line is what looks like one, as text or as an object, wherever it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain
from typing import Any

from kerf.adapters.importers.audit.events import is_audit
from kerf.adapters.importers.files import MAX_BYTES
from kerf.adapters.importers.karpenter.lines import is_karpenters, log_line
from kerf.adapters.importers.untrusted import json_of, json_text, object_of, text_of, time_of
from kerf.adapters.importers.wrapped_lines import Line, in_order, peeled, time_of_number

_DEEPEST = 24  # levels of a document that are looked into
_TIMES = ("time", "timestamp", "@timestamp", "date", "_time", "TimeGenerated", "timeUnixNano", "observedTimeUnixNano")
_OF_OTEL = "kvlistValue"
_TYPED = ("stringValue", "boolValue", "doubleValue")


def embedded_lines(data: bytes) -> Iterator[Line]:
    """Yields the lines that are found: in a JSON document, in a table's cells, or in each line of the file. A line of
    the file with nothing inside is given as it is."""
    whole = json_of(data, MAX_BYTES)
    rows = [whole] if isinstance(whole, dict | list) else _rows(data)
    if rows is not None:
        found = chain.from_iterable(_found(number, row, None) for number, row in enumerate(rows, start=1))
        yield from in_order(list(found))
        return
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw.strip():
            inside = list(_found(number, json_of(raw), None))
            yield from inside or [Line(number, raw.decode(errors="replace").strip("\r\n "))]


def _rows(data: bytes) -> list[dict[str, Any]] | None:
    """The rows of a CSV file whose first line has the names of the columns; None for any other file."""
    header = data.split(b"\n", 1)[0]
    if b"," not in header or b"{" in header:
        return None
    try:
        return list(csv.DictReader(io.StringIO(data.decode(errors="replace"), newline="")))
    except csv.Error:
        return None


def _found(number: int, value: Any, at: int | None, depth: int = 0) -> Iterator[Line]:
    """The lines inside a value. `at` is the time that is noted around it."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _in_text(number, value, at)
    elif isinstance(value, list):
        at = next((at for item in value[:1] if (at := _instant(item)) is not None), at)  # Loki's [time, line]
        for item in value:
            yield from _found(number, item, at, depth + 1)
    elif isinstance(value, dict):
        at = next((at for key in _TIMES if (at := _instant(value.get(key))) is not None), at)
        yield from _in_object(number, value, at, depth)


def _in_object(number: int, value: dict[str, Any], at: int | None, depth: int) -> Iterator[Line]:
    if _OF_OTEL in value:
        value = _plain(value)
    joined = _joined(value)
    if _is_line(joined, at):
        yield Line(number, json_text(joined), at)
        return
    texts = (_in_text(number, text, at) for text in value.values() if isinstance(text, str))
    line = next(chain.from_iterable(texts), None)  # a store may have the line and a field made of it
    if line is not None:
        yield line
        return
    for inner in value.values():
        if isinstance(inner, dict | list):
            yield from _found(number, inner, at, depth + 1)


def _in_text(number: int, text: str, at: int | None) -> Iterator[Line]:
    if "{" in text:
        for line in peeled(Line(number, text.strip(), at)):
            fields = object_of(line.text)
            if fields is not None and _is_line(fields, line.at):
                yield line


def _is_line(fields: dict[str, Any], at: int | None) -> bool:
    line = log_line(Line(0, "", at), fields)
    return is_audit(fields) or (line is not None and is_karpenters(line))


def _joined(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line whose message and attributes stand apart, as Datadog has them, together."""
    attributes = fields.get("attributes")
    if not isinstance(attributes, dict) or not isinstance(fields.get("message"), str):
        return fields
    return {"level": text_of(fields.get("status")), **attributes, "message": fields["message"]}


def _plain(value: Any, depth: int = 0) -> Any:
    """OpenTelemetry's AnyValue as the value that it is."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    if "intValue" in value:
        return json_of(str(value["intValue"]))  # it is a number in text
    inner = value.get(_OF_OTEL, value.get("arrayValue"))
    values = inner.get("values") if isinstance(inner, dict) else None
    items = [item for item in values if isinstance(item, dict)] if isinstance(values, list) else []
    if _OF_OTEL in value:
        return {text_of(pair.get("key")): _plain(pair.get("value"), depth + 1) for pair in items}
    if "arrayValue" in value:
        return [_plain(item, depth + 1) for item in items]
    return next((value[key] for key in _TYPED if key in value), None)


def _instant(value: object) -> int | None:
    """A time as text, or in ms or ns since 1970."""
    at = time_of(value)
    return at if at is not None else time_of_number(value)
