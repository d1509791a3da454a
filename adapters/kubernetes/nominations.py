"""Writes planned nodes' names into pending pods (status.nominatedNodeName), so that kube-scheduler follows the plan.

For pods whose claim has been launched and is not in service yet, as soon as its Node's name is known; but not while all
that wait are alike, because none takes another's place then. What the plan no longer says is taken back. A nomination
that somebody else made is never touched. API servers before 1.35 ignore or mistake such nominations (KEP-5278), so that
nothing is written there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.session import MERGE, Session
from kerf.engine.errors import KerfError
from kerf.engine.model.pods import Pod
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.table import LAUNCHED, REGISTERED
from kerf.engine.state.nominations import is_contested
from kerf.engine.state.state import State

SINCE = (1, 35)
AT_ONCE = 32  # requests under way
HELD_UP = 5.0  # seconds, at most, that a Node is kept from its pods until they are nominated for it
_DIGITS = "0123456789"


class _Version(Struct):
    major: str = ""
    minor: str = ""


async def supported(session: Session) -> bool:
    """Whether the API server takes nominations by others than the scheduler. One that does not say so does not."""
    try:
        answer = await session.request("GET", "/version")
        said = msgspec.json.decode(answer.body, type=_Version)
    except (Unreachable, msgspec.DecodeError):
        return False
    numbers = [int("".join(d for d in text if d in _DIGITS) or "0") for text in (said.major, said.minor)]
    return tuple(numbers) >= SINCE


class Nominations:
    """`project` after each turn. `node_name` gives the name that the Node of a launched claim will have, "" if only the
    Node itself can tell."""

    def __init__(self, session: Session, node_name: Callable[[NodeClaim], str]) -> None:
        self.error: KerfError | None = None
        self._session, self._node_name = session, node_name
        self._written: dict[str, str] = {}  # pod → the node last written, by this process or an earlier one
        self._tasks: dict[asyncio.Task[None], str] = {}  # → the node that it writes
        self._gate = asyncio.Semaphore(AT_ONCE)

    def project(self, state: State) -> None:
        """Writes what is new and takes back what no longer holds. Called on the loop, between turns."""
        facts = state.facts
        wanted: dict[str, str] = {}
        for claim, pods in state.ix.waiting_for.items():
            node = self._node_of(facts.claims.get(claim), state)
            if node:
                wanted.update((uid, node) for uid in pods)
        for uid, node in wanted.items() if is_contested(state) else ():
            pod = facts.pods.get(uid)
            if pod is not None and self._may_write(pod, node, state):
                self._write(pod, node)
        for uid, node in {**facts.nominations, **self._written}.items():
            if uid not in wanted:
                self._take_back(uid, node, state)

    async def written(self, node: str) -> None:
        """When what is being written of this node has been, or after a while."""
        of_node = [task for task, named in self._tasks.items() if named == node]
        if of_node:
            await asyncio.wait(of_node, timeout=HELD_UP)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _node_of(self, claim: NodeClaim | None, state: State) -> str:
        if claim is None or claim.state not in (LAUNCHED, REGISTERED):
            return ""
        seen = state.ix.nodes_by_provider.get(claim.provider_id, {})
        return next(iter(seen)) if len(seen) == 1 else self._node_name(claim)

    def _may_write(self, pod: Pod, node: str, state: State) -> bool:
        if pod.node or pod.deleting or self._written.get(pod.uid) == node:
            return False
        ours = (self._written.get(pod.uid, ""), state.facts.nominations.get(pod.uid, ""))
        return not pod.nominated or (pod.nominated != node and pod.nominated in ours)

    def _take_back(self, uid: str, node: str, state: State) -> None:
        """A claim in service keeps its nominations until its pods are bound: its Node is there."""
        pod = state.facts.pods.get(uid)
        if pod is None or pod.node:
            self._written.pop(uid, None)
            return
        if pod.nominated == node and node not in state.facts.nodes:
            self._written.pop(uid, None)
            self._start(pod, None)

    def _write(self, pod: Pod, node: str) -> None:
        self._written[pod.uid] = node
        self._start(pod, node)

    def _start(self, pod: Pod, node: str | None) -> None:
        task = asyncio.create_task(self._patch(pod, node), name=f"nominate {pod.key}")
        self._tasks[task] = node or ""
        task.add_done_callback(self._tasks.pop)

    async def _patch(self, pod: Pod, node: str | None) -> None:
        """One that fails is left: the scheduler finds a place without it."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        async with self._gate:
            try:
                await self._session.request("PATCH", path, body=body, content_type=MERGE)
            except Unreachable as error:
                self.error = error
