"""Leader election: decides which process may act. kerf takes Karpenter's own Lease (L-296), so that the two never both
act.

Times are measured on this process's monotonic clock, never compared with what others wrote. A holder counts as gone
when its Lease has not changed here for its whole duration. A holder gives up before others may conclude that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.kubernetes.errors import ClusterError, LeaseLost, Unreachable
from kerf.adapters.kubernetes.session import Answer, Session

DURATION, RENEW_WITHIN, RETRY = 15.0, 10.0, 2.0  # seconds, as the reference's
LOOK = 0.4  # seconds: so often it is renewed while the process is busy
CONFLICT, NOT_FOUND = 409, 404
NAME = "karpenter-leader-election"


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""


class _Spec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _Lease(Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Lease:
    """The Lease: `acquire` it, `hold` it while there is work, then `release` it. `waits` is called with each other
    holder. While the process is `busy` the Lease is renewed more often: who computes for long may be late.
    """

    def __init__(
        self,
        session: Session,
        *,
        namespace: str,
        identity: str,
        name: str = NAME,
        waits: Callable[[str], None] = lambda holder: None,
        busy: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.holder = ""
        self.transitions = 0
        self.identity = identity
        self._session, self._waits, self._busy, self._clock, self._sleep = session, waits, busy, clock, sleep
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name, self._where = name, f"Lease {namespace}/{name}"
        self._version = ""
        self._seen: tuple[str, float] = ("", 0.0)  # the version last seen of another's, and since when
        self._renewed = 0.0
        self._acquired = _now()

    async def acquire(self) -> int:
        """Waits until this process has the Lease. Returns its number of transitions: the record's epoch must be
        higher.
        """
        told = ""
        while True:
            try:
                if await self._try():
                    return self.transitions
                if self.holder != told:
                    told = self.holder
                    self._waits(told)
            except (ClusterError, Unreachable):
                pass  # an API server that cannot be asked cannot give the Lease away either
            await self._sleep(RETRY)

    async def hold(self) -> None:
        """Renews the Lease for ever. Raises LeaseLost (KERF604) if another process has it, or if it could not be
        renewed in time.
        """
        tried = self._clock()
        while True:
            await self._sleep(min(LOOK, RETRY))
            if self._clock() - tried < RETRY and not self._busy():
                continue
            tried = self._clock()
            try:
                if not await self._try():
                    raise self._lost(f"{self.holder} has taken it")
            except (ClusterError, Unreachable) as error:
                if self._clock() - self._renewed >= RENEW_WITHIN:
                    raise self._lost(f"it could not be renewed for {RENEW_WITHIN:.0f} s: {error}") from error

    async def release(self) -> None:
        """Releases the Lease, so that the next process gets it at once. Ignores a Lease of others, and an unreachable
        API server.
        """
        if self.holder != self.identity:
            return
        self.holder = ""
        try:
            await self._put(self._document(holder="", seconds=1))
        except (ClusterError, Unreachable):
            return

    async def _try(self) -> bool:
        """Takes or renews the Lease if that is possible now. Needs one request as long as nobody else writes it."""
        asked = self._clock()
        if self.holder == self.identity:
            renewed = await self._put(self._document())
            if renewed.status not in (CONFLICT, NOT_FOUND):
                return self._took(renewed, asked)
        answer = await self._send("GET", f"{self._path}/{self._name}")
        if answer.status == NOT_FOUND:
            return self._took(await self._send("POST", self._path, self._document(created=True)), asked)
        lease = msgspec.json.decode(answer.checked(self._where).body, type=_Lease)
        self._version = lease.metadata.resource_version
        held = lease.spec.holder_identity or ""
        self.transitions = lease.spec.lease_transitions or 0
        if held and held != self.identity:
            self.holder = held
            if self._version != self._seen[0]:
                self._seen = (self._version, asked)
            if asked - self._seen[1] < (lease.spec.lease_duration_seconds or DURATION):
                return False
        if held != self.identity:
            self.transitions, self._acquired = self.transitions + 1, _now()
        return self._took(await self._put(self._document()), asked)

    def _took(self, answer: Answer, asked: float) -> bool:
        if answer.status == CONFLICT:
            return False  # another was quicker; what it wrote is read the next time
        written = msgspec.json.decode(answer.checked(self._where).body, type=_Lease)
        self._version = written.metadata.resource_version
        self.holder, self._renewed = self.identity, asked
        return True

    async def _put(self, document: dict[str, Any]) -> Answer:
        return await self._send("PUT", f"{self._path}/{self._name}", document)

    async def _send(self, method: str, path: str, body: object = None) -> Answer:
        return await self._session.request(method, path, body=body, timeout=RENEW_WITHIN / 2, limited=False)

    def _document(
        self, *, holder: str | None = None, seconds: int = int(DURATION), created: bool = False
    ) -> dict[str, Any]:
        metadata = {"name": self._name} if created else {"name": self._name, "resourceVersion": self._version}
        spec = {
            "holderIdentity": self.identity if holder is None else holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": self._acquired,
            "renewTime": _now(),
            "leaseTransitions": self.transitions,
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    def _lost(self, why: str) -> LeaseLost:
        return LeaseLost(why, where=self._where, hint="This process ends, and a new one waits for the Lease")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
