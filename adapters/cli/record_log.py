"""What `kerf log` prints: a record's timeline, or Karpenter's log lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kerf.adapters.cli.named_record import named_record
from kerf.adapters.cli.records import NOW, located, position_before, spelled
from kerf.adapters.cli.render.lines import print_error, print_text
from kerf.adapters.cli.render.output import Printer, emit_json_line
from kerf.adapters.cli.render.record import event_line, search_gain_lines
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import AnyStore
from kerf.engine.model.did_you_mean import is_it
from kerf.engine.record.entries import Entry
from kerf.engine.state.indexes import Blobs
from kerf.projections.json_times import with_times
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.prose.amounts import count, moment
from kerf.projections.timeline.changed_workloads import ChangedWorkloads
from kerf.projections.timeline.event import DEBUG, Event
from kerf.projections.timeline.grouping import group_events
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.errors import PositionUnknown
from kerf.replay.history.event_filter import Asked, EventFilter
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.indexed_timeline import chosen_events
from kerf.replay.history.search_gains import search_gains
from kerf.replay.history.story import timeline_from_base
from kerf.replay.subject_names import similar_names
from kerf.replay.time_travel.moments import end_of, is_position, time_of
from kerf.replay.time_travel.record_beginning import base_as_entries

FOLLOWED_EVERY = 0.5  # seconds between looks at a record that is followed


class LogQuery(Struct, frozen=True):
    """What of a record is printed, as `kerf log` has the flags."""

    since: str | None
    until: str | None
    asked: Asked
    all: bool
    follow: bool


class RecordLog:
    """A record's entries within a query. Raises PositionUnknown when it ends before it begins."""

    def __init__(self, store: AnyStore, query: LogQuery) -> None:
        self._store, self._query = store, query
        self._said = False  # that nothing is there
        self._after = self._begin(query.since) if query.since is not None else 0
        self._last = self._end(query.until) if query.until is not None else None
        self._filter = EventFilter(query.asked)
        if self._filter.may_ask_for_machine:
            last = self._last or store.last_position()
            self._filter.knows_machines(histories_of(store, last, named_record(store, last)))
        self._workloads = None if self._filter.subjects() else ChangedWorkloads(Blobs(store.blob).shape)
        self.told = 0
        """How many events were printed."""
        self._silent = 0  # events that are asked for and that the flags leave out
        self._minor = 0  # those of them that --all would tell
        self._others: set[str] = set()

    def _begin(self, since: str) -> int:
        """The position before the first one to be told. Where that is none, it is said."""
        begin = spelled(since)
        position = position_before(self._store, begin)
        if not self._query.follow and time_of(self._store, begin)[0] > (end := end_of(self._store).at):
            if since.strip() != NOW:  # whose record may have nothing new
                located(self._store, since)  # refuses it, as other commands do
            print_error(f"Nothing is in the record since then: its last entry is of {moment(end)}")
            self._said = True
        return position

    def _end(self, until: str) -> int:
        """The last position to be told: before the first one, if nothing happened between two times."""
        end, since = located(self._store, until), self._query.since
        if end.position <= self._after and since is not None:
            begin = spelled(since)
            if is_position(begin.strip()) or end.at < time_of(self._store, begin)[0]:
                hint = "Give the earlier one to --since"
                raise PositionUnknown(f"--since {since} is later than --until {until}", hint=hint)
        return end.position

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
        events, printer = self._told(self._taken()), Printer()
        if json:
            for event in events:
                emit_json_line(with_times(event))
        else:
            started = 0
            # a group is printed once its last event is known: not while a record is followed
            for event in events if self._query.follow else group_events(events):
                started = started or next(entry.at for entry in self._store.scan())
                printer.line(event_line(event, started), event.level)

    def _told(self, events: Iterable[Event]) -> Iterator[Event]:
        """Give the events that the flags let through, and count both sorts."""
        for event in events:
            if event.position <= self._after or (event.level == DEBUG and not self._query.all):
                self._silent += 1
                self._minor += event.position > self._after
            else:
                self.told += 1
                yield event

    def _taken(self) -> Iterable[Event]:
        """The events that are asked for; from the index of a long record if they are about one subject."""
        last = self._last or self._store.last_position()
        named = None if self._query.follow else named_record(self._store, last)
        names = self._filter.subjects()
        if named is not None and names:
            taken = chosen_events(self._store, named, names, self._choose)
            if taken:
                return taken  # or else all is read: names that are like it are suggested
        return self._choose(timeline_from_base(self._store), self._entries())

    def _choose(self, timeline: Timeline, entries: Iterable[Entry]) -> Iterator[Event]:
        for entry in base_as_entries(self._store):
            self._changed_workload(entry)
        for entry in entries:
            self._filter.see(entry)
            for event in (*self._changed_workload(entry), *timeline.apply(entry)):
                if self._filter.takes(event):
                    yield event
                else:
                    self._others.update((event.subject, *event.related))

    def _changed_workload(self, entry: Entry) -> list[Event]:
        return [] if self._workloads is None else self._workloads.apply(entry)

    def nothing_told(self) -> str:
        """Why nothing was printed of what is asked for: nothing concerns it, or nothing that the flags let through."""
        query, asked = self._query, self._query.asked
        if asked == Asked():
            return self._quiet()
        if self._silent:
            flags = ["leave out --since"] if query.since else []
            flags += [] if query.all else ["give --all"]
            left_out = count(self._silent, "event")
            return f"{left_out} of {asked} left out: {' or '.join(flags)} to be told"
        where = f"the record up to {query.until}" if query.until else "the record"
        likely = self._filter.likely(self._others) or (
            self._reasons() if asked.reason else "kerf log RECORD --all has the names"
        )
        return f"Nothing in {where} concerns {asked}. {likely}"

    def _quiet(self) -> str:
        """Say that nothing happened in a part of the record; "" where that was said before."""
        query = self._query
        if self._said or not (query.since or query.until):
            return ""
        minor = count(self._minor, "event")
        told = f", but for {minor} of little interest: give --all to be told" if self._minor else ""
        return f"Nothing happened in this part of the record{told}"

    def _reasons(self) -> str:
        """The reasons nearest to the one that is asked for, or those that there are."""
        there = sorted(reason for reason in self._filter.other_reasons if " " not in reason)
        likely = is_it(similar_names(self._query.asked.reason, there))
        return likely or ("The reasons there are: " + ", ".join(there) if there else "Leave out --reason")

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
