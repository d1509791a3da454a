"""What the controller reports of each turn, from its entries: log lines, metrics, Kubernetes Events and status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kerf.adapters.kubernetes.events import EventRecorder, Happening, Subject
from kerf.adapters.manager.gated_status import GatedStatus
from kerf.adapters.manager.metrics.telemetry import Telemetry
from kerf.adapters.manager.settings import SettingError
from kerf.adapters.manager.stderr import print_error
from kerf.engine.errors import fault_of
from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.projections.disruption_log_lines import Line
from kerf.projections.karpenter_logs import KarpenterLog, line_json
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import KubernetesEvent
from kerf.projections.kubernetes_events.object_events import ObjectEvents
from kerf.projections.proposals import around_office, lives_that_end_with_office, proposals_that_end_with_office

LOOK_EVERY = 300.0
"""Seconds between looks at what lasts. With AGAIN_AFTER this is half an hour."""
ENDS_EVERY = 10.0
"""Seconds between looks at what has ended by time alone. They cost nothing while nothing has."""
RECALLED = 10_000
"""So many of the record's last entries are read for what lasts: half a second."""
RESTART_AFTER = 1.0  # seconds, after a defect


class TurnReports:
    """Called with each turn's entries, between turns: writes log lines and counts metrics, and once they are set, sends
    Events (`events`) and keeps the status of NodeOverlays and CapacityBuffers (`gated`)."""

    def __init__(self, state: State, log: LogOutput, telemetry: Telemetry) -> None:
        self.events: EventRecorder | None = None
        self.gated: GatedStatus | None = None
        log.know(state)
        self._log, self._telemetry = log, telemetry
        self._state, self._decisions, self._objects = state, DecisionEvents(state), ObjectEvents(state)

    def recall(self, store: Store) -> None:
        """Take up what lasts of the Events that an earlier process sent, and of its metrics: of the record's last
        entries, and of its latest plan."""
        end, plan = store.last_position(), self._state.facts.plan
        begin = max(0, end - RECALLED)
        for entry in store.scan(plan - 1, plan) if plan else ():
            self._telemetry.recall(entry)
            if plan <= begin:
                self._decisions.recall([entry])
        entries = list(store.scan(begin, end))
        for entry in proposals_that_end_with_office(entries):
            self._telemetry.recall(entry)
            self._log.recall(entry)
        lives = lives_that_end_with_office(entries)
        self._telemetry.recall_lives(lives)
        self._log.recall_lives(lives)
        self._log.untold(around_office(entries)[1])
        self._decisions.recall(entries)
        self._objects.recall(entries)

    def __call__(self, entries: Sequence[Entry]) -> None:
        for report in (self._log, self._telemetry, self._send_events, self.gated):
            with _guarded():
                if report is not None:
                    report(entries)

    def consolidatable(self, turned: dict[str, bool], now: int) -> None:
        """Tell which claims became Consolidatable, and which ceased to be. No entry of the record says so."""
        with _guarded():
            self._log.consolidatable(turned, now)

    def lasting(self, now: int) -> list[Happening]:
        """Return the Events whose causes last at `now` (ms since the epoch). No turn may run meanwhile."""
        return [_happening(event) for event in (*self._decisions.lasting(now), *self._objects.lasting(now))]

    def ended(self, now: int) -> list[Happening]:
        """Return the Events of what has ended by `now` without an entry. No turn may run meanwhile."""
        return [_happening(event) for event in self._objects.elapsed(now)]

    def _send_events(self, entries: Sequence[Entry]) -> None:
        events = [
            event for entry in entries for told in (self._decisions, self._objects) for event in told.apply(entry)
        ]
        if self.events is not None:
            self.events.tell(map(_happening, events))


@contextmanager
def _guarded() -> Iterator[None]:
    """A defect in a report must not stop the controller: it is printed, and the other reports go on."""
    try:
        yield
    except Exception as error:
        fault = fault_of(error, "telling")
        print_error(str(fault))


async def repeat_lasting(
    reports: TurnReports, events: EventRecorder, between_turns: asyncio.Lock, now: Callable[[], int]
) -> None:
    """Tell again what lasts, half an hour after it was told: the API server forgets an Event after an hour. Between
    these looks tell what ends by time alone."""
    while True:
        for _ in range(round(LOOK_EVERY / ENDS_EVERY)):
            await asyncio.sleep(ENDS_EVERY)
            async with between_turns:
                ended = reports.ended(now())
            events.tell(ended)
        async with between_turns:
            lasting = await asyncio.to_thread(reports.lasting, now())
        await events.repeat(lasting)


async def restarted(work: Callable[[], Awaitable[None]], where: str) -> None:
    """Run work that never ends by itself, and start it again when a defect has ended it. Otherwise its task would be
    over and its reports would cease unnoticed."""
    while True:
        try:
            await work()
        except Exception as error:
            fault = fault_of(error, where)
            print_error(str(fault))
            await asyncio.sleep(RESTART_AFTER)


def _happening(event: KubernetesEvent) -> Happening:
    about = event.about
    subject = Subject(about.api_version, about.kind, about.name, about.namespace, about.uid)
    return Happening(
        subject, event.type, event.reason, event.message, event.key, event.window, event.limit, event.lasting
    )


class LogOutput:
    """Karpenter's log lines, written to the outputs that the settings name (L-302)."""

    def __init__(self, level: str, outputs: Sequence[str]) -> None:
        self._log = KarpenterLog(level=level)
        self._streams = [_stream(output) for output in outputs]

    def know(self, state: State) -> None:
        self._log.know(state)

    def recall(self, entry: Entry) -> None:
        self._log.recall(entry)

    def recall_lives(self, entries: Sequence[Entry]) -> None:
        self._log.recall_lives(entries)

    def untold(self, entries: Sequence[Entry]) -> None:
        self._log.untold(entries)

    def __call__(self, entries: Sequence[Entry]) -> None:
        self._write([fields for entry in entries for fields in self._log.apply(entry)])

    def consolidatable(self, turned: dict[str, bool], now: int) -> None:
        """Tell which claims became Consolidatable, and which ceased to be (LG-8). No entry of the record says so."""
        self._write(self._log.consolidatable(turned, now))

    def _write(self, lines: Sequence[Line]) -> None:
        text = "".join(line_json(fields) + "\n" for fields in lines)
        for stream in self._streams if text else ():
            stream.write(text)
            stream.flush()

    def close(self) -> None:
        """Close the files that it opened."""
        for stream in self._streams:
            if stream not in (sys.stdout, sys.stderr):
                stream.close()


def _stream(output: str) -> TextIO:
    """The stream of an output (L-302). Lines are added to a file that is there."""
    if output in ("stdout", "stderr"):
        return sys.stdout if output == "stdout" else sys.stderr
    try:
        return Path(output.removeprefix("file://")).open("a", encoding="utf-8")
    except OSError as error:
        raise SettingError(str(error), where="log-output-paths", hint="Give stdout, stderr or a file") from error
