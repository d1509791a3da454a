"""kubereplay's capture: Deployments and Jobs of a cluster, with sanitised names (F-6…F-31)."""

from __future__ import annotations

import re
from typing import Any

from kerf.adapters.importers.files import MAX_BYTES
from kerf.adapters.importers.history import Applied, History
from kerf.adapters.importers.untrusted import json_of, text_of, time_of, whole_number
from kerf.adapters.importers.workloads import Document, Workloads, dangling_terms, rounds_of, wanted_of
from kerf.engine.model.durations import format_duration
from kerf.engine.model.missing_knowledge import OF_HISTORIES

SOURCE = "kubereplay"
LACKS = OF_HISTORIES
"""What a capture does not tell (F-30): everything but the workloads that were touched."""
_RANKS = ("create", "scale", "delete")
_FRACTION = re.compile(r"\.(\d{1,9})")
_API = {"Deployment": "apps/v1", "Job": "batch/v1"}
_DEPLOYMENT = "apps/v1/Deployment"


def capture_of(data: bytes) -> dict[str, Any] | None:
    """The capture; None for any other file (F-6 to F-8)."""
    if not data.lstrip().startswith(b"{") or b'"captured"' not in data:
        return None
    document = json_of(data, MAX_BYTES)
    known = isinstance(document, dict) and isinstance(document.get("events"), list) and "cluster" in document
    return document if known else None


def read_capture(capture: dict[str, Any]) -> History:
    """The history that a capture tells, in order of time: equal times create, scale, delete (F-26)."""
    history = History(SOURCE, LACKS)
    events = []
    for number, event in enumerate(capture["events"], start=1):
        at = time_of(event.get("timestamp")) if isinstance(event, dict) else None
        known = isinstance(event, dict) and text_of(event.get("type")) in _RANKS and text_of(event.get("kind")) in _API
        if at is None or not known or not text_of(event.get("key")):
            history.not_read(number, "it is no create, scale or delete of a Deployment or Job", repr(event)[:200])
            continue
        events.append((_nanoseconds(at, event), _RANKS.index(event["type"]), number, event))
    told = _Capture(history)
    for order, _, number, event in sorted(events, key=lambda known: known[:3]):
        told.take(order // 1_000_000, event, number)
    history.until = time_of(capture.get("captured")) or 0
    return history


def _nanoseconds(at: int, event: Document) -> int:
    fraction = _FRACTION.search(text_of(event.get("timestamp")))
    return at * 1_000_000 + (int(fraction[1].ljust(9, "0")[3:]) if fraction else 0)


class _Capture:
    def __init__(self, history: History) -> None:
        self._history = history
        self._workloads = Workloads(history, SOURCE)
        self._documents: dict[str, Document] = {}

    def take(self, at: int, event: Document, number: int) -> None:
        key = text_of(event.get("key"))
        if event["type"] == "create":
            self._create(at, event, key, number)
        elif event["kind"] != "Deployment" or key not in self._documents:
            self._workloads.say(at, f"a {event['type']} of {key} is of an earlier workload of that name: "
                                    "what became of that one is not known", "warning")  # fmt: skip
            self._history.read += 1
        elif event["type"] == "delete":
            del self._documents[key]
            self._workloads.remove(at, _DEPLOYMENT, key)
        elif type(event.get("replicas")) is int:
            known = self._documents[key]
            document = {**known, "spec": {**known["spec"], "replicas": whole_number(event["replicas"])}}
            self._documents[key] = document
            self._workloads.apply(at, document, number)
        else:
            self._history.not_read(number, "a scale does not say to how many", key)

    def _create(self, at: int, event: Document, key: str, number: int) -> None:
        kind = event["kind"]
        document = event.get(kind.lower())
        if not isinstance(document, dict) or not isinstance(document.get("spec"), dict):
            self._history.not_read(number, f"a create has no {kind}", key)
            return
        namespace, _, name = key.rpartition("/")
        document = {**document, "apiVersion": _API[kind], "kind": kind}
        document["metadata"] = {**_object(document.get("metadata")), "name": name, "namespace": namespace}
        if kind == "Job":
            runs = whole_number(event.get("duration")) // 1_000_000 // rounds_of(document)
            self._history.applied.append(Applied(at, document, runs=runs))
            self._workloads.say(at, _job(document, key, event))
            self._history.read += 1
        else:
            self._documents[key] = document
            self._workloads.apply(at, document, number)
        for term in dangling_terms(_object(document["spec"].get("template"))):
            text = f"{key}: {term} selects labels that the capture has renamed: it has no effect any more"
            self._workloads.say(at, text, "warning")


def _job(document: Document, key: str, event: Document) -> str:
    ran = whole_number(event.get("duration")) // 1_000_000
    end = f"it ran for {format_duration(ran)}" if ran else "its end is not known"
    pods = f"{wanted_of(document, 'completions')} pods, {wanted_of(document, 'parallelism')} at a time"
    return f"job {key} arrives: {pods}; {end}"


def _object(value: object) -> Document:
    return dict(value) if isinstance(value, dict) else {}
