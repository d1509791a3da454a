"""SimKube's traces: objects as they were applied and deleted, and how long pods of their owners lived (F-32…F-54)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median_low
from typing import Any

import msgspec
from msgspec import structs

from kerf.adapters.importers.errors import Unreadable
from kerf.adapters.importers.history import Applied, History
from kerf.adapters.importers.untrusted import text_of
from kerf.adapters.importers.workloads import Workloads, key_of_document
from kerf.engine.model.missing_knowledge import OF_HISTORIES, Missing
from kerf.engine.record.codec import LAST_MOMENT

SOURCE = "simkube"
LACKS = tuple(missing for missing in OF_HISTORIES if missing is not Missing.BEGINNING)
"""What a trace does not tell (F-54). The objects at its beginning are there."""
_VERSION = 2
_OLDEST = 4  # parts of a trace up to 1.1.1, which is a list (F-43)
_SHOWN = 3
_BARE_PODS = ("v1.Pod", "/v1.Pod")
"""How traces spell the kind of pods without an owner (F-33)."""


def is_simkube(data: bytes) -> bool:
    """Whether the file begins as a trace of either version does."""
    fix_map, fix_array = data[:1] and data[0] & 0xF0 == 0x80, data[:1] and data[0] & 0xF0 == 0x90
    return bool(fix_map and b"version" in data[:64]) or bool(fix_array and b"trackedObjects" in data[:64])


def read_trace(data: bytes, where: str) -> History:
    """The history that a trace tells. Raises Unreadable (KERF361)."""
    events, index, lives = _parts(data, where)
    history = History(SOURCE, LACKS)
    told = _Trace(history)
    for number, event in enumerate(sorted(events, key=_second), start=1):
        told.take(event, number)
    told.lives(lives)
    told.missing(index)
    history.told.sort(key=lambda turn: turn.at)
    return history


def _parts(data: bytes, where: str) -> tuple[list[dict[str, Any]], Any, Any]:
    """Events, index and lives of a trace."""
    try:
        trace = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, TypeError) as error:
        raise Unreadable(f"the SimKube trace is damaged: {error}", where=where, hint="Export it again") from error
    if isinstance(trace, list) and len(trace) == _OLDEST:
        _, events, index, lives = trace
    elif isinstance(trace, dict) and trace.get("version") == _VERSION:
        events, index, lives = trace.get("events"), trace.get("index"), trace.get("pod_lifecycles")
    else:
        version = trace.get("version") if isinstance(trace, dict) else "unknown"
        hint = "kerf reads those of SimKube up to 1.1.1, and version 2"
        raise Unreadable(f"this is a SimKube trace of version {version!r}", where=where, hint=hint)
    found = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    return found, index, lives


def _second(event: dict[str, Any]) -> int:
    return _moment(event.get("ts")) or 0


def _moment(seconds: object) -> int | None:
    """Unix seconds in ms; None for what is no time that a record can keep."""
    if type(seconds) is not int or not 0 < seconds <= LAST_MOMENT // 1000:
        return None
    return seconds * 1000


class _Trace:
    def __init__(self, history: History) -> None:
        self._history = history
        self._workloads = Workloads(history, SOURCE)
        self._met: set[str] = set()

    def take(self, event: dict[str, Any], number: int) -> None:
        """Within a second objects are applied first, then deleted (F-51); their order in the first event is random
        (F-52)."""
        at = _moment(event.get("ts"))
        if at is None:
            self._history.not_read(number, "an event has no time", repr(event)[:200])
            return
        applied, deleted = _documents(event.get("applied_objs")), _documents(event.get("deleted_objs"))
        twice = {_gvk(document) for document in applied} & {_gvk(document) for document in deleted}
        for document in sorted(applied, key=_gvk) if number == 1 else applied:
            self._met.add(_gvk(document)[1])
            self._workloads.apply(at, document, number)
        for document in deleted:
            api, name = _gvk(document)
            if (api, name) in twice:
                self._workloads.say(at, f"{name} was applied and deleted within a second: taken as gone", "warning")
            if not self._workloads.remove(at, api, name):
                self._workloads.say(at, f"{text_of(document.get('kind'))} {name} is gone", "debug")

    def lives(self, lives: Any) -> None:
        """How long pods lived. A life belongs to an owner, and to no pod with a name (F-53), but for bare pods."""
        took: dict[tuple[str, str], list[int]] = {}
        for owner, name, state in sorted(_lives(lives), key=repr):
            start, end = _bounds(state)
            if start is None:
                continue
            who = f"pod {name}" if owner in _BARE_PODS else f"a pod of {name}"
            self._workloads.say(start, f"{who} begins to run")
            self._history.read += 1
            if end is not None:
                took.setdefault((owner, name), []).append(end - start)
                self._workloads.say(end, f"{who} ends, after {(end - start) // 1000} s")
        self._history.applied = [_with_length(applied, took) for applied in self._history.applied]

    def missing(self, index: Any) -> None:
        """Objects that were exported and no event shows: equal names of two kinds hide one another (F-52)."""
        known = set(_names(index))
        hidden = sorted(known - self._met)
        if hidden and self._history.told:
            more = f" and {len(hidden) - _SHOWN} more" if len(hidden) > _SHOWN else ""
            text = f"the trace's index has objects that no event shows: {', '.join(hidden[:_SHOWN])}{more}"
            self._workloads.say(self._history.told[0].at, text, "warning")


def _with_length(applied: Applied, took: dict[tuple[str, str], list[int]]) -> Applied:
    """What was applied, with the usual length of its pods' lives. Version 1 does not tell the kind of an owner."""
    kind, name = _gvk(applied.document)
    group, _, word = kind.rpartition("/")
    lives = next(
        (took[owner, name] for owner in (f"{group}.{word}", f"/{group}.{word}", "") if (owner, name) in took), []
    )
    return structs.replace(applied, runs=median_low(lives)) if lives else applied


def _documents(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _gvk(document: dict[str, Any]) -> tuple[str, str]:
    return f"{text_of(document.get('apiVersion'))}/{text_of(document.get('kind'))}", key_of_document(document)


def _lives(lives: Any) -> Iterator[tuple[str, str, Any]]:
    """Owner's kind ("" in version 1), its name, and one life."""
    for key, by_hash in lives.items() if isinstance(lives, dict) else ():
        owner, name = key if isinstance(key, tuple) and len(key) == 2 else ("", key)
        if not isinstance(name, str) or not isinstance(by_hash, dict):
            continue
        for states in by_hash.values():
            for state in states if isinstance(states, list) else ():
                yield str(owner), name, state


def _bounds(state: Any) -> tuple[int | None, int | None]:
    """When a life began and ended, in ms (F-40)."""
    if not isinstance(state, dict):
        return None, None
    finished = state.get("Finished")
    if isinstance(finished, list) and len(finished) == 2:
        start, end = _moment(finished[0]), _moment(finished[1])
        return (start, end) if start is not None and end is not None and end >= start else (start, None)
    return _moment(state.get("Running")), None


def _names(index: Any) -> Iterator[str]:
    """The names in the index: by kind in version 2, alone in version 1."""
    for key, value in index.items() if isinstance(index, dict) else ():
        if isinstance(value, dict):
            yield from (name for name in value if isinstance(name, str))
        elif isinstance(key, str):
            yield key
