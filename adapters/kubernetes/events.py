"""Writes Kubernetes Events, limited like those of client-go's recorder and Karpenter.

The limits apply in this order. An event is dropped if one of the same reason and key came within its window (L-435).
Some reasons share a rate. Each object has 25 events at once and one more every five minutes (client-go's spam filter).
An event that repeats an earlier one of the same object raises the count of that Event. Events only help people: one
that cannot be written is lost.
"""

from __future__ import annotations

import asyncio
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
MAX_KEYS_REMEMBERED = 4096  # keys, objects and Events, each
SPAM_BURST, SPAM_EVERY = 25, 300.0  # of one object; seconds
SHARED_RATES: dict[str, tuple[int, float]] = {"nominated": (10, 0.2)}
"""Shared rates by name: how many events at once, and then one every how many seconds."""
NOT_FOUND = 404
UID_TIMEOUT = 5.0  # seconds for the object of a NodeClaim to be made


class Subject(Struct, frozen=True):
    """The object that an event is about. If it is a NodeClaim without a uid, the recorder looks the uid up."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class Happening(Struct, frozen=True):
    """One event. `window` is in ms; `limit` is a name in SHARED_RATES, or empty."""

    about: Subject
    type: str
    reason: str
    message: str
    key: tuple[str, ...]
    window: int
    limit: str = ""


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
        self._said: OrderedDict[tuple[str, ...], float] = OrderedDict()  # until when it is not said again
        self._buckets: OrderedDict[object, _Bucket] = OrderedDict()
        self._written: OrderedDict[tuple[Subject, str, str, str], tuple[str, int]] = OrderedDict()  # → name, count

    def tell(self, happenings: Iterable[Happening]) -> None:
        for happening in happenings:
            if not self._wanted(happening):
                continue
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

    def _wanted(self, each: Happening) -> bool:
        now = self._clock()
        key = (each.reason.lower(), *each.key)
        if self._said.get(key, 0.0) > now:
            return False
        _remember(self._said, key, now + each.window / 1000)
        if each.limit and not self._take(each.limit, now, *SHARED_RATES[each.limit]):
            return False
        return self._take(each.about, now, SPAM_BURST, SPAM_EVERY)

    def _take(self, name: object, now: float, burst: int, every: float) -> bool:
        bucket = self._buckets.get(name) or _Bucket(float(burst), now)
        _remember(self._buckets, name, bucket)
        return bucket.take(now, burst, every)

    async def _write(self, each: Happening) -> None:
        try:
            await self._put(each)
            self.error = None
        except (ClusterError, Unreachable) as error:
            self.error = error
            self.dropped += 1

    async def _put(self, each: Happening) -> None:
        same = (each.about, each.type, each.reason, each.message)
        namespace = each.about.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        name, count = self._written.get(same, ("", 0))
        if name:
            body: dict[str, Any] = {"count": count + 1, "lastTimestamp": _now()}
            answer = await self._session.request("PATCH", f"{path}/{name}", body=body, content_type=MERGE)
            if answer.status != NOT_FOUND:  # it has expired: another is made
                answer.checked(f"count Event {namespace}/{name}")
                _remember(self._written, same, (name, count + 1))
                return
        name = f"{each.about.name}.{time.time_ns():x}"
        document = self._document(each, name, namespace, await self._uid(each.about))
        (await self._session.request("POST", path, body=document)).checked(f"Event of {each.about.kind} {name}")
        _remember(self._written, same, (name, 1))

    async def _uid(self, about: Subject) -> str:
        if about.uid or about.kind != "NodeClaim":
            return about.uid
        with suppress(TimeoutError):
            async with asyncio.timeout(UID_TIMEOUT):
                return await self._claim_uid(about.name)
        return ""

    def _document(self, each: Happening, name: str, namespace: str, uid: str) -> dict[str, Any]:
        about, now = each.about, _now()
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
            "type": each.type,
            "reason": each.reason,
            "message": each.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._host,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }


def _remember(table: OrderedDict[Any, Any], key: object, value: object) -> None:
    """Stores a value under a key. Forgets the oldest key if there are too many."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_KEYS_REMEMBERED:
        table.popitem(last=False)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
