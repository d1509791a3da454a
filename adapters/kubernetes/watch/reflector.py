"""Keeps up a list and a watch on one kind, for as long as kerf runs.

The list is paged. The watch continues from the list's resourceVersion, with bookmarks and a time limit that differs
between kinds, so that they do not all restart at once. When the API server no longer knows the version (410), all
objects are listed again, the difference is reported, and the gap is recorded. An object that cannot be read is refused
and reported once; the others go on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping

from msgspec import Raw, Struct
from msgspec.structs import replace

from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.watch import decoding
from kerf.adapters.kubernetes.watch.decoding import Frame
from kerf.adapters.kubernetes.watch.watched_kinds import Resource
from kerf.engine.errors import KerfError
from kerf.engine.model.manifests.wire import Read
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.record.observations import InputRefused, ObjectGone, Observation, WatchGap

GONE, NOT_FOUND = 410, 404
WATCH_SECONDS = (300, 600)  # seconds, drawn at random (client-go's)
WATCH_TIMEOUT_SLACK = 30  # seconds over that before the connection counts as dead
BACKOFF_SECONDS = (0.8, 30.0)  # seconds: the first and the longest
MIN_WATCH_SECONDS = 1.0  # a watch that ends sooner and without an event is treated as a failure
MAX_REFUSALS_REMEMBERED = 10_000  # objects that are remembered as refused


class Change(Struct, frozen=True):
    """One change. `old` is None for a new object, `new` is None for one that is gone; `blobs` are the new one's."""

    kind: str
    key: str
    old: Struct | None
    new: Struct | None
    blobs: dict[str, Struct] = {}


def as_it_is(change: Change) -> list[Observation]:
    """Returns the observation of a change, for a kind that the engine watches itself."""
    if change.new is None:
        return [Observation(ObjectGone(change.kind, change.key))]
    return [Observation(change.new, change.blobs)]


class Expired(Exception):
    """The API server no longer knows the version to continue from (410)."""


class NotServed(ClusterError):
    """The API server does not serve this kind, and need not."""


