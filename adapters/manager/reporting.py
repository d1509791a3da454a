"""What a controller says while it works: log lines, metrics, and Kubernetes Events, each turn from its entries."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TextIO

from kerf.adapters.controller.controller import REPORT, AdapterFault
from kerf.adapters.kubernetes.events import EventRecorder, Happening, Subject
from kerf.adapters.manager.gated_status import GatedObjects
from kerf.adapters.manager.metrics.serving import Telemetry
from kerf.adapters.manager.settings import SettingError
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State
from kerf.projections.karpenter_logs import ERROR, KarpenterLog, line
from kerf.projections.kubernetes_events.decision_events import ClusterEvents, Told
from kerf.projections.kubernetes_events.object_events import ObjectEvents

AGAIN = 1.0  # seconds, after a defect


class Telling:
    """Called with each turn's entries, between turns. Events are told from when there is a `recorder`, the status of
    NodeOverlays and CapacityBuffers is kept from when there is a `keeper`."""

    def __init__(self, state: State, log: Log, telemetry: Telemetry) -> None:
        self.recorder: EventRecorder | None = None
        self.keeper: GatedObjects | None = None
        log.know(state)
        self._log, self._telemetry = log, telemetry
        self._events = (ClusterEvents(state), ObjectEvents(state))

    def __call__(self, entries: Sequence[Entry]) -> None:
        """What is said must not stop what is done: an error of one of them is said too, and that is all."""
        for tell in (self._log, self._telemetry, self._tell_events, self.keeper):
            try:
                if tell is not None:
                    tell(entries)
            except Exception as error:
                fault = AdapterFault(f"{type(error).__name__}: {error}", where="telling", hint=REPORT)
                sys.stderr.write(f"{fault}\n")

    def _tell_events(self, entries: Sequence[Entry]) -> None:
        told = [each for entry in entries for events in self._events for each in events.apply(entry)]
        if self.recorder is not None:
            self.recorder.tell(map(_happening, told))


async def kept_up(work: Callable[[], Awaitable[None]], where: str) -> None:
    """Work that never ends by itself, begun again when a defect has ended it: else its task would be over, and nobody
    would be told of anything any more."""
    while True:
        try:
            await work()
        except Exception as error:
            fault = AdapterFault(f"{type(error).__name__}: {error}", where=where, hint=REPORT)
            sys.stderr.write(f"{fault}\n")
            await asyncio.sleep(AGAIN)


def _happening(told: Told) -> Happening:
    about = told.about
    subject = Subject(about.api_version, about.kind, about.name, about.namespace, about.uid)
    return Happening(subject, told.type, told.reason, told.message, told.key, told.window, told.limit)


class Log:
    """Karpenter's log lines, where the settings want them."""

    def __init__(self, level: str, outputs: Sequence[str]) -> None:
        self._log = KarpenterLog()
        self._errors_only = level == "error"
        self._streams = [_stream(each) for each in outputs]

    def know(self, state: State) -> None:
        self._log.know(state)

    def __call__(self, entries: Sequence[Entry]) -> None:
        lines = [made for entry in entries for made in self._log.apply(entry)]
        text = "".join(line(made) + "\n" for made in lines if made["level"] == ERROR or not self._errors_only)
        for stream in self._streams if text else ():
            stream.write(text)
            stream.flush()

    def close(self) -> None:
        """The files that it made."""
        for stream in self._streams:
            if stream not in (sys.stdout, sys.stderr):
                stream.close()


def _stream(output: str) -> TextIO:
    """L-302. A file is added to."""
    if output in ("stdout", "stderr"):
        return sys.stdout if output == "stdout" else sys.stderr
    try:
        return Path(output.removeprefix("file://")).open("a", encoding="utf-8")
    except OSError as error:
        raise SettingError(str(error), where="log-output-paths", hint="Give stdout, stderr or a file") from error
