"""The lines of a log, without what collectors have wrapped them in (F-2)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kerf.adapters.importers.files import MAX_BYTES
from kerf.adapters.importers.untrusted import json_of, json_text, object_of, text_of, time_of, whole_number
from kerf.engine.record.codec import LAST_MOMENT

_CRI = re.compile(r"(\S{20,40}) (stdout|stderr) ([FP]) ?(.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\S+")
_END_OF_OBJECT = re.compile(rb"(?m)^\}\r?$")
_DEEPEST = 4  # wrappers around one line
_OBJECT = re.compile(r'\{\s*"')
"""How a JSON object begins, and no set of labels (`{app="karpenter"}`, as logcli writes them before a line)."""
_BEGIN = re.compile(r'\{\s*"(?:level|time|message|kind)"')
"""How a line of Karpenter's log, or of an audit log, begins."""
_LONGEST_PREFIX = 300  # characters before the JSON that `kubectl logs --timestamps` or stern writes
_LONGEST_REST = 300  # characters after the JSON: a table's next column, a quotation mark
_MOST_PARTS = 60  # lines over which one object is spread
_MESSAGE = "@message"
"""The column of CloudWatch Logs Insights that holds the line."""
_LONGEST_HEADER = 4_000  # bytes of a table's first line
_DIGITS_OF_MS = 13
_IMAGE_VERSION = re.compile(r":v?(\d+\.\d+\.\d+)\b")


class Line(Struct, frozen=True):
    """One line: its number in the file, from 1, and its text. `at` is the time that a collector noted, None without;
    `version` that of the image that wrote it.
    """

    number: int
    text: str
    at: int | None = None
    version: str = ""


def lines_of(data: bytes) -> Iterator[Line]:
    """Yields the lines in the order of the file; of a Grafana export, which is newest first, from its end."""
    whole = _document(data)
    whole = whole if whole is not None else _table(data)
    whole = whole if whole is not None else _indented(data)
    if whole is not None:
        yield from whole
        return
    parts: dict[str, str] = {}  # of a CRI line that is not complete yet, by stream
    for number, text in _unbroken(data):
        cri = _CRI.fullmatch(text)
        if cri is not None:
            stream, joined = cri[2], parts.pop(cri[2], "") + cri[4]
            if cri[3] == "P":
                parts[stream] = joined
                continue
            yield from peeled(Line(number, joined, time_of(cri[1])))
        elif text:
            yield from peeled(Line(number, text))


