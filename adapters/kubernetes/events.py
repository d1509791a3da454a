"""Writes Kubernetes Events, limited like those of client-go's recorder and Karpenter.

The limits apply in this order. An event is dropped if one of the same reason and key came within its window (L-435).
Some reasons share a rate. Each object has 25 events at once and one more every five minutes (client-go's spam filter).
An event that repeats an earlier one of the same object raises the count of that Event, whose name follows from what
it says, also after a restart. Causes that last are told again before the API server forgets their Events after an hour
(`repeat`). Events only help people: one that cannot be written is lost.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.session import MERGE, Session
from kerf.engine.errors import KerfError

COMPONENT = "karpenter"
MAX_EVENTS_QUEUED = 1000  # events that wait to be written; further ones are lost
MAX_KEYS_REMEMBERED = 32_768  # keys, objects and Events, each
AGAIN_AFTER = 1_500.0  # seconds after which a cause that lasts as it was is told again, at the earliest
REPEATS_EVERY = 0.1  # seconds from one repetition to the next
SPAM_BURST, SPAM_EVERY = 25, 300.0  # of one object; seconds
SHARED_RATES: dict[str, tuple[int, float]] = {"nominated": (10, 0.2)}
"""Shared rates by name: how many events at once, and then one every how many seconds."""
NOT_FOUND, CONFLICT = 404, 409
MAX_NAME = 230  # characters of an object's name in that of an Event
UID_TIMEOUT = 5.0  # seconds for the object of a NodeClaim to be made


class Subject(Struct, frozen=True):
    """The object that an event is about. If it is a NodeClaim without a uid, the recorder looks the uid up."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class Happening(Struct, frozen=True):
    """One event. `window` is in ms; `limit` is a name in SHARED_RATES, or empty. `lasting` is what stays of a message
    that names a time, by which the event is the same as an earlier one; "" for the whole message."""

    about: Subject
    type: str
    reason: str
    message: str
    key: tuple[str, ...]
    window: int
    limit: str = ""
    lasting: str = ""


class _Bucket(Struct):
    tokens: float
    at: float

    def take(self, now: float, burst: int, every: float) -> bool:
        self.tokens = min(float(burst), self.tokens + (now - self.at) / every)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Said(Struct):
    """When an event was told last, until when it is not told again, and its lasting words."""

    at: float
    until: float = 0.0
    words: str = ""