class Reflector:
    """Reports the changes of one kind. `known` is what the record holds (key → object); the first list reports what
    differs.

    `tell` receives observations in order. `interpret` makes them from a change. `raw` receives the bytes of each object
    first (None for one that is gone).
    """

    def __init__(
        self,
        session: Session,
        resource: Resource,
        tell: Callable[[list[Observation]], None],
        *,
        known: Mapping[str, Struct] | None = None,
        interpret: Callable[[Change], list[Observation]] = as_it_is,
        raw: Callable[[str, Raw | None], None] | None = None,
        dice: random.Random | None = None,
    ) -> None:
        self.resource = resource
        self.listed = asyncio.Event()
        self.error: KerfError | None = None
        self.events = 0
        self.lists = 0
        self._session, self._tell, self._interpret, self._raw = session, tell, interpret, raw
        self._read = decoding.reader(resource.api, resource.trim)
        self._known: dict[str, Struct] = dict(known or {})
        self._refused: dict[str, str] = {}
        self._dice = dice if dice is not None else random.Random()
        self._version = ""  # to watch from; "" when all has to be listed
        self._last = ""  # the last version seen
        self._again = bool(self._known)  # whether a list follows on something that was known
        self._failures = 0

    @property
    def synced(self) -> bool:
        return self.listed.is_set()

    @property
    def objects(self) -> list[Struct]:
        """All objects as they were last seen."""
        return list(self._known.values())

    async def run(self) -> None:
        """Lists and watches until it is cancelled."""
        while True:
            try:
                if not self._version:
                    await self.list_all()
                await self._watch()
                continue
            except Expired:
                self._version = ""
                if not self._failures:
                    self._failures = 1  # the second in a row waits
                    continue
            except NotServed:
                pass  # it may be some day
            except (ClusterError, Unreachable) as error:
                self.error = error
            await asyncio.sleep(self._delay())

    def _delay(self) -> float:
        first, most = BACKOFF_SECONDS
        delay = min(most, first * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return delay * self._dice.uniform(0.5, 1.0)

    # ── lists ───────────────────────────────────────────────────────────────────────────────────────────────

    async def list_all(self) -> None:
        """Lists all objects and reports the gap, then what differs from what is known. Raises Expired, NotServed,
        ClusterError and Unreachable."""
        since = self._last
        found: dict[str, Read] = {}
        unread: set[str] = set()
        refusals: list[Observation] = []
        try:
            version = await self._pages(found, unread, refusals)
        except NotServed:
            self._say([seen for key in list(self._known) for seen in self._gone(key)])
            self.listed.set()
            raise
        self.lists += 1
        told: list[Observation] = []
        changed = gone = 0
        for key, read in found.items():
            if self._known.get(key) != read.object:
                told += self._changed(key, read)
                changed += 1
        for key in [key for key in self._known if key not in found and key not in unread]:
            told += self._gone(key)
            gone += 1
        if self._again:
            told.insert(0, Observation(WatchGap(self.resource.kind, since, version, changed, gone)))
        self._version = self._last = version
        self._again, self.error = True, None
        self._say(refusals + told)
        self.listed.set()

    async def _pages(self, found: dict[str, Read], unread: set[str], refusals: list[Observation]) -> str:
        """Collects the objects of all pages and returns the version they were listed at."""
        query: dict[str, str | int] = {"limit": self.resource.page}
        while True:
            answer = await self._session.request("GET", self.resource.path, query=query, timeout=60)
            if answer.status == GONE:
                raise Expired
            if answer.status == NOT_FOUND and self.resource.optional:
                raise NotServed(f"{self.resource.path} is not served", status=NOT_FOUND, where="list")
            if answer.status == NOT_FOUND and not self._known:
                self.listed.set()  # the CRD is not installed: there is nothing to wait for
            answer.checked(f"list {self.resource.path}")
            try:
                page = decoding.read_page(answer.body)
            except UNDECODABLE as error:
                raise Unreachable(f"the list cannot be read: {error}", where=self.resource.path) from error
            for item in page.items:
                self._collect(item, found, unread, refusals)
            if not page.metadata.continue_:
                return page.metadata.resource_version
            query["continue"] = page.metadata.continue_

    def _collect(self, item: Raw, found: dict[str, Read], unread: set[str], refusals: list[Observation]) -> None:
        read = self._read(item)
        if isinstance(read, InputRefused):
            unread.update(decoding.identity(item))
            refusals += self._refusal(read)
            found |= self._on_its_way_out(item)
            return
        key = self.resource.key(read.object)
        if self._raw is not None:
            self._raw(key, item)
        found[key] = self._kept(key, read)
        refusals += self._ignored(item, read)

    # ── watches ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        seconds = self._dice.randint(*WATCH_SECONDS)
        query: dict[str, str | int] = {
            "watch": 1,
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": seconds,
        }
        began, rest, heard = time.monotonic(), b"", False
        try:
            async for piece in self._session.stream(
                self.resource.path, query=query, timeout=seconds + WATCH_TIMEOUT_SLACK
            ):
                self.error = None
                lines, newline, end = piece.rpartition(b"\n")
                if not newline:
                    rest += end
                    continue
                self.take(rest + lines)
                rest, heard = end, True
                self._succeeded()
        except ClusterError as error:
            if error.status == GONE:
                raise Expired from error
            raise
        if not heard and time.monotonic() - began < MIN_WATCH_SECONDS:
            raise Unreachable("the watch ended at once", where=self.resource.path)

    def take(self, lines: bytes) -> None:
        """Takes whole lines that arrived in one piece. Raises Expired."""
        told: list[Observation] = []
        frames = self._frames(lines, told)
        for index, frame in enumerate(frames):
            if frame.type == decoding.ERROR:
                self._resume_after(frames[:index])
                self._say(told)
                self._failed(frame)
            if frame.type != decoding.BOOKMARK:
                self.events += 1
                told += self._event(frame)
        self._resume_after(frames)
        self._say(told)

    def _frames(self, lines: bytes, told: list[Observation]) -> list[Frame]:
        try:
            return decoding.read_frames(lines)
        except UNDECODABLE:
            return self._frames_one_by_one(lines, told)

    def _frames_one_by_one(self, lines: bytes, told: list[Observation]) -> list[Frame]:
        frames = []
        for line in lines.split(b"\n"):
            try:
                frames += decoding.read_frames(line)
            except UNDECODABLE as error:
                told += self._refusal(InputRefused("KERF301", "watch", self.resource.path, "", str(error)))
        return frames

    def _event(self, frame: Frame) -> list[Observation]:
        read = self._read(frame.object)
        if isinstance(read, InputRefused):
            if frame.type == decoding.DELETED:
                return [
                    observation
                    for key in decoding.identity(frame.object)
                    if key in self._known
                    for observation in self._gone(key)
                ]
            going = self._on_its_way_out(frame.object).items()
            changed = [
                told for key, read in going if self._known[key] != read.object for told in self._changed(key, read)
            ]
            return self._refusal(read) + changed
        key = self.resource.key(read.object)
        if frame.type == decoding.DELETED:
            return self._gone(key)
        if self._raw is not None:
            self._raw(key, frame.object)
        read = self._kept(key, read)
        told = [] if self._known.get(key) == read.object else self._changed(key, read)
        return told + self._ignored(frame.object, read)

    def _failed(self, frame: Frame) -> None:
        status = decoding.read_status(frame.object)
        if status.code == GONE or status.reason in ("Expired", "Gone"):
            raise Expired
        raise ClusterError(status.message or status.reason, status=status.code, where=f"watch {self.resource.path}")

    def _resume_after(self, frames: list[Frame]) -> None:
        if frames:
            self._version = self._last = decoding.version_of(frames[-1].object) or self._version

    def _on_its_way_out(self, data: Raw) -> dict[str, Read]:
        """Returns, by its key, an object that became unreadable and is being deleted: as it was before, but for that.
        Else whoever holds a finalizer of it would never let it go. Empty for any other object."""
        since = decoding.deleting_since(data)
        for key in decoding.identity(data) if since else ():
            old = self._known.get(key)
            if old is not None and hasattr(old, "deleting"):
                if self._raw is not None:
                    self._raw(key, data)
                return {key: Read(replace(old, deleting=since), {})}
        return {}

    # ── telling ─────────────────────────────────────────────────────────────────────────────────────────────

    def _kept(self, key: str, read: Read) -> Read:
        """Returns the object with what stays of it as it was seen before."""
        old, keep = self._known.get(key), self.resource.keep
        return read if old is None or keep is None else read._replace(object=keep(old, read.object))

    def _changed(self, key: str, read: Read) -> list[Observation]:
        old = self._known.get(key)
        self._known[key] = read.object
        return self._interpret(Change(self.resource.kind, key, old, read.object, read.blobs))

    def _gone(self, key: str) -> list[Observation]:
        old = self._known.pop(key, None)
        if self._raw is not None:
            self._raw(key, None)
        return [] if old is None else self._interpret(Change(self.resource.kind, key, old, None))

    def _refusal(self, refused: InputRefused) -> list[Observation]:
        """Returns the refusal of an object, or nothing if it was reported already."""
        said = f"{refused.code} {refused.field} {refused.message}"
        if self._refused.get(refused.object) == said:
            return []
        if len(self._refused) >= MAX_REFUSALS_REMEMBERED:
            self._refused.clear()
        self._refused[refused.object] = said
        return [Observation(refused)]

    def _ignored(self, item: Raw, read: Read) -> list[Observation]:
        """Returns what of an accepted object cannot be read, if it was not reported already (LG-14)."""
        fields = decoding.ignored_fields(self.resource.api, item, read) if read.notes else []
        return [told for refused in fields for told in self._refusal(refused)]

    def _say(self, told: list[Observation]) -> None:
        if told:
            self._tell(told)

    def _succeeded(self) -> None:
        self._failures, self.error = 0, None
