"""Writes the names of planned nodes into pending pods (status.nominatedNodeName), so that kube-scheduler follows the
plan.

kerf.engine.runtime.pod_nominations says what to write and what to take back. API servers before 1.35 ignore or
misinterpret such nominations (KEP-5278), so nothing is written there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec
from msgspec import Struct

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.objects.node_openings import MAX_SECONDS_HELD_UP, NodeOpenings
from kerf.adapters.kubernetes.session import MERGE, Session
from kerf.engine.errors import KerfError
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.runtime.pod_nominations import PodNominations
from kerf.engine.state.state import State

MIN_SERVER_VERSION = (1, 35)
MAX_REQUESTS_UNDER_WAY = 32  # requests under way
SECONDS_TO_SETTLE, MAX_SECONDS_TO_SETTLE = 0.3, 2.1
"""kube-scheduler is through with what a Node's coming made it try if it has cleared no nomination, and bound no pod
that was told a node, for so long. A Node is kept from its pods for the second, at most, until then."""
_DIGITS = "0123456789"


class _Version(Struct):
    major: str = ""
    minor: str = ""


async def supported(session: Session) -> bool:
    """Returns whether the API server takes nominations by others than the scheduler. If it does not say so, it does
    not.
    """
    try:
        answer = await session.request("GET", "/version")
        said = msgspec.json.decode(answer.body, type=_Version)
    except (Unreachable, *UNDECODABLE):
        return False
    numbers = [int("".join(d for d in text if d in _DIGITS) or "0") for text in (said.major, said.minor)]
    return tuple(numbers) >= MIN_SERVER_VERSION


class Nominations:
    """Writes nominations: call `project` after each turn.

    `node_name` returns the name that the Node of a launched claim will have, or "" if only the Node itself can tell.
    """

    def __init__(self, session: Session, node_name: Callable[[NodeClaim], str]) -> None:
        self.error: KerfError | None = None
        self._session, self._nominating = session, PodNominations(node_name)
        self._tasks: dict[asyncio.Task[None], str] = {}  # → the node that it writes, or takes back
        self._gate = asyncio.Semaphore(MAX_REQUESTS_UNDER_WAY)
        self._openings = NodeOpenings()

    def project(self, state: State, opening: str = "") -> None:
        """Writes new nominations and takes back those that no longer hold. `opening`: a Node that is about to take
        pods, which are told it again. Call it on the loop, between turns."""
        for pod, node in self._nominating.due(state, opening):
            self._start(pod, node or None)
        self._openings.more_to_come = self._nominating.more_to_come(state)
        self._openings.expect(self._nominating.joining(state))
        self._openings.call_next()

    def turn(self, state: State, node: str) -> AbstractAsyncContextManager[None]:
        """Waits until it is this Node's turn to open, if pods were told it, and at its end for the Nodes that open with
        it (`NodeOpenings`). Call it between turns of the controller."""
        nominating = self._nominating
        if not nominating.is_told(node):
            return nullcontext()
        return self._openings.turn(node, nominating.spare(node, state), nominating.first_in_queue(node, state))

    async def settled(self, node: str) -> None:
        """Waits until kube-scheduler clears no nominations and binds no pods that were told a node any more, if pods
        were told this node, but no longer than a limit."""
        seen = -1
        until = asyncio.get_running_loop().time() + MAX_SECONDS_TO_SETTLE
        is_told = self._nominating.is_told(node)
        while is_told and seen != self._nominating.changes and asyncio.get_running_loop().time() < until:
            seen = self._nominating.changes
            await asyncio.sleep(SECONDS_TO_SETTLE)

    async def written(self, node: str) -> None:
        """Waits until the nominations of this node are written, or taken back, but no longer than a limit."""
        of_node = [task for task, named in self._tasks.items() if named == node]
        if of_node:
            await asyncio.wait(of_node, timeout=MAX_SECONDS_HELD_UP)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, pod: Pod, node: str | None) -> None:
        task = asyncio.create_task(self._patch(pod, node), name=f"nominate {pod.key}")
        self._tasks[task] = node or pod.nominated
        task.add_done_callback(self._tasks.pop)

    async def _patch(self, pod: Pod, node: str | None) -> None:
        """Writes one nomination. A failure is not retried: the scheduler finds a place without it."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        async with self._gate:
            try:
                await self._session.request("PATCH", path, body=body, content_type=MERGE)
            except Unreachable as error:
                self.error = error