def _unbroken(data: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1. An object that a terminal or a page has broken into several lines
    is one line again, and has the number of its first."""
    broken: list[tuple[int, str]] = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = raw.decode(errors="replace").rstrip("\r\n")
        if broken and (len(broken) >= _MOST_PARTS or _BEGIN.search(text, 0, _LONGEST_PREFIX)):
            yield from _as_they_are(broken)  # another one begins: the rest is not there
            broken = []
        if not broken and not _breaks_off(text):
            yield number, text.strip()
            continue
        broken.append((number, text))
        if text.rstrip().endswith("}") and _is_whole(joined := "".join(part for _, part in broken)):
            yield broken[0][0], joined.strip()
            broken = []
    yield from _as_they_are(broken)


def _breaks_off(text: str) -> bool:
    """Whether a log line begins in the text and does not end there. containerd says itself which lines go on."""
    begins = not text.rstrip().endswith("}") and _BEGIN.search(text, 0, _LONGEST_PREFIX) is not None
    return begins and not _is_whole(text) and _CRI.fullmatch(text) is None


def _as_they_are(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    return ((number, text.strip()) for number, text in lines)


def _is_whole(text: str) -> bool:
    """Whether a JSON object stands in the text, with what may be before and after it."""
    begins = _OBJECT.search(text, 0, _LONGEST_PREFIX)
    return begins is not None and object_of(_without_rest(text[begins.start() :])) is not None


def _document(data: bytes) -> list[Line] | None:
    """The lines of a file that is one JSON document; None for a file of lines."""
    start = data.lstrip()[:1]
    if start not in (b"[", b"{") or object_of(data.lstrip().split(b"\n", 1)[0]) is not None:
        return None
    document = json_of(data, MAX_BYTES)
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        document = document["items"]  # a webhook's batch of the audit log
    if isinstance(document, list):
        lines = [line for number, item in enumerate(document, start=1) for line in _exported(number, item)]
        return in_order(lines)
    return list(_batched(1, document)) if isinstance(document, dict) and _EVENTS & document.keys() else None


def _table(data: bytes) -> list[Line] | None:
    """The lines of a CloudWatch Logs Insights result as CSV, whose columns have names; None for any other file."""
    header = data[:_LONGEST_HEADER].split(b"\n", 1)[0].decode(errors="replace")
    if _MESSAGE not in header or "{" in header:
        return None
    rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig", errors="replace"), newline=""))
    try:
        items = list(enumerate(rows, start=2))
    except csv.Error:
        return None
    return in_order([line for number, row in items for line in _exported(number, row)])


def _indented(data: bytes) -> list[Line] | None:
    """The lines of a log that went through `jq .`: objects one after the other, indented; None for any other file."""
    if data.lstrip().split(b"\n", 1)[0].strip() != b"{":
        return None
    texts = [text + b"}" for text in _END_OF_OBJECT.split(data) if text.strip()]
    return [line for number, text in enumerate(texts, start=1) for line in _exported(number, json_of(text))]


def in_order(lines: list[Line]) -> list[Line]:
    """The lines from the oldest on. Grafana and Insights export the newest first."""
    newest_first = len(lines) > 1 and (lines[0].at or 0) > (lines[-1].at or 0)
    return lines[::-1] if newest_first else lines


def _exported(number: int, item: Any) -> Iterator[Line]:
    """One item of a list: Grafana's, a collector's, or a result of CloudWatch Logs Insights."""
    if not isinstance(item, dict):
        yield Line(number, "")
        return
    text = next((item[key] for key in ("line", "message", "log", _MESSAGE) if isinstance(item.get(key), str)), "")
    if "{" not in text:  # the items are the lines themselves
        text = json_text(item)
    fields = item.get("fields")
    image = _IMAGE_VERSION.search(text_of(fields.get("container_image"))) if isinstance(fields, dict) else None
    at = (
        time_of(item.get("date"))
        or time_of_number(item.get("timestamp"))
        or time_of(item.get("time"))
        or _of_insights(item)
    )
    yield from peeled(Line(number, text, at, image[1] if image else ""))


def _of_insights(item: dict[str, Any]) -> int | None:
    """The time of a result: UTC, as "2026-03-02 11:30:00.100", or in ms."""
    text = text_of(item.get("@timestamp"))
    return time_of(text.replace(" ", "T", 1) + "Z") if " " in text else _of_ms(text)


def _of_ms(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) == _DIGITS_OF_MS else time_of(text)


_EVENTS = {"events", "logEvents"}


def _batched(number: int, batch: dict[str, Any]) -> Iterator[Line]:
    """The events of a CloudWatch answer or subscription record."""
    events = batch.get("events", batch.get("logEvents"))
    for offset, event in enumerate(events if isinstance(events, list) else ()):
        if isinstance(event, dict):
            yield from peeled(
                Line(number + offset, text_of(event.get("message")), time_of_number(event.get("timestamp")))
            )


def time_of_number(value: object) -> int | None:
    """A time in ns as text (Grafana), or in ms (CloudWatch)."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value) // 1_000_000
    at = whole_number(value)
    return at if 0 < at <= LAST_MOMENT else None


def peeled(line: Line, depth: int = 0) -> Iterator[Line]:
    """The line within its wrappers."""
    text = line.text
    if depth >= _DEEPEST:
        yield line
        return
    begins = _OBJECT.search(text, 0, _LONGEST_PREFIX)
    if begins is not None and begins.start():
        stamp = _TIME.match(text)
        at = time_of(stamp[0]) if stamp else None
        yield from peeled(Line(line.number, text[begins.start() :], at or line.at, line.version), depth + 1)
        return
    text = _without_rest(text)
    fields = object_of(text) if any(word in text for word in _WRAPPING) else None
    if fields is not None and isinstance(fields.get("logEvents"), list):
        yield from _batched(line.number, fields)
        return
    inner = _inner(fields) if fields is not None else ""
    if fields is None or not inner:
        yield line if text == line.text else Line(line.number, text, line.at, line.version)
        return
    at = next((at for key in _TIMES if (at := time_of(fields.get(key))) is not None), line.at)
    yield from peeled(Line(line.number, inner, at, line.version), depth + 1)


def _without_rest(text: str) -> str:
    """The object that a text begins with, without what stands after it; the text as it is if there is none."""
    end = text.rfind("}") + 1
    short = text.startswith("{") and end < len(text) <= end + _LONGEST_REST
    return text[:end] if short and object_of(text[:end]) is not None else text


_TEXTS = ("message", "line", "MESSAGE")
"""What a collector, logcli and journald call the line."""
_WRAPPING = ('"log', '"jsonPayload"', '"_source"', *(f'"{key}":{gap}"{{' for key in _TEXTS for gap in ("", " ")))
"""What stands in a line that a collector has wrapped another one in."""
_TIMES = ("time", "timestamp", "@timestamp")


def _inner(fields: dict[str, Any]) -> str:
    """The line in a collector's object: as text in `log` or one of _TEXTS, or as an object; "" if there is none."""
    for key in ("jsonPayload", "log_processed", "_source"):
        if isinstance(fields.get(key), dict):
            return json_text(fields[key])
    log = text_of(fields.get("log")).strip()
    if log and "message" not in fields:
        return log
    texts = (text_of(fields.get(key)).strip() for key in _TEXTS)
    return next((text for text in texts if text.startswith("{")), "")
