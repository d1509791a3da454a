"""What `kerf log` prints: a record's timeline, or Karpenter's log lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from msgspec import Struct

from kerf.adapters.cli.records import located, position_before
from kerf.adapters.cli.render.lines import print_error, print_text
from kerf.adapters.cli.render.output import Printer, emit_json_line
from kerf.adapters.cli.render.record import event_line, search_gain_lines
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import AnyStore
from kerf.engine.model.did_you_mean import is_it
from kerf.engine.record.entries import Entry
from kerf.projections.json_times import with_times
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.prose.amounts import count, moment
from kerf.projections.timeline.event import DEBUG, Event
from kerf.projections.timeline.grouping import group_events
from kerf.replay.errors import PositionUnknown
from kerf.replay.history.search_gains import search_gains
from kerf.replay.history.story import timeline_from_base
from kerf.replay.subject_names import similar_names, with_canonical_kind
from kerf.replay.time_travel.moments import end_of, time_of
from kerf.replay.time_travel.record_beginning import base_as_entries

FOLLOWED_EVERY = 0.5  # seconds between looks at a record that is followed


class LogQuery(Struct, frozen=True):
    """What of a record is printed, as `kerf log` has the flags."""

    since: str
    until: str
    subject: str
    all: bool
    follow: bool


class RecordLog:
    """A record's entries within a query. Raises PositionUnknown when it ends before it begins."""

    def __init__(self, store: AnyStore, query: LogQuery) -> None:
        self._store, self._query = store, query
        self._after = position_before(store, query.since) if query.since else 0
        if query.since and not query.follow and time_of(store, query.since)[0] > (end := end_of(store).at):
            print_error(f"Nothing is in the record since then: its last entry is of {moment(end)}")
        self._last = located(store, query.until).position if query.until else None
        if self._last is not None and self._last <= self._after:
            raise PositionUnknown(
                f"--since {query.since} is later than --until {query.until}", hint="Give the earlier one to --since"
            )
        self.told = 0
        """How many events were printed."""
        self._silent = 0  # events of the subject that the flags leave out
        self._others: set[str] = set()

    def print_as_karpenter(self) -> None:
        """The log lines that Karpenter would write, one JSON object a line."""
        lines = KarpenterLog()
        for entry in base_as_entries(self._store):
            lines.apply(entry)
        for entry in self._entries():
            for line in lines.apply(entry):
                if entry.position > self._after:
                    emit_json_line(line)

    def print_effort(self, *, json: bool) -> None:
        """What the search gained in each provisioning pass, one a line, and in all."""
        entries = (entry for entry in self._entries() if entry.position > self._after)
        if json:
            for gain in search_gains(entries):
                emit_json_line(with_times(gain))
        else:
            for line in search_gain_lines(search_gains(entries)):
                print_text(line)

    def print_timeline(self, *, json: bool) -> None:
        """One event a line."""
        timeline, printer = timeline_from_base(self._store), Printer()

        def events() -> Iterator[Event]:
            for entry in self._entries():
                for event in timeline.apply(entry):
                    if not self._concerns(event):
                        self._others.update((event.subject, *event.related))
                    elif entry.position <= self._after or (event.level == DEBUG and not self._query.all):
                        self._silent += 1
                    else:
                        self.told += 1
                        yield event

        if json:
            for event in events():
                emit_json_line(with_times(event))
        else:
            # a group is printed once its last event is known: not while a record is followed
            for event in events() if self._query.follow else group_events(events()):
                printer.line(event_line(event, timeline.started), event.level)

    def nothing_told(self) -> str:
        """Why nothing was printed of the subject: nothing concerns it, or nothing that the flags let through."""
        query = self._query
        if self._silent:
            flags = ["leave out --since"] if query.since else []
            flags += [] if query.all else ["give --all"]
            left_out = count(self._silent, "event")
            return f"{left_out} of {query.subject} left out: {' or '.join(flags)} to be told"
        where = f"the record up to {query.until}" if query.until else "the record"
        likely = is_it(similar_names(query.subject, self._others))
        return f"Nothing in {where} concerns {query.subject}. {likely or 'kerf log RECORD --all has the names'}"

    def _entries(self) -> Iterator[Entry]:
        """The record's entries from its beginning. With `follow` also those that are added later, for ever, unless the
        query has an end. A file that nobody writes is not waited for."""
        position = 0
        while True:
            for entry in self._store.scan(position, self._last):
                position = entry.position
                yield entry
            ended = self._last is not None and position >= self._last
            if not self._query.follow or not isinstance(self._store, ChainedStore) or ended:
                return
            sys.stdout.flush()
            time.sleep(FOLLOWED_EVERY)

    def _concerns(self, event: Event) -> bool:
        subject = self._query.subject
        if not subject:
            return True
        spellings = (subject, with_canonical_kind(subject))
        names = (event.subject, *event.related)
        return any(name in spellings or name.partition("/")[2] == subject for name in names)
