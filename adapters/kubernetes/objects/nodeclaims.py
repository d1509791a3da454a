"""Writes NodeClaim objects: projections of kerf's aggregates, so that users find them where Karpenter has them.

The state after a turn says what an object should look like. One task per object applies that on the server side. It
always writes the latest, and skips states in between: after each write an object rests for a second, as the reference's
do, and a node mostly gets through more than one step in that time. Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.objects.cluster_writes import FIELD_MANAGER, NOT_FOUND
from kerf.adapters.kubernetes.objects.nodeclaim_documents import claim_document, claim_status, stamped
from kerf.adapters.kubernetes.session import APPLY, MERGE, Session
from kerf.adapters.kubernetes.watch.watched_kinds import NODE_CLAIMS
from kerf.engine.errors import KerfError
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import DRAINING
from kerf.engine.state.state import State

RETRY_SECONDS = (0.5, 30.0)  # seconds
MIN_SECONDS_BETWEEN_WRITES = 1.0  # seconds between two writes of one object
_QUERY = {"fieldManager": FIELD_MANAGER, "force": "true"}
_encode = msgspec.json.Encoder(order="sorted").encode


Conditions = Callable[[NodeClaim, State, int], Sequence[Condition]]


INVALID = 422
FIRST_GENERATION = 1
"""Of an object whose answer does not say. A spec never changes; only the deletion counts as a change."""


class _Object(Struct):
    metadata: dict[str, object]
    spec: dict[str, object] = {}


class WantedObject(Struct):
    """What an object should look like. `document` and `status` are None if the object should not exist.

    `going` marks one that is deleted and waits for its finalizer (L-188).
    """

    document: dict[str, object] | None
    status: dict[str, object] | None
    going: bool = False


class ClaimObjects:
    """Keeps the NodeClaim objects up to date: call `project` after each turn. `uid` returns an object's uid.

    `conditions` returns the conditions of a claim.
    """

    def __init__(self, session: Session, conditions: Conditions) -> None:
        self.error: KerfError | None = None
        self._conditions = conditions
        self._session = session
        self._wanted: dict[str, WantedObject] = {}
        self._written: dict[str, tuple[bytes, bytes]] = {}  # what was last applied: object, status
        self._uids: dict[str, str] = {}
        self._specs: dict[str, dict[str, object]] = {}  # that somebody else wrote
        self._going: set[str] = set()  # deleted, and held by their finalizer
        self._shown: dict[str, NodeClaimObject] = {}
        self._created: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._owners: dict[str, str] = {}  # object → uid of its NodePool
        self._generations: dict[str, int] = {}  # object → its metadata.generation
        self._rested: dict[str, float] = {}  # object → when it may be written again, by the monotonic clock

    # ── what is there ───────────────────────────────────────────────────────────────────────────────────────

    def seen(self, claim: NodeClaimObject) -> None:
        """Takes an object from the watch."""
        self._shown[claim.name] = claim
        self._has(claim.name, claim.uid)

    def generation_seen(self, name: str, data: Raw | None) -> None:
        """Takes the bytes of an object from the watch (a reflector's `raw`)."""
        if data is not None:
            with suppress(msgspec.DecodeError):
                self._note_generation(name, _read(data))

    def _note_generation(self, name: str, there: _Object) -> None:
        generation = there.metadata.get("generation")
        if isinstance(generation, int):
            self._generations[name] = max(generation, self._generations.get(name, 0))

    def gone(self, name: str) -> None:
        """Forgets an object that the watch reports as gone, whoever deleted it."""
        self._uids.pop(name, None)
        self._shown.pop(name, None)
        self._written.pop(name, None)
        self._rested.pop(name, None)
        self._owners.pop(name, None)
        self._generations.pop(name, None)
        self._going.discard(name)
        self._specs.pop(name, None)
        self._tell_waiting(name)

    def known(self) -> list[str]:
        return sorted(self._uids)

    def shows(self, claim: NodeClaim, state: State, now: int) -> bool:
        """Returns whether the object, as last seen, shows the claim's node and conditions. Then a new process need not
        write it.
        """
        shown = self._shown.get(claim.name)
        if shown is None or (shown.provider_id, shown.node) != (claim.provider_id, claim.node):
            return False
        wanted = {condition.type: condition.status for condition in self._conditions(claim, state, now)}
        return wanted == {condition.type: condition.status for condition in shown.conditions}

    async def uid(self, name: str) -> str:
        """Returns the uid of a claim's object; "" if none is wanted. Waits for an object that is about to be
        created.
        """
        if name in self._uids:
            return self._uids[name]
        if name not in self._tasks:
            return ""
        await self._created.setdefault(name, asyncio.Event()).wait()
        return self._uids.get(name, "")

    # ── what should be there ────────────────────────────────────────────────────────────────────────────────

    def project(self, state: State, names: Iterable[str], now: int) -> None:
        """Brings the objects of these claims to what the state says at `now` (ms since the epoch).

        Call it on the loop, between turns.
        """
        for name in names:
            claim = state.facts.claims.get(name)
            self._wanted[name] = self._made(claim, state, now) if claim is not None else WantedObject(None, None)
            if name not in self._tasks:
                self._tasks[name] = asyncio.create_task(self._bring(name), name=f"nodeclaim {name}")

    def _made(self, claim: NodeClaim, state: State, now: int) -> WantedObject:
        pool = state.facts.pools.get(claim.node_pool)
        if pool is not None:  # one that is gone stays the owner: the garbage collector takes the object along
            self._owners[claim.name] = pool.uid
        status = claim_status(claim, self._conditions(claim, state, now))
        document = claim_document(claim, self._owners.get(claim.name, ""))
        return WantedObject(document, status, going=claim.state == DRAINING)

    async def settle(self) -> None:
        """Waits until everything is written."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _bring(self, name: str) -> None:
        delay, most = RETRY_SECONDS
        try:
            while name in self._wanted:
                await asyncio.sleep(max(0.0, self._rested.get(name, 0.0) - time.monotonic()))
                wanted = self._wanted[name]
                try:
                    done = await self._write(name, wanted)
                except (ClusterError, Unreachable) as error:
                    self.error = error
                    await asyncio.sleep(delay)
                    delay = min(most, delay * 2)
                    continue
                self.error = None
                if done and self._wanted.get(name) is wanted:
                    del self._wanted[name]
        finally:
            self._tasks.pop(name, None)
            self._tell_waiting(name)

    async def _write(self, name: str, wanted: WantedObject) -> bool:
        """Writes an object and returns whether all of it is written.

        The status of a new object waits until it has rested, because its claim is being launched meanwhile.
        """
        path = f"{NODE_CLAIMS}/{name}"
        if wanted.document is None or wanted.status is None:
            await self._remove(name, path)
            return True
        shown = stamped(wanted.status, self._generations.get(name, FIRST_GENERATION))
        document, status = _encode(wanted.document), _encode(shown)
        before = self._written.get(name, (b"", b""))
        if before == (document, status) and not wanted.going:
            return True
        is_new = name not in self._uids
        if before[0] != document:
            made = await self._apply(name, path, wanted.document)
            self._note_generation(name, made)
            self._has(name, str(made.metadata.get("uid", "")))
        if before[1] != status and not is_new:
            body = {**_HEAD, "metadata": {"name": name}, "status": shown}
            answer = await self._session.request("PATCH", f"{path}/status", query=_QUERY, body=body, content_type=APPLY)
            answer.checked(f"apply status of NodeClaim {name}")
        if wanted.going:
            await self._delete(name, path)
        self._written[name] = (document, before[1] if is_new else status)
        self._rested[name] = time.monotonic() + MIN_SECONDS_BETWEEN_WRITES
        return not is_new

    async def _apply(self, name: str, path: str, document: dict[str, object]) -> _Object:
        """Applies the object. A spec never changes (L-41), not even in spelling, so one that somebody else wrote stays
        as it is.
        """
        body = {**document, "spec": self._specs.get(name, document["spec"])}
        answer = await self._session.request("PATCH", path, query=_QUERY, body=body, content_type=APPLY)
        if answer.status == INVALID and name not in self._specs:
            there = await self._session.request("GET", path)
            if there.status < 300:
                self._specs[name] = msgspec.json.decode(there.body, type=_Object).spec
                return await self._apply(name, path, document)
        return msgspec.json.decode(answer.checked(f"apply NodeClaim {name}").body, type=_Object)

    async def _delete(self, name: str, path: str) -> None:
        """Deletes the object, once. Its finalizer keeps it."""
        if name in self._going or (name in self._shown and self._shown[name].deleting):
            return
        answer = await self._session.request("DELETE", path)
        if answer.status != NOT_FOUND:
            answer.checked(f"delete NodeClaim {name}")
        self._going.add(name)

    async def _remove(self, name: str, path: str) -> None:
        """Removes the finalizer and deletes the object, because its claim is over."""
        patch: Mapping[str, object] = {"metadata": {"finalizers": None}}
        answer = await self._session.request("PATCH", path, body=patch, content_type=MERGE, query=_MANAGED)
        if answer.status != NOT_FOUND:
            answer.checked(f"take the finalizer off NodeClaim {name}")
            answer = await self._session.request("DELETE", path)
            if answer.status != NOT_FOUND:
                answer.checked(f"delete NodeClaim {name}")
        self.gone(name)

    def _has(self, name: str, uid: str) -> None:
        self._uids[name] = uid
        self._tell_waiting(name)

    def _tell_waiting(self, name: str) -> None:
        """Lets those go on who wait for an object: it is there, or it will not come."""
        waiting = self._created.pop(name, None)
        if waiting is not None:
            waiting.set()


_read = msgspec.json.Decoder(_Object).decode
_HEAD = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
_MANAGED = {"fieldManager": FIELD_MANAGER}
