"""Records imported from samples, as tests read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from kerf.adapters.cli.importing.record import Summary, import_files
from kerf.adapters.store.open import AnyStore, open_record
from kerf.engine.record.entries import Entry
from kerf.projections.timeline.event import event_sentence
from kerf.projections.timeline.timeline import Timeline
from tests.support.repository import ROOT

T = TypeVar("T", bound=Struct)
SAMPLES = ROOT / "tests" / "importers" / "samples"


@contextmanager
def imported(folder: Path, *files: str | Path) -> Iterator[tuple[Summary, AnyStore]]:
    """A record of these samples (named as in SAMPLES) or files, open for reading."""
    record = folder / "imported.kerf"
    summary = import_files([SAMPLES / file for file in files], record)
    store = open_record(record)
    try:
        yield summary, store
    finally:
        store.close()


def payloads(store: AnyStore, kind: type[T]) -> list[T]:
    return [entry.payload for entry in store.scan() if isinstance(entry.payload, kind)]


def entries_of(store: AnyStore, kind: type[Struct]) -> list[Entry]:
    return [entry for entry in store.scan() if isinstance(entry.payload, kind)]


def told(store: AnyStore) -> list[str]:
    """The sentences of the timeline."""
    timeline = Timeline()
    return [event_sentence(event) for entry in store.scan() for event in timeline.apply(entry)]


def written(folder: Path, name: str, *lines: str | bytes) -> Path:
    """A file with these lines."""
    file = folder / name
    file.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + b"\n")
    return file


def log_line(at: str, message: str, controller: str = "nodeclaim.lifecycle", **fields: Any) -> str:
    """A line of Karpenter's log, at a time of 2026-03-02. Fields with a hyphen are written with an underscore."""
    known = {"level": "INFO", "time": f"2026-03-02T{at}Z", "logger": "controller", "message": message}
    return json.dumps(known | {"controller": controller} | {k.replace("_", "-"): v for k, v in fields.items()})


def named(claim: str) -> dict[str, Any]:
    """The field of a line that names a NodeClaim."""
    return {"NodeClaim": {"name": claim}}