class EventRecorder:
    """Collects events with `tell`, which may be called on the loop at any time; `run` writes them.

    `claim_uid` returns the uid of a NodeClaim object, or "".
    """

    def __init__(
        self,
        session: Session,
        claim_uid: Callable[[str], Awaitable[str]],
        *,
        host: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.error: KerfError | None = None
        self.dropped = 0
        self._session, self._claim_uid, self._host, self._clock = session, claim_uid, host, clock
        self._queue: asyncio.Queue[Happening] = asyncio.Queue(MAX_EVENTS_QUEUED)
        self._said: OrderedDict[tuple[str, ...], _Said] = OrderedDict()
        self._buckets: OrderedDict[object, _Bucket] = OrderedDict()
        self._written: OrderedDict[str, int] = OrderedDict()  # Event → its count

    def tell(self, happenings: Iterable[Happening]) -> None:
        for happening in happenings:
            if self._wanted(happening):
                self._enqueue(happening)

    async def repeat(self, happenings: Iterable[Happening]) -> None:
        """Tells again what lasts, at most ten Events a second. What was told a short while ago is left out, unless
        there is something else to say of it by now: fewer pods are left to wait for."""
        for happening in happenings:
            now = self._clock()
            said = self._said.get(_key(happening), _Said(-AGAIN_AFTER))
            changed = said.words != _words(happening) and now >= said.until
            if changed or now - said.at >= AGAIN_AFTER:
                self._says(happening, now)
                self._enqueue(happening)
                await asyncio.sleep(REPEATS_EVERY)

    def _enqueue(self, happening: Happening) -> None:
        try:
            self._queue.put_nowait(happening)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Writes events until it is cancelled."""
        while True:
            await self._write(await self._queue.get())
            self._queue.task_done()

    async def settle(self) -> None:
        """Waits until every event is written or lost."""
        await self._queue.join()

    def _wanted(self, happening: Happening) -> bool:
        now, key = self._clock(), _key(happening)
        if self._said.get(key, _Said(0.0)).until > now:
            return False
        self._says(happening, now)
        if happening.limit and not self._take(happening.limit, now, *SHARED_RATES[happening.limit]):
            return False
        return self._take(happening.about, now, SPAM_BURST, SPAM_EVERY)

    def _says(self, happening: Happening, now: float) -> None:
        _remember(self._said, _key(happening), _Said(now, now + happening.window / 1000, _words(happening)))

    def _take(self, name: object, now: float, burst: int, every: float) -> bool:
        bucket = self._buckets.get(name) or _Bucket(float(burst), now)
        _remember(self._buckets, name, bucket)
        return bucket.take(now, burst, every)

    async def _write(self, happening: Happening) -> None:
        try:
            await self._put(happening)
            self.error = None
        except (ClusterError, Unreachable) as error:
            self.error = error
            self.dropped += 1

    async def _put(self, happening: Happening) -> None:
        """Counts up the Event that says the same, or makes it. One of an earlier process is found by its name."""
        about, name = happening.about, _name(happening)
        namespace = about.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        count = self._written.get(name, 0)
        changed = {"message": happening.message} if happening.lasting else {}
        if count and await self._counted(path, name, count, changed):
            return
        document = self._document(happening, name, namespace, await self._uid(about))
        answer = await self._session.request("POST", path, body=document)
        if answer.status == CONFLICT:
            await self._counted(path, name, 0, changed)
            return
        answer.checked(f"Event of {about.kind} {name}")
        _remember(self._written, name, 1)

    async def _counted(self, path: str, name: str, count: int, changed: dict[str, str]) -> bool:
        """Says of an Event that it has happened again, and what has changed of it. Returns False if the API server has
        forgotten it. `count` is 0 if it is not known.
        """
        body: dict[str, Any] = {"lastTimestamp": _now(), **({"count": count + 1} if count else {}), **changed}
        answer = await self._session.request("PATCH", f"{path}/{name}", body=body, content_type=MERGE)
        if answer.status == NOT_FOUND:
            self._written.pop(name, None)
            return False
        known = answer.checked(f"count Event {name}").json().get("count")
        _remember(self._written, name, known if isinstance(known, int) else count + 1)
        return True

    async def _uid(self, about: Subject) -> str:
        if about.uid or about.kind != "NodeClaim":
            return about.uid
        with suppress(TimeoutError):
            async with asyncio.timeout(UID_TIMEOUT):
                return await self._claim_uid(about.name)
        return ""

    def _document(self, happening: Happening, name: str, namespace: str, uid: str) -> dict[str, Any]:
        about, now = happening.about, _now()
        involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name}
        if about.namespace:
            involved["namespace"] = about.namespace
        if uid:
            involved["uid"] = uid
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "type": happening.type,
            "reason": happening.reason,
            "message": happening.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._host,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }


def _key(happening: Happening) -> tuple[str, ...]:
    return (happening.reason.lower(), *happening.key)


def _words(happening: Happening) -> str:
    return happening.lasting or happening.message


def _name(happening: Happening) -> str:
    """The Event's name: the same for the same lasting words about the same object."""
    about = happening.about
    said = "\0".join((about.kind, about.namespace, about.uid, happening.type, happening.reason, _words(happening)))
    return f"{about.name[:MAX_NAME]}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def _remember(table: OrderedDict[Any, Any], key: object, value: object) -> None:
    """Stores a value under a key. Forgets the oldest key if there are too many."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_KEYS_REMEMBERED:
        table.popitem(last=False)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
